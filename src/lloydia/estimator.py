"""What the estimators share: rows and starts before a fit, and what centres do after it."""

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

# What a fit learns from X itself; scikit-learn's validation sets the first two.  The last are the
# labels of a data frame's columns that are not all text.
FEATURES = ("n_features_in_", "feature_names_in_", "_column_labels")


def check_width(centers: NDArray, n_features: int) -> None:
    """Refuse rows of another number of features than the fitted centres."""
    if centers.shape[1] != n_features:
        raise ValueError(
            f"X has {n_features} features and cluster_centers_ has {centers.shape[1]}: they must "
            "agree."
        )


def warn_of_fewer(found: int, n_clusters: int, stacklevel: int) -> None:
    """Warn, in scikit-learn's words, where a fit found fewer clusters than it was asked for.

    `stacklevel` is what the caller would give to :func:`warnings.warn`.
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
    """Return the name of a start: that of a seeding or of a function."""
    return init if isinstance(init, str) else getattr(init, "__name__", type(init).__name__)


class BaseKMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):
    """An estimator whose result are centres: each row belongs to the nearest."""

    # Starts of the kinds that n_init="auto" takes several of.
    _several: int

    n_clusters: Any
    init: Any
    n_init: Any
    verbose: Any
    device: Any
    n_threads: Any
    cluster_centers_: Any

    def fit_predict(self, X, y=None, sample_weight=None):
        """Cluster the rows of X and return their labels: shape (n_samples,), int32."""
        return self.fit(X, sample_weight=sample_weight).labels_

    def predict(self, X):
        """Return the nearest centre of each row, ties to the lowest index.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)

        Returns
        -------
        labels : array of shape (n_samples,), int32
            In the library and on the device of X; an ndarray on the host.  For a Dask collection a
            Dask array, computed when it is asked for.
        """
        if is_collection(X):
            return load("lloydia.blockwise").blockwise(self, X, "predict")
        return home_of(X)(self._assigned(X).labels())

    def transform(self, X):
        """Return the distance of each row to each centre.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_clusters)
            In the type of X (float32 for half precision), its library and on its device.  For a
            Dask collection a Dask array, computed when it is asked for.
        """
        if is_collection(X):
            return load("lloydia.blockwise").blockwise(self, X, "transform")
        check_is_fitted(self)
        home = on_host if self._gives_frames() else home_of(X)
        centers = self._fitted_centers()
        X = self._check_rows(X, reset=False, a_row=8 * len(centers))
        check_width(centers, X.shape[1])
        engine = choose(self.device, X, None, self.n_threads)
        check_range(engine, None, centers)
        return home(engine.distances(centers))

    def fit_transform(self, X, y=None, sample_weight=None):
        """Cluster the rows of X and return their distances to the centres."""
        return self.fit(X, sample_weight=sample_weight).transform(X)

    def score(self, X, y=None, sample_weight=None):
        """Return minus the inertia of X with the fitted centres: a float.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
        y : Ignored
        sample_weight : array-like of shape (n_samples,), default=None
        """
        return -float(self._assigned(X, sample_weight).inertia())

    @property
    def _n_features_out(self) -> int:
        """The number of distances that :meth:`transform` returns for a row."""
        return int(np.shape(self.cluster_centers_)[0])

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def __getstate__(self):
        """Return what is pickled, so that any machine loads it.

        Arrays on a GPU go to the host; labels on a cluster stay there.
        """
        state = super().__getstate__()
        return {
            name: on_host(x) if on_gpu(x) else x
            for name, x in state.items()
            if not is_collection(x)
        }

    # -- the result, as a whole ----------------------------------------------------------------

    def _draft(self) -> Self:
        """Return an estimator with these parameters that knows no features.

        A fit checks its rows with the draft, so that this estimator keeps its features until the
        fit has a result.
        """
        draft = object.__new__(type(self))
        draft.__dict__ = self._without(FEATURES)
        return draft

    def _features(self) -> dict[str, Any]:
        """Return the number of features, and their names where they have any."""
        return {name: vars(self)[name] for name in FEATURES if name in vars(self)}

    def _replace_result(self, result: dict[str, Any]) -> None:
        """Set the attributes of a result in one step.

        An interrupt leaves the old result or the new one.  Attributes that not every fit has do
        not outlive their fit.
        """
        kept = self._without((*FEATURES, "labels_", "inertia_", "inertia_history_"))
        self.__dict__ = kept | result

    def _without(self, names: tuple[str, ...]) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in names}

    # -- rows and starts ---------------------------------------------------------------------

    def _check_rows(self, X: Any, reset: bool, a_row: int = 0) -> Any:
        """Check X, of which a result of so many bytes a row will be made."""
        if isinstance(X, Chunks):
            return X.meant_for(self, reset, a_row)
        rows = self._rows_of(X, reset)
        labels = labels_of(X)
        if labels is not None and not all(isinstance(label, str) for label in labels):
            self._match_labels(labels, reset)
        return rows

    def _match_labels(self, labels: list[Any], reset: bool) -> None:
        """Keep labels of columns that are not all text, or refuse those in another order.

        scikit-learn compares labels only where all are text.
        """
        if reset:
            self._column_labels = labels
            return
        fitted = getattr(self, "_column_labels", None)
        if fitted is not None and labels != fitted and Counter(labels) == Counter(fitted):
            place = next(i for i, label in enumerate(labels) if label != fitted[i])
            raise ValueError(
                "X has the columns of the fit in another order: column "
                f"{place + 1} is {labels[place]!r}, and was {fitted[place]!r}. Give them in the "
                "order of the fit."
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
        """Return whether set_output makes data frames of what transform returns."""
        config = getattr(self, "_sklearn_output_config", {})
        return config.get("transform", get_config()["transform_output"]) != "default"

    def _starts(self, X: Any, there: bool = False) -> tuple[Any, int]:
        """Return the start (a name, a callable or a checked array) and how many there are.

        With `there`, an array beside X on a GPU that may not be finite: the engine checks that.
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
            # It is shown at once: a start may take longer than all iterations.
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
        """Return the fitted centres on the host as engines take them, wherever they came from.

        Raises
        ------
        ValueError
            Somebody set or forged them: they are no finite real numbers, or no table.
        """
        name, centers = "cluster_centers_", self.cluster_centers_
        centers, own = dense(name, centers)
        if 0 in centers.shape:
            raise ValueError(f"{name} {TABLE.format(shape=centers.shape)}")
        dtype = np.dtype(np.float32 if centers.dtype == np.float32 else np.float64)
        centers = np.ascontiguousarray(in_order_of(self._labels(), name, centers, own), dtype=dtype)
        if not np.isfinite(centers).all():
            raise ValueError(f"{name} holds NaN or infinity: fit anew, or set finite centres.")
        return centers

    def _assigned(self, X: Any, sample_weight: Any = None) -> Engine:
        """Return an engine that holds the rows of positive weight, assigned to the fitted centres.

        Without weights these are all.
        """
        check_is_fitted(self)
        check_threads(self.n_threads)
        centers = self._fitted_centers()
        X = self._check_rows(X, reset=False)
        check_width(centers, X.shape[1])
        rows = WeightedRows.of(X, sample_weight)
        X, weights = rows.X, rows.weights
        if centers.dtype != center_dtype(X):
            # Distances are defined for one type; float64 holds both exactly.
            X = X.double() if on_gpu(X) else X.astype(np.float64)
            centers = centers.astype(np.float64)
        engine = choose(self.device, X, weights, self.n_threads)
        check_range(engine, weights, centers)
        engine.classify(centers)
        return engine
