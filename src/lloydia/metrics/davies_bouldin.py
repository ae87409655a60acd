"""The Davies-Bouldin index: the similarity of each cluster to the one most similar to it."""

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
    """Return the Davies-Bouldin index: the mean similarity of clusters to their most similar one.

    Parameters
    ----------
    X : array-like of shape (n, d)
        The rows; any dtype is converted to float64.
    labels : array-like of shape (n,)
        The label of each row: integers or strings.

    Returns
    -------
    score : float
        The mean over the clusters i of ``max_j (s_i + s_j) / D_ij``; lower is better.  Here s_i is
        the mean Euclidean distance of the rows of cluster i from its centroid, and D_ij is the
        distance between two centroids.  Pairs of exactly equal centroids are left out.  If every s,
        or every D, is at most 1e-8, the score is 0.0, as in scikit-learn.

    Raises
    ------
    ValueError
        If X and `labels` have different lengths, if X holds NaN or infinity, if there are fewer
        than 2 or more than n - 1 distinct labels, or if squared distances could overflow float64.
    TypeError
        If X is sparse or Chunks.

    References
    ----------
    D. L. Davies and D. W. Bouldin, "A cluster separation measure", *IEEE Transactions on Pattern
    Analysis and Machine Intelligence* PAMI-1, 1979.

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
