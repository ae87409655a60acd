"""scikit-learn's functions: k_means() and kmeans_plusplus(), and assign()."""

from __future__ import annotations

from typing import Any

from sklearn.utils import check_array

from lloydia.backends.weighted import WeightedRows
from lloydia.data.arrays import home_of, real_numbers
from lloydia.data.centers import dense, in_order_of, opened
from lloydia.data.device_arrays import center_dtype
from lloydia.data.non_finite import FINITE_CENTERS, refuse_non_finite
from lloydia.estimators.kmeans import KMeans
from lloydia.estimators.rows import check_rows
from lloydia.parameters import check_int, check_threads
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
    """Cluster the rows of X with k-means; the function form of :class:`lloydia.KMeans`.

    Parameters
    ----------
    X : array-like, sparse matrix, data frame or Chunks of shape (n_samples, n_features)
        As in :meth:`lloydia.KMeans.fit`.
    n_clusters : int
        Number of clusters.
    sample_weight : array-like of shape (n_samples,), default=None
        As in :meth:`lloydia.KMeans.fit`.
    init, n_init, max_iter, verbose, tol, random_state, copy_x, algorithm
        As in :class:`lloydia.KMeans`.
    return_n_iter : bool, default=False
        Whether to return the number of iterations as well.
    device, n_threads, stop, empty
        As in :class:`lloydia.KMeans`.

    Returns
    -------
    centroid : array of shape (n_clusters, n_features), float32 or float64
        The cluster centres, as ``cluster_centers_``.
    label : array of shape (n_samples,), int32
        The index of the nearest centre of each row, as ``labels_``.
    inertia : float
        Sum over the rows of weight times squared distance to the nearest centre.
    best_n_iter : int
        Number of iterations of the best run; only with `return_n_iter`.

    Raises
    ------
    ValueError, ImportError, MemoryError, EmptyClusterError
        As :meth:`lloydia.KMeans.fit`.

    Examples
    --------
    >>> from lloydia import k_means
    >>> X = [[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]]
    >>> centers, labels, inertia = k_means(X, 2, random_state=0)
    >>> labels
    array([1, 1, 1, 0, 0, 0], dtype=int32)
    >>> inertia
    16.0
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
    """Choose initial centres by greedy k-means++ (Arthur and Vassilvitskii 2007).

    Each centre is drawn with probability proportional to weight times squared distance to the
    nearest centre chosen before it.  The greedy variant makes several draws and keeps the one that
    reduces the inertia most.

    Parameters
    ----------
    X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
        As in :meth:`lloydia.KMeans.fit`, but in memory.
    n_clusters : int
        Number of centres.
    sample_weight : array-like of shape (n_samples,), default=None
        Finite weights >= 0; None gives every row the weight 1.
    x_squared_norms : array-like of shape (n_samples,), default=None
        Accepted for compatibility: its length is checked, its values are not used.
    random_state : int, RandomState instance or None, default=None
        Seed of the draws.
    n_local_trials : int, default=None
        Number of draws per centre; None is ``2 + int(log(n_clusters))``.
    device, n_threads
        As in :class:`lloydia.KMeans`.

    Returns
    -------
    centers : array of shape (n_clusters, n_features), float32 or float64
        The chosen rows.
    indices : array of shape (n_clusters,), int64
        Their indices: ``X[indices]`` equals `centers`.

    Raises
    ------
    ValueError
        If a parameter is out of range, if there are fewer rows of positive weight than
        `n_clusters`, if X holds NaN or infinity, or if `sample_weight` or `x_squared_norms` has
        another length than X.
    ImportError
        If `device` needs a GPU and PyTorch or Triton is not installed.

    References
    ----------
    D. Arthur and S. Vassilvitskii, "k-means++: the advantages of careful seeding", *SODA* 2007.

    Examples
    --------
    >>> from lloydia import kmeans_plusplus
    >>> X = [[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]]
    >>> centers, indices = kmeans_plusplus(X, 2, random_state=0)
    >>> centers
    array([[10.,  2.],
           [ 1.,  0.]])
    >>> indices
    array([3, 2])
    """
    home = home_of(X)
    rows = WeightedRows.of(check_rows(X), sample_weight)
    check_int("n_clusters", n_clusters)
    if n_local_trials is not None:
        check_int("n_local_trials", n_local_trials, "None or ")
    rows.refuse_few(n_clusters)
    n_samples = rows.every.shape[0]
    if x_squared_norms is not None:
        norms = real_numbers("x_squared_norms", x_squared_norms, "norms")
        norms = check_array(
            norms, dtype=center_dtype(rows.every), ensure_2d=False, ensure_all_finite=False
        )
        refuse_non_finite(norms, "x_squared_norms", advice="leave them out, they are not used")
        if norms.shape[0] != n_samples:
            raise ValueError(
                f"The length of x_squared_norms {norms.shape[0]} should be equal to the length of "
                f"n_samples {n_samples}."
            )
    check_threads(n_threads)
    engine = rows.engine(device, n_threads)
    indices = plusplus(engine, n_clusters, generator(random_state), n_local_trials)
    return home(engine.rows(indices)), home(rows.numbers(indices))


def assign(
    X: Any, centers: Any, *, device: str = "auto", n_threads: int | None = None
) -> tuple[Any, float]:
    """Assign the rows of X to given centres, without fitting.

    Parameters
    ----------
    X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
        As in :meth:`lloydia.KMeans.fit`, but in memory.
    centers : array-like, sparse matrix or data frame of shape (n_clusters, n_features)
        The centres; they are converted to float32 if X is float32 or half precision, otherwise to
        float64.  If X and `centers` are data frames, their columns are matched by name.
    device, n_threads
        As in :class:`lloydia.KMeans`.

    Returns
    -------
    labels : array of shape (n_samples,), int32
        The index of the nearest centre of each row, and the lowest index among equally near
        centres.  For X on a GPU, an array of the same library on that GPU.
    inertia : float
        Sum of the squared distances of the rows to their nearest centres.

    Raises
    ------
    ValueError
        If X and `centers` have different numbers of features, if either holds NaN or infinity, or
        if squared distances could overflow.
    ImportError
        If `device` needs a GPU and PyTorch or Triton is not installed.

    Examples
    --------
    >>> from lloydia import assign
    >>> labels, inertia = assign([[1, 2], [1, 4], [10, 2]], centers=[[1, 2], [10, 2]])
    >>> labels
    array([0, 0, 1], dtype=int32)
    >>> inertia
    4.0
    """
    home, (rows, names) = home_of(X), opened(X)
    X = check_rows(rows)
    centers = in_order_of(names, "centers", *dense("centers", centers))
    centers = check_array(
        centers, dtype=center_dtype(X), order="C", input_name="centers", ensure_all_finite=False
    )
    refuse_non_finite(centers, "centers", advice=FINITE_CENTERS)
    if centers.shape[1] != X.shape[1]:
        raise ValueError(
            f"X has {X.shape[1]} features and centers has {centers.shape[1]}: give both the same "
            "features."
        )
    check_threads(n_threads)
    engine = WeightedRows.of(X, None).engine(device, n_threads, centers)
    engine.classify(centers)
    return home(engine.labels()), float(engine.inertia())
