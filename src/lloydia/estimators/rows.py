"""Rows checked for an estimator: their features, their type and their weights.

Rows go to an engine in three steps, each in one place: :func:`check_rows` checks them (and places
those of a Dask collection on the workers), :class:`~lloydia.backends.weighted.WeightedRows` takes
the weights, and its method ``engine`` chooses the engine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from lloydia.backends.weighted import WeightedRows
from lloydia.data import device_rows
from lloydia.data.arrays import ROWS, is_sound, on_host, refuse_path, rows_on_host
from lloydia.data.chunks.source import Chunks
from lloydia.data.collections import on_cluster
from lloydia.data.device_arrays import center_dtype, on_gpu
from lloydia.data.frames import is_frame, labels_of, names_of, read_frame
from lloydia.data.non_finite import refuse_non_finite
from lloydia.imports import load

__all__ = ["FEATURES", "check_rows", "check_width", "feature_labels", "features_of", "of_one_type"]

# Attributes that describe the features of X.  scikit-learn's validation sets the first two; the
# last holds the column labels of a data frame if they are not all text.
FEATURES = ("n_features_in_", "feature_names_in_", "_column_labels")


def features_of(estimator: Any) -> dict[str, Any]:
    """Return the number of features, and their names if they have any, as attributes."""
    return {name: vars(estimator)[name] for name in FEATURES if name in vars(estimator)}


def feature_labels(estimator: Any) -> Sequence[Any] | None:
    """Return the labels of the features, text or not; None if they have none."""
    return getattr(estimator, "feature_names_in_", getattr(estimator, "_column_labels", None))


def check_width(centers: NDArray, n_features: int) -> None:
    """Raise ValueError if X and the fitted centres have different numbers of features."""
    if centers.shape[1] != n_features:
        raise ValueError(
            f"X has {n_features} features and cluster_centers_ has {centers.shape[1]}: give X the "
            f"{centers.shape[1]} features of the fit."
        )


def of_one_type(rows: WeightedRows, centers: NDArray) -> tuple[WeightedRows, NDArray]:
    """Return both in float64, which represents them exactly, unless they have the same type.

    Distances are defined for rows and centres of one type.
    """
    if centers.dtype == center_dtype(rows.every):
        return rows, centers
    return rows.as_float64(), centers.astype(np.float64)


def check_rows(X: Any, estimator: Any = None, reset: bool = True, a_row: int = 0) -> Any:
    """Return the rows as engines take them.

    Parameters
    ----------
    X : array-like, sparse matrix, data frame, Chunks or Dask collection
    estimator : estimator, optional
        Its features are set, or with ``reset=False`` compared.
    reset : bool
    a_row : int
        Bytes a row of the result to come; Chunks plan their memory with it.
    """
    if isinstance(X, Chunks) and estimator is not None:
        return X.meant_for(estimator, reset, a_row)
    rows = _rows_of(X, estimator, reset)
    labels = None if estimator is None or type(X) is np.ndarray else labels_of(X)
    if labels is not None and not all(isinstance(label, str) for label in labels):
        _match_labels(estimator, labels, reset)
    return rows


def _rows_of(X: Any, estimator: Any, reset: bool) -> Any:
    if on_cluster(X):
        return load("lloydia.backends.cluster.partitions").place(X, estimator, reset)
    if on_gpu(X):
        return device_rows.check_rows(X, estimator, reset)
    refuse_path(X)
    if estimator is None:
        rows = check_array(rows_on_host(X), **ROWS, input_name="X")
        refuse_non_finite(rows, given=X, names=labels_of(X))
        return rows
    if is_sound(X) and not hasattr(estimator, "feature_names_in_"):
        if reset:
            estimator.n_features_in_ = X.shape[1]
        if getattr(estimator, "n_features_in_", X.shape[1]) == X.shape[1]:
            return X
    frame = read_frame(X) if is_frame(X) else None
    if frame is None:
        rows = validate_data(estimator, rows_on_host(X), reset=reset, **ROWS)
        refuse_non_finite(rows, given=X, names=labels_of(X))
        return rows
    validate_data(estimator, frame.like, reset=reset, skip_check_array=True)
    rows = check_array(on_host(frame.rows), **ROWS, estimator=estimator, input_name="X")
    refuse_non_finite(rows, given=X, names=names_of(frame.like))
    return rows


def _match_labels(estimator: Any, labels: list[Any], reset: bool) -> None:
    """Store column labels that are not all text, or refuse them in another order.

    scikit-learn compares labels only if all of them are text.
    """
    if reset:
        estimator._column_labels = labels
        return
    fitted = getattr(estimator, "_column_labels", None)
    if fitted is not None and labels != fitted and Counter(labels) == Counter(fitted):
        place = next(i for i, label in enumerate(labels) if label != fitted[i])
        raise ValueError(
            "X has the columns of the fit in another order: column "
            f"{place + 1} is {labels[place]!r} and was {fitted[place]!r} in the fit. Give the "
            "columns in the order of the fit."
        )
