"""MiniBatchKMeans, the scikit-learn estimator."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.random import RandomState
from sklearn.utils import check_random_state

from lloydia.backends.engine import Engine
from lloydia.backends.magnitudes import check_range
from lloydia.backends.weighted import WeightedRows
from lloydia.data.arrays import home_of, real_numbers
from lloydia.data.chunks.source import Chunks
from lloydia.data.collections import is_collection
from lloydia.data.device_arrays import n_distinct
from lloydia.estimators.base_kmeans import BaseKMeans, warn_of_fewer
from lloydia.estimators.given import Given
from lloydia.estimators.rows import check_rows, check_width, features_of, of_one_type
from lloydia.estimators.sampled_starts import best_start, drawn_start, init_rows
from lloydia.estimators.starts import starts_of
from lloydia.loop.minibatch import do_step, run_batches
from lloydia.loop.minibatch_step import Centers
from lloydia.parameters import check_mini_batches
from lloydia.seeding.generator import undone_on_error

__all__ = ["MiniBatchKMeans"]


class MiniBatchKMeans(BaseKMeans):
    """Mini-batch k-means (Sculley 2010) with the same result on any number of threads and on a GPU.

    A drop-in replacement for :class:`sklearn.cluster.MiniBatchKMeans`, with the same parameters,
    attributes and methods and two more parameters: `device` and `n_threads`.  With the same
    `random_state` it draws scikit-learn's random numbers in scikit-learn's order.  The result is
    defined to the last bit (see ``docs/contract.md``).

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    init : str, array or callable, default="k-means++"
        As in :class:`lloydia.KMeans`.  The start is chosen from `init_size` rows drawn at random; a
        callable receives these rows.
    max_iter : int, default=100
        Largest number of passes over the data: ``max_iter * n_samples // batch_size`` batches.
    batch_size : int, default=1024
        Number of rows per batch.
    verbose : int, default=0
        If positive, the fit prints each start and its time, and the inertia of each batch.
    compute_labels : bool, default=True
        Whether a fit ends by computing the labels and the inertia of all rows.
    random_state : int, RandomState instance or None, default=None
        Seed of the random numbers that choose the starts, the batches, and the rows to which
        centres are moved (see `reassignment_ratio`).
    tol : float, default=0.0
        If positive, a fit stops when the sum of the squared movements of the centres in one batch
        is at most `tol` times the mean variance of the features.  The variance is weighted by
        `sample_weight`, unlike scikit-learn's.
    max_no_improvement : int or None, default=10
        A fit stops after this number of consecutive batches in which the smoothed inertia reached
        no new minimum.  None disables this rule.
    init_size : int or None, default=None
        Number of rows from which a start is chosen.  None: ``3 * batch_size``, or
        ``3 * n_clusters`` if ``3 * batch_size`` is less than `n_clusters`.
    n_init : "auto" or int, default="auto"
        Number of starts.  The start with the lowest inertia on a random sample of rows is used for
        the single run.  ``"auto"`` is 3 for ``"random"`` and callables, and 1 otherwise.
    reassignment_ratio : float, default=0.01
        From time to time, a centre whose count in ``counts_`` is less than `reassignment_ratio`
        times the largest count is moved to a row of the batch.  0: never.
    device, n_threads
        As in :class:`lloydia.KMeans`.

    Attributes
    ----------
    cluster_centers_ : array of shape (n_clusters, n_features), float32 or float64
        As in :class:`lloydia.KMeans`.
    counts_ : ndarray of shape (n_clusters,), float64
        For each centre, the sum of the weights of the rows that were assigned to it.
    labels_ : array of shape (n_samples,), int32
        The index of the nearest centre of each row; always equal to ``predict(X)``.  After
        :meth:`partial_fit` it covers the rows of the last batch.  Only with `compute_labels`.
    inertia_ : float
        The inertia of the rows of `labels_`.  Without `compute_labels`, :meth:`fit` sets it to the
        smoothed mean inertia of a row times the sum of all weights, and :meth:`partial_fit` does
        not set it.
    n_iter_ : int
        Number of passes over the data, rounded up; set by :meth:`fit`.
    n_steps_ : int
        Number of batches.
    n_features_in_ : int
        Number of features of X.
    feature_names_in_ : ndarray of shape (n_features,)
        Column names of X; only if X was a data frame whose column names are all strings.
    device_ : str
        The device that computed the fit.

    Notes
    -----
    Checkpoints are not supported.  To interrupt a series of calls of :meth:`partial_fit`, save the
    estimator (:func:`lloydia.save`) or pickle it between two batches.  The loaded estimator
    continues with the same result.

    References
    ----------
    D. Sculley, "Web-scale k-means clustering", *WWW* 2010.

    Examples
    --------
    >>> from lloydia import MiniBatchKMeans
    >>> import numpy as np
    >>> X = np.array([[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]])
    >>> kmeans = MiniBatchKMeans(n_clusters=2, random_state=0)
    >>> for batch in (X, X[::-1]):
    ...     kmeans = kmeans.partial_fit(batch)
    >>> kmeans.predict([[0, 0], [12, 3]]).tolist()
    [1, 0]
    """

    _several = 3

    def __init__(
        self,
        n_clusters=8,
        *,
        init="k-means++",
        max_iter=100,
        batch_size=1024,
        verbose=0,
        compute_labels=True,
        random_state=None,
        tol=0.0,
        max_no_improvement=10,
        init_size=None,
        n_init="auto",
        reassignment_ratio=0.01,
        device="auto",
        n_threads=None,
    ):
        self.n_clusters = n_clusters
        self.init = init
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.verbose = verbose
        self.compute_labels = compute_labels
        self.random_state = random_state
        self.tol = tol
        self.max_no_improvement = max_no_improvement
        self.init_size = init_size
        self.n_init = n_init
        self.reassignment_ratio = reassignment_ratio
        self.device = device
        self.n_threads = n_threads

    def fit(self, X, y=None, sample_weight=None):
        """Cluster the rows of X, one random batch after another.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            As in :meth:`lloydia.KMeans.fit`, but in memory.  Pass larger data to
            :meth:`partial_fit`, block by block.
        y : Ignored
        sample_weight : array-like of shape (n_samples,), default=None
            Finite weights >= 0; rows are drawn with probability proportional to their weights.
            Rows of weight 0 get labels and have no other effect.

        Returns
        -------
        self

        Raises
        ------
        ValueError, ImportError, MemoryError
            As :meth:`lloydia.KMeans.fit`; ValueError also for Chunks and Dask collections.

        Warns
        -----
        ConvergenceWarning
            If the fit found fewer distinct clusters than `n_clusters`.
        RuntimeWarning
            If `init_size` is less than `n_clusters`: ``3 * n_clusters`` is used.  Also if `init` is
            an array and `n_init` is neither 1 nor ``"auto"``: one start is used.
        """
        check_mini_batches(self)
        _refuse_unread(X)
        given = Given.to(self, X, sample_weight)
        draft, rows, home, n = given.draft, given.rows, given.home, given.rows.n_samples
        whole = rows.engine(self.device, self.n_threads)
        state = check_random_state(self.random_state)
        values = best_start(draft, given, state)
        centers, steps, inertia = run_batches(self, rows, whole, values, state)
        found = given.features | {
            "n_steps_": steps,
            "n_iter_": math.ceil(steps * min(self.batch_size, n) / n),
            # scikit-learn's names of these attributes.
            "_init_size": draft._init_size,
            "_n_init": draft._n_init,
        }
        if not self.compute_labels:
            found["inertia_"] = inertia * (n if rows.weights is None else float(rows.weights.sum()))
        found |= self._after_batch(centers, home, whole, rows, state)
        labels, k = whole.labels() if self.compute_labels else None, len(centers.values)
        warn_of_fewer(centers.n_distinct if labels is None else n_distinct(labels, k), k)
        self._replace_result(found)
        return self

    def partial_fit(self, X, y=None, sample_weight=None):
        """Update the centres with the rows of X as one batch.

        The first call chooses the initial centres from the rows of X.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            The first batch must have at least `n_clusters` rows of positive weight.  Later batches
            may be of another dtype or on another device; the first float64 batch converts the
            centres to float64.
        y : Ignored
        sample_weight : array-like of shape (n_samples,), default=None
            Finite weights >= 0; None gives every row the weight 1.

        Returns
        -------
        self

        Raises
        ------
        ValueError, ImportError, MemoryError
            As :meth:`lloydia.KMeans.fit`; ValueError also for Chunks and Dask collections.

        Warns
        -----
        ConvergenceWarning
            If there are fewer distinct centres than `n_clusters`: after the first batch, and again
            whenever their number falls.
        """
        check_mini_batches(self)
        begun, home = hasattr(self, "cluster_centers_"), home_of(X)
        state = self.__dict__.get("_random_state") if begun else None
        with undone_on_error(state):
            found = self._one_more(X, sample_weight, begun, home, state)
        self._replace_result(found)
        return self

    # -- the steps of fit and partial_fit --------------------------------------------------------

    def _one_more(
        self,
        X: Any,
        sample_weight: Any,
        begun: bool,
        home: Callable[[Any], Any],
        state: RandomState | None,
    ) -> dict[str, Any]:
        """Return the attributes after one more batch, without changing this estimator."""
        _refuse_unread(X)
        draft = self if begun else self._draft()
        rows = WeightedRows.of(check_rows(X, draft, reset=not begun), sample_weight)
        state = state or check_random_state(self.random_state)
        found: dict[str, Any] = {}
        if begun:
            centers = self._so_far(rows.every)
            rows, values = of_one_type(rows, centers.values)
            centers = replace(centers, values=values)
            engine = rows.engine(self.device, self.n_threads, values)
        else:
            rows.refuse_few(self.n_clusters)
            engine = rows.engine(self.device, self.n_threads)
            draft._init_size, (init, _) = init_rows(draft, rows.n_samples), starts_of(draft, rows)
            found["_init_size"] = draft._init_size
            values = drawn_start(draft, rows, init, state)
            check_range(engine, rows.weights, values)
            centers = Centers(values, np.zeros(len(values)))
        centers, _ = do_step(self, engine, rows.weights, centers, state)
        found |= features_of(draft) | self._after_batch(centers, home, engine, rows, state)
        found["n_steps_"] = self._counted("n_steps_") + 1 if begun else 1
        # Warn once, and again only if the number has fallen.
        n_distinct = centers.n_distinct
        if not begun or n_distinct < getattr(self, "_n_distinct", len(centers.values)):
            warn_of_fewer(n_distinct, len(centers.values))
        found["_n_distinct"] = n_distinct
        return found

    def _so_far(self, X: Any) -> Centers:
        """Return the current centres with their counts."""
        values = self._fitted_centers()
        check_width(values, X.shape[1])
        counts = real_numbers("counts_", getattr(self, "counts_", None), "weights")
        if counts.shape != (len(values),) or not (np.isfinite(counts) & (counts >= 0)).all():
            raise ValueError(
                f"counts_ must hold a finite number >= 0 for each of the {len(values)} rows of "
                "cluster_centers_, the weight of the rows of that centre: fit again, or set both."
            )
        return Centers(values, counts.astype(np.float64), self._counted("_since"))

    def _counted(self, name: str) -> int:
        """Return the value of an attribute that is a count, or 0 if the attribute is missing."""
        value = getattr(self, name, 0)
        if not isinstance(value, Integral) or isinstance(value, bool) or value < 0:
            raise ValueError(f"{name}={value!r:.80} must be an integer >= 0: fit again.")
        return int(value)

    def _after_batch(
        self,
        centers: Centers,
        home: Callable[[Any], Any],
        engine: Engine,
        rows: WeightedRows,
        state: RandomState,
    ) -> dict[str, Any]:
        """Return the fitted attributes after a batch, with labels and inertia if `compute_labels`.

        The engine holds the rows of positive weight.
        """
        found = {
            "cluster_centers_": home(centers.values),
            "counts_": centers.counts,
            "device_": engine.name,
            "_random_state": state,
            "_since": centers.since,
        }
        if self.compute_labels:
            engine.classify(centers.values)
            labels = rows.labels(engine.labels(), centers.values, self.device, self.n_threads)
            found["labels_"], found["inertia_"] = home(labels), float(engine.inertia())
        return found


def _refuse_unread(X: Any) -> None:
    """Raise an error for rows that would have to be read or computed first."""
    if is_collection(X) or isinstance(X, Chunks):
        library = type(X).__module__.partition(".")[0]
        raise ValueError(
            f"MiniBatchKMeans needs rows in memory, and X is a {library} {type(X).__name__}: "
            "pass its blocks to partial_fit one by one, each as an array."
        )
