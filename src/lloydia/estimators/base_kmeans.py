"""The base class of the estimators: the methods of a fitted one, and how a result is set."""

from __future__ import annotations

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
from sklearn.utils.validation import check_is_fitted

from lloydia.backends.engine import Engine
from lloydia.backends.weighted import WeightedRows
from lloydia.caller import warn_caller
from lloydia.data.arrays import home_of, on_host
from lloydia.data.centers import TABLE, dense, in_order_of
from lloydia.data.collections import is_collection
from lloydia.data.device_arrays import on_gpu
from lloydia.estimators.rows import FEATURES, check_rows, check_width, feature_labels, of_one_type
from lloydia.imports import load
from lloydia.parameters import check_threads
from lloydia.spelling import either, option

__all__ = ["BaseKMeans", "warn_of_fewer"]


def warn_of_fewer(found: int, n_clusters: int) -> None:
    """Warn, in scikit-learn's words, if a fit found fewer distinct clusters than `n_clusters`."""
    if found < n_clusters:
        warn_caller(
            f"Number of distinct clusters ({found}) found smaller than "
            f"{option('n_clusters')} ({n_clusters}). "
            f"Possibly due to duplicate {either('points in X', 'rows')}.",
            ConvergenceWarning,
        )


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
        X = check_rows(X, self, reset=False, a_row=8 * len(centers))
        check_width(centers, X.shape[1])
        engine = WeightedRows.of(X, None).engine(self.device, self.n_threads, centers)
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

    def _replace_result(self, result: dict[str, Any]) -> None:
        """Set the attributes of a result in one step.

        An interrupt leaves either the old result or the new one.  Attributes of the old result that
        not every fit sets are removed.
        """
        kept = self._without((*FEATURES, "labels_", "inertia_", "inertia_history_"))
        self.__dict__ = kept | result

    def _without(self, names: tuple[str, ...]) -> dict[str, Any]:
        kept = dict(vars(self))
        for name in names:
            kept.pop(name, None)
        return kept

    def _reads_start(self) -> bool:
        """Return whether given centres must be on the host, even if they are with X on a GPU."""
        return True

    # -- what methods are made of ----------------------------------------------------------------

    def _gives_frames(self) -> bool:
        """Return whether set_output converts the result of transform into a data frame."""
        config = getattr(self, "_sklearn_output_config", {})
        return config.get("transform", get_config()["transform_output"]) != "default"

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
        centers = in_order_of(feature_labels(self), name, centers, own)
        centers = np.ascontiguousarray(centers, dtype=dtype)
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
        X = check_rows(X, self, reset=False)
        check_width(centers, X.shape[1])
        rows, centers = of_one_type(WeightedRows.of(X, sample_weight), centers)
        engine = rows.engine(self.device, self.n_threads, centers)
        engine.classify(centers)
        return engine
