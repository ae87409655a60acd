"""
The same result on every engine
===============================

Labels, centres, inertia and the number of iterations do not depend on the algorithm, the number
of threads or the machine. This example computes a checksum of all four, for several algorithms
and numbers of threads, and for a Dask cluster.
"""

import hashlib

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
from dask.distributed import Client
from sklearn.datasets import make_blobs

import lloydia
import lloydia.dask

X, _ = make_blobs(20_000, 8, centers=20, cluster_std=4.0, random_state=0)
X = X.astype(np.float32)


def checksum(model):
    """Return the first digits of the SHA-256 of a fit's result."""
    sha = hashlib.sha256()
    for part in (model.labels_, model.cluster_centers_, model.inertia_, model.n_iter_):
        sha.update(np.asarray(part).tobytes())
    return sha.hexdigest()[:16]


# %%
# The algorithms skip different distances, so they differ in the amount of work, and in nothing
# else.

seen, distances = set(), {}
for algorithm in ("lloyd", "hamerly", "elkan"):
    for n_threads in (1, 2):
        model = lloydia.KMeans(20, random_state=0, algorithm=algorithm, n_threads=n_threads).fit(X)
        seen.add(checksum(model))
        distances[algorithm] = model.n_distances_
        print(f"{algorithm:8} {n_threads} threads: {checksum(model)}")

# %%
# The next fit runs on two workers of a Dask cluster, with the rows in seven partitions.

with Client(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None):
    rows = da.from_array(X, chunks=(3_000, 8))
    model = lloydia.dask.KMeans(20, random_state=0, init="k-means||").fit(rows)
    on_cluster = checksum(model)
here = checksum(lloydia.KMeans(20, random_state=0, init="k-means||").fit(X))
print(f"k-means||, Dask: {on_cluster}")
print(f"k-means||, here: {here}")

# %%
# All fits with k-means++ have one checksum. The fits with k-means|| have another, since they start
# from other rows; it is the same on the cluster and here.

assert len(seen) == 1
assert on_cluster == here

figure, ax = plt.subplots(figsize=(7, 2.8), layout="constrained")
ax.barh(list(distances), [count / 1e6 for count in distances.values()])
ax.invert_yaxis()
ax.set_xlabel("distances evaluated, millions")
ax.set_title(f"one result, {seen.pop()}, by different work")
