"""The Calinski-Harabasz index: dispersion between clusters over dispersion within them."""

from __future__ import annotations

from typing import Any

import numpy as np

from lloydia.data.device_arrays import on_gpu
from lloydia.imports import load
from lloydia.metrics.partition import partition

__all__ = ["calinski_harabasz_score"]


def calinski_harabasz_score(X: Any, labels: Any) -> float:
    """Return the Calinski-Harabasz index, also called variance ratio criterion.

    Parameters
    ----------
    X : array-like of shape (n, d)
        The rows; any dtype is converted to float64.
    labels : array-like of shape (n,)
        The label of each row: integers or strings.

    Returns
    -------
    score : float
        ``(B / (k - 1)) / (W / (n - k))``; higher is better.  B is the sum over the k clusters of
        the number of rows times the squared distance of the centroid from the mean of all rows.  W
        is the sum of the squared distances of the rows from their centroids.  If W is zero, the
        score is 1.0, as in scikit-learn.

    Raises
    ------
    ValueError
        If X and `labels` have different lengths, if X holds NaN or infinity, if there are fewer
        than 2 or more than n - 1 distinct labels, or if squared distances could overflow float64.
    TypeError
        If X is sparse or Chunks.

    References
    ----------
    T. Calinski and J. Harabasz, "A dendrite method for cluster analysis", *Communications in
    Statistics* 3, 1974.

    Examples
    --------
    >>> from lloydia.metrics import calinski_harabasz_score
    >>> calinski_harabasz_score([[0.0], [1.0], [10.0], [11.0]], [0, 0, 1, 1])
    200.0
    """
    if on_gpu(X):
        return load("lloydia.metrics.device_scores").calinski_harabasz(X, labels)
    groups = partition(X, labels)
    origin = groups.X.mean(axis=0, dtype=np.float64)
    sizes = groups.sizes
    centroids = np.empty((len(sizes), len(origin)))
    within = 0.0
    for j in range(len(sizes)):
        centroids[j], deviations = groups.centered(j, origin)
        within += float(np.square(deviations).sum())
    if within == 0.0:
        return 1.0
    n, k = len(groups.order), len(sizes)
    mean = sizes @ centroids / n
    between = float(sizes @ np.square(centroids - mean).sum(axis=1))
    return between * (n - k) / (within * (k - 1))
