"""The base class of the estimators: checks of rows and starts, and the methods of a fitted one."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted, validate_data

from lloydia.backends import choose
from lloydia.backends.engine import Engine
from lloydia.backends.weighted import WeightedRows
from lloydia.data.arrays import (
    ROWS,
    home_of,
    is_sound,
    on_host,
    refuse_path,
    rows_on_host,
)
from lloydia.data.centers import TABLE, dense, in_order_of
from lloydia.data.chunks.source import Chunks
from lloydia.data.collections import is_collection, on_cluster
from lloydia.data.device_arrays import center_dtype, on_gpu
from lloydia.data.device_rows import check_rows
from lloydia.data.frames import is_frame, labels_of, read_frame
from lloydia.imports import load
from lloydia.parameters import check_range, check_threads
from lloydia.seeding import SEEDINGS
from lloydia.seeding.given import called, checked, fits
from lloydia.spelling import either, option

__all__ = ["BaseKMeans", "check_width", "warn_of_fewer"]

# Attributes that describe the features of X.  scikit-learn's validation sets the first two; the
# last holds the column labels of a data frame if they are not all text.
FEATURES = ("n_features_in_", "feature_names_in_", "_column_labels")


def check_width(centers: NDArray, n_features: int) -> None:
    """Raise ValueError if X and the fitted centres have different numbers of features."""
    if centers.shape[1] != n_features:
        raise ValueError(
            f"X has {n_features} features and cluster_centers_ has {centers.shape[1]}: give X the "
            f"{centers.shape[1]} features of the fit."
        )


def warn_of_fewer(found: int, n_clusters: int, stacklevel: int) -> None:
    """Warn, in scikit-learn's words, if a fit found fewer distinct clusters than `n_clusters`.

    `stacklevel` is the level that the caller would pass to :func:`warnings.warn`.
    """
    if found < n_clusters:
        warnings.warn(
            f"Number of distinct clusters ({found}) found smaller than "
            f"{option('n_clusters')} ({n_clusters}). "
            f"Possibly due to duplicate {either('points in X', 'rows')}.",
            ConvergenceWarning,
            stacklevel=stacklevel + 1,
        )


def _called(init: Any) -> str:
    """Return the name of a start: the name of a seeding or of a callable."""
    return init if isinstance(init, str) else getattr(init, "__name__", type(init).__name__)


class BaseKMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):
    """An estimator whose result is a set of centres; each row belongs to the nearest centre."""

    # The number of runs with n_init="auto" if the start is random or a callable.
    _several: int

    n_clusters: Any
    init: Any
    n_init: Any
    verbose: Any
    device: Any
    n_threads: Any
    cluster_centers_: Any

    def fit_predict(self, X, y=None, sample_weight=None):
        """Cluster the rows of X and return their labels.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or Chunks of shape (n_samples, n_features)
            As in :meth:`fit`.
        y : Ignored
        sample_weight : array-like of shape (n_samples,), default=None
            As in :meth:`fit`.

        Returns
        -------
        labels : array of shape (n_samples,), int32
            The index of the nearest centre of each row: ``labels_``.
        """
        return self.fit(X, sample_weight=sample_weight).labels_

    def predict(self, X):
        """Return the index of the nearest centre of each row.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or Chunks of shape (n_samples, n_features)
            Rows with the features of the fit.

        Returns
        -------
        labels : array of shape (n_samples,), int32
            The lowest index among equally near centres.  For X on a GPU, an array of the same
            library on that GPU; for a Dask collection, a lazy Dask array; otherwise an ndarray.

        Raises
        ------
        NotFittedError
            If the estimator has no centres yet.
        ValueError
            If X has other features than the fit, holds NaN or infinity, or has values so large that
            squared distances could overflow.
        """
        if is_collection(X):
            return load("lloydia.estimators.blockwise").blockwise(self, X, "predict")
        return home_of(X)(self._assigned(X).labels())

    def transform(self, X):
        """Return the Euclidean distance of each row to each centre.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or Chunks of shape (n_samples, n_features)
            Rows with the features of the fit.

        Returns
        -------
        distances : array of shape (n_samples, n_clusters), float32 or float64
            float32 for X in float32 or half precision, otherwise float64.  For X on a GPU, an array
            of the same library on that GPU; for a Dask collection, a lazy Dask array; otherwise an
            ndarray, or a data frame after ``set_output``.

        Raises
        ------
        NotFittedError
            If the estimator has no centres yet.
        ValueError
            If X has other features than the fit, holds NaN or infinity, or has values so large that
            squared distances could overflow.
        """
        if is_collection(X):
            return load("lloydia.estimators.blockwise").blockwise(self, X, "transform")
        check_is_fitted(self)
        home = on_host if self._gives_frames() else home_of(X)
        centers = self._fitted_centers()
        X = self._check_rows(X, reset=False, a_row=8 * len(centers))
        check_width(centers, X.shape[1])
        engine = choose(self.device, X, None, self.n_threads)
        check_range(engine, None, centers)
        return home(engine.distances(centers))

    def fit_transform(self, X, y=None, sample_weight=None):
        """Cluster the rows of X and return their distances to the centres.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or Chunks of shape (n_samples, n_features)
            As in :meth:`fit`.
        y : Ignored
        sample_weight : array-like of shape (n_samples,), default=None
            As in :meth:`fit`.

        Returns
        -------
        distances : array of shape (n_samples, n_clusters), float32 or float64
            The result of ``transform(X)``.
        """
        return self.fit(X, sample_weight=sample_weight).transform(X)

    def score(self, X, y=None, sample_weight=None):
        """Return the negative inertia of X for the fitted centres.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or Chunks of shape (n_samples, n_features)
            Rows with the features of the fit.
        y : Ignored
        sample_weight : array-like of shape (n_samples,), default=None
            Finite weights >= 0; None gives every row the weight 1.

        Returns
        -------
        score : float
            Minus the sum over the rows of weight times squared distance to the nearest centre.

        Raises
        ------
        NotFittedError
            If the estimator has no centres yet.
        ValueError
            If X has other features than the fit, holds NaN or infinity, or has values so large that
            squared distances could overflow.
        """
        return -float(self._assigned(X, sample_weight).inertia())

    @property
    def _n_features_out(self) -> int:
        """The number of columns that :meth:`transform` returns."""
        return int(np.shape(self.cluster_centers_)[0])

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def __getstate__(self):
        """Return the state to pickle, which any machine can load.

        Arrays on a GPU are copied to the CPU; Dask collections are left out.
        """
        state = super().__getstate__()
        return {
            name: on_host(x) if on_gpu(x) else x
            for name, x in state.items()
            if not is_collection(x)
        }

    # -- setting the result in one step --------------------------------------------------------

    def _draft(self) -> Self:
        """Return an estimator with these parameters and no attributes about features.

        A fit checks its rows with the draft, so that this estimator keeps its old attributes until
        the fit has a result.
        """
        draft = object.__new__(type(self))
        draft.__dict__ = self._without(FEATURES)
        return draft

    def _features(self) -> dict[str, Any]:
        """Return the number of features, and their names if they have any, as attributes."""
        return {name: vars(self)[name] for name in FEATURES if name in vars(self)}

    def _replace_result(self, result: dict[str, Any]) -> None:
        """Set the attributes of a result in one step.

        An interrupt leaves either the old result or the new one.  Attributes of the old result that
        not every fit sets are removed.
        """
        kept = self._without((*FEATURES, "labels_", "inertia_", "inertia_history_"))
        self.__dict__ = kept | result

    def _without(self, names: tuple[str, ...]) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in names}

    # -- rows and starts ---------------------------------------------------------------------

    def _check_rows(self, X: Any, reset: bool, a_row: int = 0) -> Any:
        """Return X checked; `a_row` is the size in bytes of a row of the result to come."""
        if isinstance(X, Chunks):
            return X.meant_for(self, reset, a_row)
        rows = self._rows_of(X, reset)
        labels = labels_of(X)
        if labels is not None and not all(isinstance(label, str) for label in labels):
            self._match_labels(labels, reset)
        return rows

    def _match_labels(self, labels: list[Any], reset: bool) -> None:
        """Store column labels that are not all text, or refuse them in another order.

        scikit-learn compares labels only if all of them are text.
        """
        if reset:
            self._column_labels = labels
            return
        fitted = getattr(self, "_column_labels", None)
        if fitted is not None and labels != fitted and Counter(labels) == Counter(fitted):
            place = next(i for i, label in enumerate(labels) if label != fitted[i])
            raise ValueError(
                "X has the columns of the fit in another order: column "
                f"{place + 1} is {labels[place]!r} and was {fitted[place]!r} in the fit. Give the "
                "columns in the order of the fit."
            )

    def _rows_of(self, X: Any, reset: bool) -> Any:
        if on_cluster(X):
            return load("lloydia.backends.cluster.partitions").place(X, self, reset)
        if on_gpu(X):
            return check_rows(X, self, reset)
        refuse_path(X)
        if is_sound(X) and not hasattr(self, "feature_names_in_"):
            if reset:
                self.n_features_in_ = X.shape[1]
            if getattr(self, "n_features_in_", X.shape[1]) == X.shape[1]:
                return X
        frame = read_frame(X) if is_frame(X) else None
        if frame is None:
            return validate_data(self, rows_on_host(X), reset=reset, **ROWS)
        validate_data(self, frame.like, reset=reset, skip_check_array=True)
        return check_array(on_host(frame.rows), **ROWS, estimator=self, input_name="X")

    def _gives_frames(self) -> bool:
        """Return whether set_output converts the result of transform into a data frame."""
        config = getattr(self, "_sklearn_output_config", {})
        return config.get("transform", get_config()["transform_output"]) != "default"

    def _starts(self, X: Any, there: bool = False) -> tuple[Any, int]:
        """Return the start (a name, a callable or a checked array) and the number of runs.

        With `there`, an array on X's GPU is returned as it is, and the engine checks that it is
        finite.
        """
        init, n_init = self.init, self.n_init
        if n_init == "auto":
            several = callable(init) or (isinstance(init, str) and init == "random")
            n_init = self._several if several else 1
        if isinstance(init, str) or callable(init):
            return init, n_init
        if n_init != 1:
            warnings.warn(
                "Explicit initial center position passed: performing only one init in "
                f"{type(self).__name__} instead of n_init={n_init}.",
                RuntimeWarning,
                stacklevel=3,
            )
        if there and fits(init, X, self.n_clusters):
            return init, 1
        return self._checked(init, X), 1

    def _labels(self) -> Sequence[Any] | None:
        """Return the labels of the features, text or not; None if they have none."""
        return getattr(self, "feature_names_in_", getattr(self, "_column_labels", None))

    def _checked(self, init: Any, X: Any) -> NDArray:
        return checked(init, X, self.n_clusters, self._labels())

    def _seed(
        self, engine: Engine, X: Any, init: Any, random_state: np.random.RandomState | None
    ) -> NDArray:
        began, drawn = time.perf_counter(), isinstance(init, str) or callable(init)
        if self.verbose and drawn:
            # Flush: choosing a start may take longer than all iterations.
            print(f"Initialization by {_called(init)}...", flush=True)
        if isinstance(init, str):
            assert random_state is not None
            centers = engine.rows(SEEDINGS[init](engine, self.n_clusters, random_state))
        elif callable(init):
            centers = self._checked(called(init, X, self.n_clusters, random_state), X)
        else:
            centers = init
        if self.verbose:
            took = f" in {time.perf_counter() - began:.3g} s" if drawn else ""
            print(f"Initialization complete{took}")
        return centers

    def _fitted_centers(self) -> NDArray:
        """Return the fitted centres as a contiguous float32 or float64 ndarray.

        Raises
        ------
        ValueError
            If ``cluster_centers_`` was set by hand or loaded from a damaged file, and is not a
            table of finite real numbers.
        """
        name, centers = "cluster_centers_", self.cluster_centers_
        centers, own = dense(name, centers)
        if 0 in centers.shape:
            raise ValueError(f"{name} {TABLE.format(shape=centers.shape)}")
        dtype = np.dtype(np.float32 if centers.dtype == np.float32 else np.float64)
        centers = np.ascontiguousarray(in_order_of(self._labels(), name, centers, own), dtype=dtype)
        if not np.isfinite(centers).all():
            raise ValueError(f"{name} holds NaN or infinity: fit again, or set finite centres.")
        return centers

    def _assigned(self, X: Any, sample_weight: Any = None) -> Engine:
        """Return an engine with the rows of positive weight assigned to the fitted centres.

        Without weights, the engine holds all rows.
        """
        check_is_fitted(self)
        check_threads(self.n_threads)
        centers = self._fitted_centers()
        X = self._check_rows(X, reset=False)
        check_width(centers, X.shape[1])
        rows = WeightedRows.of(X, sample_weight)
        X, weights = rows.X, rows.weights
        if centers.dtype != center_dtype(X):
            # Distances are defined between values of one type; float64 holds both types exactly.
            X = X.double() if on_gpu(X) else X.astype(np.float64)
            centers = centers.astype(np.float64)
        engine = choose(self.device, X, weights, self.n_threads)
        check_range(engine, weights, centers)
        engine.classify(centers)
        return engine
