"""scikit-learn's functions: k_means() and kmeans_plusplus(), and assign()."""

from __future__ import annotations

from typing import Any

from sklearn.utils import check_array

from lloydia.backends import choose
from lloydia.backends.weighted import WeightedRows
from lloydia.data.arrays import ROWS, home_of, real_numbers, refuse_path, rows_on_host
from lloydia.data.centers import dense, in_order_of, opened
from lloydia.data.collections import on_cluster
from lloydia.data.device_arrays import center_dtype, on_gpu
from lloydia.data.device_rows import check_rows
from lloydia.imports import load
from lloydia.kmeans import KMeans
from lloydia.parameters import check_int, check_range, check_threads
from lloydia.seeding.generator import generator
from lloydia.seeding.plusplus import plusplus

__all__ = ["assign", "k_means", "kmeans_plusplus"]


def k_means(
    X,
    n_clusters,
    *,
    sample_weight=None,
    init="k-means++",
    n_init="auto",
    max_iter=300,
    verbose=False,
    tol=1e-4,
    random_state=None,
    copy_x=True,
    algorithm="auto",
    return_n_iter=False,
    device="auto",
    n_threads=None,
    stop=None,
    empty="relocate",
):
    """Cluster the rows of X; see :class:`lloydia.KMeans` for the parameters.

    Returns
    -------
    centroid : array of shape (n_clusters, n_features)
    label : array of shape (n_samples,), int32
    inertia : float
    best_n_iter : int
        Only with `return_n_iter`.
    """
    fitted = KMeans(
        n_clusters,
        init=init,
        n_init=n_init,
        max_iter=max_iter,
        tol=tol,
        verbose=verbose,
        random_state=random_state,
        copy_x=copy_x,
        algorithm=algorithm,
        device=device,
        n_threads=n_threads,
        stop=stop,
        empty=empty,
    ).fit(X, sample_weight=sample_weight)
    result = (fitted.cluster_centers_, fitted.labels_, fitted.inertia_)
    return (*result, fitted.n_iter_) if return_n_iter else result


def kmeans_plusplus(
    X,
    n_clusters,
    *,
    sample_weight=None,
    x_squared_norms=None,
    random_state=None,
    n_local_trials=None,
    device="auto",
    n_threads=None,
):
    """Pick starting centres by k-means++ (Arthur and Vassilvitskii 2007), greedily.

    Parameters
    ----------
    X : array-like or CSR matrix of shape (n_samples, n_features)
    n_clusters : int
    sample_weight : array-like of shape (n_samples,), default=None
    x_squared_norms : array-like of shape (n_samples,), default=None
        Kept for compatibility: checked, and not needed.
    random_state : int, RandomState instance or None, default=None
    n_local_trials : int, default=None
        Draws a centre; ``2 + int(log(n_clusters))`` by default.
    device, n_threads
        As in :class:`lloydia.KMeans`.

    Returns
    -------
    centers : array of shape (n_clusters, n_features)
    indices : array of shape (n_clusters,), int64
        ``X[indices]`` are the centres.

    Raises
    ------
    ValueError
        If fewer rows have a positive weight than there are clusters, or the shapes do not match.
    """
    home = home_of(X)
    rows = WeightedRows.of(_check_rows(X), sample_weight)
    X, weights = rows.X, rows.weights
    check_int("n_clusters", n_clusters)
    if n_local_trials is not None:
        check_int("n_local_trials", n_local_trials, "None or ")
    rows.refuse_few(n_clusters)
    n_samples = rows.every.shape[0]
    if x_squared_norms is not None:
        norms = real_numbers("x_squared_norms", x_squared_norms, "norms")
        norms = check_array(norms, dtype=center_dtype(X), ensure_2d=False)
        if norms.shape[0] != n_samples:
            raise ValueError(
                f"The length of x_squared_norms {norms.shape[0]} should be equal to the length of "
                f"n_samples {n_samples}."
            )
    check_threads(n_threads)
    engine = choose(device, X, weights, n_threads)
    check_range(engine, weights)
    indices = plusplus(engine, n_clusters, generator(random_state), n_local_trials)
    return home(engine.rows(indices)), home(rows.numbers(indices))


def assign(
    X: Any, centers: Any, *, device: str = "auto", n_threads: int | None = None
) -> tuple[Any, float]:
    """Assign the rows of X to given centres.

    Parameters
    ----------
    X : array-like or CSR matrix of shape (n_samples, n_features)
    centers : array-like, sparse matrix or data frame of shape (n_clusters, n_features)
        The columns of a data frame are matched by name, if X is one too.
    device, n_threads
        As in :class:`lloydia.KMeans`.

    Returns
    -------
    labels : array of shape (n_samples,), int32
        The nearest centre of each row, ties to the lowest index.
    inertia : float
        Sum of the squared distances to them.
    """
    home, (rows, names) = home_of(X), opened(X)
    X = _check_rows(rows)
    centers = in_order_of(names, "centers", *dense("centers", centers))
    centers = check_array(centers, dtype=center_dtype(X), order="C", input_name="centers")
    if centers.shape[1] != X.shape[1]:
        raise ValueError(
            f"X has {X.shape[1]} features and the centers have {centers.shape[1]}: they must agree."
        )
    check_threads(n_threads)
    engine = choose(device, X, None, n_threads)
    check_range(engine, None, centers)
    engine.classify(centers)
    return home(engine.labels()), float(engine.inertia())


def _check_rows(X: Any) -> Any:
    if on_cluster(X):
        return load("lloydia.backends.cluster.partitions").place(X)
    refuse_path(X)
    return check_rows(X) if on_gpu(X) else check_array(rows_on_host(X), **ROWS, input_name="X")
