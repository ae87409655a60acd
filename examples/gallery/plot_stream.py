"""
Mini batches from a stream
==========================

If rows arrive in batches and are not stored, ``MiniBatchKMeans.partial_fit`` moves the centres with
each batch. The same batches in the same order give the same centres, to the last bit, on any number
of threads.
"""

import matplotlib.pyplot as plt
import numpy as np

from lloydia import KMeans, MiniBatchKMeans, assign

X = np.random.default_rng(0).normal(size=(30_000, 2))
batches = np.array_split(X[:20_000], 100)
held_out = X[20_000:]

# %%
# All centres start near the middle of the data, on a small circle. The curve is the inertia of rows
# that are in no batch, after each batch. The dashed line is that of a ``KMeans`` fit of all batches
# at once.

angles = np.arange(8) * np.pi / 4
circle = 0.2 * np.stack([np.cos(angles), np.sin(angles)], axis=1)

model = MiniBatchKMeans(n_clusters=8, init=circle, random_state=0)
inertia = []
paths = [circle]
for batch in batches:
    model.partial_fit(batch)
    inertia.append(assign(held_out, model.cluster_centers_)[1] / len(held_out))
    paths.append(model.cluster_centers_.copy())

whole = KMeans(n_clusters=8, n_init=5, random_state=0).fit(X[:20_000])
least = assign(held_out, whole.cluster_centers_)[1] / len(held_out)

figure, ax = plt.subplots(figsize=(8, 3), layout="constrained")
ax.plot(range(1, 101), inertia, label="after each batch of 200 rows")
ax.axhline(least, color="black", linestyle="--", label="KMeans on all batches at once")
ax.set_xlabel("batches")
ax.set_ylabel("inertia per row")
ax.legend()

# %%
# The red lines are the paths of the centres. The steps become shorter and shorter, since a centre
# that is the mean of many rows moves little with a few more.

paths = np.array(paths)
figure, ax = plt.subplots(figsize=(6, 5), layout="constrained")
ax.scatter(*held_out.T, s=1, color="0.8")
for j in range(8):
    ax.plot(*paths[:, j].T, color="tab:red", linewidth=1)
ax.scatter(*paths[-1].T, marker="x", color="black", zorder=3)
