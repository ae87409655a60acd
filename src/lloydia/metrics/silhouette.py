"""The silhouette: how much nearer each row is to its own cluster than to the next one."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from lloydia.data.device_arrays import on_gpu
from lloydia.imports import load
from lloydia.metrics.partition import Partition, labelled_rows, partition
from lloydia.parameters import check_threads
from lloydia.progress.stages import stage

__all__ = ["silhouette_samples", "silhouette_score"]


def silhouette_samples(
    X: Any, labels: Any, *, metric: str = "euclidean", n_threads: int | None = None
) -> np.ndarray:
    """Return the silhouette coefficient of each row.

    The silhouette compares the distances of a row to its own cluster with those to the nearest
    other cluster.  The time grows with the square of the number of rows.  The memory is a float64
    copy of X and some hundred kilobytes per thread, because the distances are computed in small
    blocks.  The result is the same on any number of threads.

    Parameters
    ----------
    X : array-like of shape (n, d)
        The rows; any dtype is converted to float64.
    labels : array-like of shape (n,)
        The label of each row: integers or strings.
    metric : {"euclidean"}, default="euclidean"
        Accepted for compatibility with scikit-learn; only Euclidean distances are supported.
    n_threads : int or None, default=None
        Number of CPU threads.  None: as many as processors that this process may use, or
        ``OMP_NUM_THREADS`` if that is set and smaller.

    Returns
    -------
    silhouettes : ndarray of shape (n,), float64
        ``(b - a) / max(a, b)``, from -1 to 1.  Here a is the mean distance to the other rows of the
        same cluster, and b is the least mean distance to the rows of another cluster.  The value is
        0 for the only row of a cluster, and if a = b = 0.  For X on a GPU, an array of the same
        library on that GPU.

    Raises
    ------
    ValueError
        If X and `labels` have different lengths, if X holds NaN or infinity, if there are fewer
        than 2 or more than n - 1 distinct labels, if squared distances could overflow float64, or
        if a parameter is out of range.
    TypeError
        If X is sparse or Chunks.

    References
    ----------
    P. J. Rousseeuw, "Silhouettes: a graphical aid to the interpretation and validation of cluster
    analysis", *Journal of Computational and Applied Mathematics* 20, 1987.

    Examples
    --------
    >>> from lloydia.metrics import silhouette_samples
    >>> silhouette_samples([[0.0], [1.0], [4.0]], ["a", "a", "b"])
    array([0.75      , 0.66666667, 0.        ])
    """
    _check_metric(metric)
    threads = _threads(n_threads)
    if on_gpu(X):
        return load("lloydia.metrics.device_scores").silhouettes(X, labels)
    groups = partition(X, labels)
    result = np.empty(len(groups.order))
    result[groups.order] = _sorted_silhouettes(groups, threads)
    return result


def silhouette_score(
    X: Any,
    labels: Any,
    *,
    metric: str = "euclidean",
    sample_size: int | None = None,
    random_state: Any = None,
    n_threads: int | None = None,
) -> float:
    """Return the mean silhouette coefficient of the rows, or of a random sample of rows.

    Parameters
    ----------
    X, labels, metric, n_threads
        As in :func:`silhouette_samples`.
    sample_size : int or None, default=None
        Number of rows to draw without replacement; the score is that of these rows alone.  The
        same `random_state` draws the same rows as in scikit-learn.  None: all rows.
    random_state : int, RandomState or None, default=None
        Seed of the draw.

    Returns
    -------
    score : float
        The mean, from -1 to 1; higher is better.

    Raises
    ------
    ValueError, TypeError
        As :func:`silhouette_samples`; with `sample_size`, the limits on the number of labels apply
        to the sample.

    References
    ----------
    P. J. Rousseeuw, "Silhouettes: a graphical aid to the interpretation and validation of cluster
    analysis", *Journal of Computational and Applied Mathematics* 20, 1987.

    Examples
    --------
    >>> from lloydia.metrics import silhouette_score
    >>> silhouette_score([[0.0], [0.0], [4.0]], ["a", "a", "b"])
    0.6666666666666666
    """
    if sample_size is not None and (not isinstance(sample_size, Integral) or sample_size < 1):
        raise ValueError(f"sample_size={sample_size!r} must be None or an integer >= 1.")
    if on_gpu(X):
        _check_metric(metric)
        _threads(n_threads)
        scores = load("lloydia.metrics.device_scores").silhouettes(
            X, labels, sample_size, random_state
        )
        return float(scores.mean())
    if sample_size is not None:
        X, labels = labelled_rows(X, labels)
        drawn = check_random_state(random_state).permutation(X.shape[0])[:sample_size]
        X, labels = X[drawn], labels[drawn]
    return float(silhouette_samples(X, labels, metric=metric, n_threads=n_threads).mean())


def _sorted_silhouettes(groups: Partition, n_threads: int) -> np.ndarray:
    """Return the silhouettes of the rows sorted by cluster: shape (n,)."""
    from lloydia.backends.cpu.runtime import pool
    from lloydia.metrics.dense_kernel import TILE, silhouette_tile

    tiles = _tiles(groups)
    starts = np.arange(len(tiles)) * TILE
    first = np.searchsorted(groups.bounds, starts, side="right") - 1
    out = np.empty(len(groups.order))
    done = np.zeros(n_threads, dtype=np.int64)

    def task(thread: int, start: int, stop: int) -> None:
        for tile in range(start, stop):
            silhouette_tile(tiles, tile, groups.bounds, first, out)
        done[thread] += stop - start

    with stage("tiles", len(tiles), position=lambda: int(done.sum())):
        pool.run(task, len(tiles), 1, n_threads)
    return out


def _tiles(groups: Partition) -> np.ndarray:
    """Return the rows, sorted by cluster, in the layout of `silhouette_tile`."""
    from lloydia.metrics.dense_kernel import LANES, TILE

    n, d = groups.X.shape
    tiles = np.zeros((-(-n // TILE), TILE // LANES, d, LANES))
    panels = tiles.reshape(-1, d, LANES)
    for p, start in enumerate(range(0, n, LANES)):
        rows = groups.X[groups.order[start : start + LANES]]
        panels[p, :, : len(rows)] = rows.T
    return tiles


def _check_metric(metric: str) -> None:
    if metric != "euclidean":
        raise ValueError(
            f"metric={metric!r} is not supported: use 'euclidean', or the same function of "
            "sklearn.metrics."
        )


def _threads(n_threads: int | None) -> int:
    from lloydia.backends.cpu.runtime.pool import threads_of

    check_threads(n_threads)
    return threads_of(n_threads)
