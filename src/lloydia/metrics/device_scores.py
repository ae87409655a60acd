"""The scores of rows on a GPU, computed there in float64, as on the CPU.

They agree with the CPU's within a relative 1e-12: only the order of the additions differs, and it
does not change from one call to the next.
"""

from __future__ import annotations

from typing import Any

import torch
from sklearn.utils import check_random_state

from lloydia.backends.cuda.distances import distances, own_distances
from lloydia.backends.cuda.placed import Placed
from lloydia.data.device_arrays import returning
from lloydia.metrics.device_kernels import cluster_sums, sorted_silhouettes
from lloydia.metrics.device_partition import DevicePartition, checked, device_partition

__all__ = ["calinski_harabasz", "davies_bouldin", "silhouettes"]

# Distances between centroids that exist at once.
PAIRS = 1 << 26


def silhouettes(
    X: Any, labels: Any, sample_size: int | None = None, random_state: Any = None
) -> Any:
    """Return the silhouette coefficient of each row, or row of a sample, in the library of X."""
    rows, labels = checked(X, labels)
    if sample_size is not None:
        drawn = check_random_state(random_state).permutation(len(rows))[:sample_size]
        rows, labels = rows[torch.as_tensor(drawn, device=rows.device)], labels[drawn]
    with torch.cuda.device_of(rows):
        groups = device_partition(rows, labels)
        result = torch.empty_like(groups.X[:, 0])
        result[groups.order] = sorted_silhouettes(groups)
    return returning(X)(result)


def centred(X: torch.Tensor, labels: Any) -> tuple[DevicePartition, torch.Tensor, torch.Tensor]:
    """Return rows minus their mean, by cluster, the centroids, and each row's D to its own."""
    groups = device_partition(X, labels)
    groups.X.sub_(groups.X.mean(dim=0))
    centroids = cluster_sums(groups.X, groups.bounds) / groups.sizes[:, None]
    rows = Placed(groups.X, None, str(groups.X.device))
    return groups, centroids, own_distances(rows, groups.codes, centroids)


def calinski_harabasz(X: Any, labels: Any) -> float:
    """Return the score; see :func:`lloydia.metrics.calinski_harabasz_score`."""
    rows, labels = checked(X, labels)
    with torch.cuda.device_of(rows):
        groups, centroids, D = centred(rows, labels)
    within = float(D.sum())
    if within == 0.0:
        return 1.0
    n, k = len(D), len(centroids)
    sizes = groups.sizes.to(torch.float64)
    mean = (sizes[:, None] * centroids).sum(dim=0) / n
    between = float((sizes * (centroids - mean).square().sum(dim=1)).sum())
    return between * (n - k) / (within * (k - 1))


def davies_bouldin(X: Any, labels: Any, zero: float) -> float:
    """Return the score, 0 where distances are at most `zero`.

    See :func:`lloydia.metrics.davies_bouldin_score`.
    """
    rows, labels = checked(X, labels)
    with torch.cuda.device_of(rows):
        groups, centroids, D = centred(rows, labels)
        spread = cluster_sums(D.sqrt()[:, None], groups.bounds)[:, 0] / groups.sizes
        similarity, farthest = similarities(spread, centroids)
    if float(spread.amax()) <= zero or farthest <= zero:
        return 0.0
    return float(similarity.mean())


def similarities(spread: torch.Tensor, centroids: torch.Tensor) -> tuple[torch.Tensor, float]:
    """Return how alike each cluster is to the one most similar to it, and the largest distance."""
    found, farthest = [], 0.0
    step = max(1, PAIRS // len(centroids))
    for first in range(0, len(centroids), step):
        some = slice(first, first + step)
        apart = distances(Placed(centroids[some], None, str(centroids.device)), centroids)
        farthest = max(farthest, float(apart.amax()))
        apart[apart == 0.0] = torch.inf
        found.append(((spread + spread[some, None]) / apart).amax(dim=1))
    return torch.cat(found), farthest
