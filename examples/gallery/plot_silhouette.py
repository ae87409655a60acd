"""
How many clusters? The silhouette
=================================

The silhouette of a row compares the mean distance to the rows of its own cluster with that to the
rows of the nearest other cluster. It is near 1 for a row deep inside its cluster, and below 0 for
a row that is nearer to another one. The mean over all rows helps to choose k.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from lloydia import KMeans
from lloydia.metrics import silhouette_samples, silhouette_score

X, _ = make_blobs(2_000, centers=5, cluster_std=1.1, random_state=10)

# %%
# ``silhouette_score`` needs no matrix of all distances, so all rows can be scored. For very many
# rows there is ``sample_size``.

sizes = range(2, 10)
models = {k: KMeans(k, n_init=5, random_state=0).fit(X) for k in sizes}
scores = {k: silhouette_score(X, models[k].labels_) for k in sizes}
best = max(scores, key=scores.get)

figure, ax = plt.subplots(figsize=(7, 3), layout="constrained")
ax.plot(list(scores), list(scores.values()), "o-")
ax.plot(best, scores[best], "o", markersize=12, color="tab:red")
ax.set_xlabel("k")
ax.set_ylabel("mean silhouette")

# %%
# The left figure has the silhouettes of all rows, cluster by cluster, for the best k.

model = models[best]
samples = silhouette_samples(X, model.labels_)

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
start = 0
for j in range(best):
    values = np.sort(samples[model.labels_ == j])
    left.fill_betweenx(np.arange(start, start + len(values)), 0, values, color=f"C{j}")
    start += len(values) + 20
left.axvline(scores[best], color="black", linestyle="--")
left.set_yticks([])
left.set_xlabel("silhouette; dashed: the mean")
right.scatter(*X.T, s=4, c=[f"C{j}" for j in model.labels_])
right.scatter(*model.cluster_centers_.T, marker="x", s=80, color="black")
right.set_title(f"k = {best}")
