"""The scores of rows on a GPU, computed there in float64.

They agree with the CPU's scores within a relative 1e-12.  Only the order of the additions differs;
it is the same in every call.
"""

from __future__ import annotations

from typing import Any

import torch
from sklearn.utils import check_random_state

from lloydia.backends.cuda.placement import place_rows
from lloydia.backends.cuda.rows.distances import distances, own_distances
from lloydia.data.device_arrays import returning
from lloydia.metrics.coincidence import ExactCentroids, near
from lloydia.metrics.device_kernels import cluster_sums, sorted_silhouettes
from lloydia.metrics.device_partition import DevicePartition, checked, device_partition

__all__ = ["calinski_harabasz", "davies_bouldin", "silhouettes"]

# Distances between centroids that exist at once.
PAIRS = 1 << 26


def silhouettes(
    X: Any, labels: Any, sample_size: int | None = None, random_state: Any = None
) -> Any:
    """Return the silhouette coefficient of each row, or of each row of a sample, in X's library."""
    rows, labels = checked(X, labels)
    if sample_size is not None:
        drawn = check_random_state(random_state).permutation(len(rows))[:sample_size]
        rows, labels = rows[torch.as_tensor(drawn, device=rows.device)], labels[drawn]
    with torch.cuda.device_of(rows):
        groups = device_partition(rows, labels)
        result = torch.empty_like(groups.X[:, 0])
        result[groups.order] = sorted_silhouettes(groups)
    return returning(X)(result)


def centered(X: torch.Tensor, labels: Any) -> tuple[DevicePartition, torch.Tensor, torch.Tensor]:
    """Return the rows grouped by cluster, the centroids, and each row's D to its own centroid.

    Each row minus the first row of its cluster is used, and each centroid minus the very first row.
    So an offset costs no precision, and D is 0 if all rows of a cluster are equal.
    """
    groups = device_partition(X, labels)
    first = groups.X[groups.bounds[:-1]]
    for start in range(0, len(groups.X), step := max(1, PAIRS // len(first[0]))):
        some = slice(start, start + step)
        groups.X[some] -= first[groups.codes[some]]
    centroids = cluster_sums(groups.X, groups.bounds) / groups.sizes[:, None]
    rows = place_rows(groups.X, None, str(groups.X.device))
    D = own_distances(rows, groups.codes, centroids)
    return groups, (first - first[0]) + centroids, D


def calinski_harabasz(X: Any, labels: Any) -> float:
    """Return the score; see :func:`lloydia.metrics.calinski_harabasz_score`."""
    rows, labels = checked(X, labels)
    with torch.cuda.device_of(rows):
        groups, centroids, D = centered(rows, labels)
    within = float(D.sum())
    if within == 0.0:
        return 1.0
    n, k = len(D), len(centroids)
    sizes = groups.sizes.to(torch.float64)
    mean = (sizes[:, None] * centroids).sum(dim=0) / n
    between = float((sizes * (centroids - mean).square().sum(dim=1)).sum())
    return between * (n - k) / (within * (k - 1))


def davies_bouldin(X: Any, labels: Any, zero: float) -> float:
    """Return the score, or 0 if all distances are at most `zero`.

    See :func:`lloydia.metrics.davies_bouldin_score`.
    """
    rows, labels = checked(X, labels)
    with torch.cuda.device_of(rows):
        groups, centroids, D = centered(rows, labels)
        spread = cluster_sums(D.sqrt()[:, None], groups.bounds)[:, 0] / groups.sizes
        exact = ExactCentroids(
            lambda j: rows[groups.rows_of(j)].cpu().double().numpy(), tuple(centroids.shape)
        )
        similarity, farthest = similarities(spread, centroids, len(rows), exact)
    if float(spread.amax()) <= zero or farthest <= zero:
        return 0.0
    return float(similarity.mean())


def similarities(
    spread: torch.Tensor, centroids: torch.Tensor, n_samples: int, exact: ExactCentroids
) -> tuple[torch.Tensor, float]:
    """Return each cluster's similarity to its most similar cluster, and the largest distance."""
    found, farthest = [], 0.0
    reach = torch.linalg.vector_norm(centroids, dim=1) + spread
    step = max(1, PAIRS // len(centroids))
    for first in range(0, len(centroids), step):
        some = slice(first, first + step)
        apart = distances(place_rows(centroids[some], None, str(centroids.device)), centroids)
        doubtful = near(apart, reach, reach[some, None], n_samples)
        for i, row in enumerate(doubtful.cpu()):
            row[first + i] = False
            others = row.nonzero()[:, 0].tolist()
            if not others:
                continue
            judged = exact.distances(first + i, others)
            apart[i, others] = torch.as_tensor(judged, device=apart.device)
        farthest = max(farthest, float(apart.amax()))
        apart[apart == 0.0] = torch.inf
        found.append(((spread + spread[some, None]) / apart).amax(dim=1))
    return torch.cat(found), farthest
