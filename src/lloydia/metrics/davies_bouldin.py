"""The Davies-Bouldin index: how alike each cluster is to the one most similar to it."""

from __future__ import annotations

from typing import Any

import numpy as np

from lloydia.data.device_arrays import on_gpu
from lloydia.imports import load
from lloydia.metrics.coincidence import ExactCentroids, near
from lloydia.metrics.partition import partition

__all__ = ["davies_bouldin_score"]

_ZERO = 1e-8  # scikit-learn's: numpy.isclose to zero


def davies_bouldin_score(X: Any, labels: Any) -> float:
    """Return the mean similarity of each cluster with its most similar one; lower is better.

    Parameters
    ----------
    X : array-like of shape (n, d)
        The data; computed in float64 whatever the dtype.
    labels : array-like of shape (n,)
        A label for each row: integers or strings.

    Returns
    -------
    float
        The mean over clusters i of ``max_j (s_i + s_j) / D_ij``, with s the mean Euclidean distance
        of a cluster's rows from its centroid and D the distance of the centroids; pairs of exactly
        equal centroids are left out.  0.0 where every s, or every D, is at most 1e-8, as in
        scikit-learn.

    Raises
    ------
    ValueError
        Lengths that differ, NaN or infinity, fewer than 2 or more than n - 1 different labels, or
        magnitudes whose squared distances overflow float64.
    TypeError
        Sparse X.

    References
    ----------
    Davies and Bouldin, "A cluster separation measure", IEEE Transactions on Pattern Analysis and
    Machine Intelligence PAMI-1 (1979) 224-227.

    Examples
    --------
    >>> from lloydia.metrics import davies_bouldin_score
    >>> davies_bouldin_score([[0.0], [1.0], [10.0], [11.0]], [0, 0, 1, 1])
    0.1
    """
    if on_gpu(X):
        return load("lloydia.metrics.device_scores").davies_bouldin(X, labels, _ZERO)
    groups = partition(X, labels)
    origin = groups.X.mean(axis=0, dtype=np.float64)
    k = len(groups.sizes)
    centroids, spread, similarity = np.empty((k, len(origin))), np.empty(k), np.empty(k)
    for j in range(k):
        centroids[j], deviations = groups.centered(j, origin)
        spread[j] = np.linalg.norm(deviations, axis=1).mean()
    reach = np.linalg.norm(centroids, axis=1) + spread
    exact = ExactCentroids(groups.rows, centroids.shape)
    farthest = 0.0
    for j, centroid in enumerate(centroids):
        apart = np.linalg.norm(centroids - centroid, axis=1)
        doubtful = near(apart, reach, reach[j], len(groups.order))
        doubtful[j] = False
        if others := np.flatnonzero(doubtful).tolist():
            apart[others] = exact.distances(j, others)
        farthest = max(farthest, float(apart.max()))
        apart[apart == 0.0] = np.inf
        similarity[j] = ((spread + spread[j]) / apart).max()
    if spread.max() <= _ZERO or farthest <= _ZERO:
        return 0.0
    return float(similarity.mean())
