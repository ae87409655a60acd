"""Centres from callers: initial centres, arguments, and attributes of estimators."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from lloydia.data.arrays import array_of, on_host, real_numbers
from lloydia.data.frames import is_frame, is_named, labels_of, names_of, read_frame

__all__ = ["TABLE", "dense", "in_order_of", "is_plain", "opened"]

FLOATS = (np.dtype(np.float32), np.dtype(np.float64))

# The end of the error for centres that are not a table.
TABLE = (
    "has shape {shape} and must be (n_clusters, n_features): a row of features for each cluster."
)


def is_plain(centers: Any, dtype: np.dtype) -> bool:
    """Return whether centres are a finite ndarray of this type, which needs no more checks.

    scikit-learn's checks take longer than an iteration over few rows.
    """
    plain = type(centers) is np.ndarray and centers.dtype == dtype and centers.ndim == 2
    return plain and centers.size > 0 and bool(np.isfinite(centers).all())


def opened(X: Any, name: str = "X") -> tuple[Any, list[Any] | None]:
    """Return the rows and the feature labels of X; labels are None if X has none.

    A data frame is converted to an array; everything else is returned unchanged.  Errors call the
    frame `name`.
    """
    frame = read_frame(X, name) if is_frame(X) else None
    if frame is not None:
        return frame.rows, names_of(frame.like)
    return X, labels_of(X)


def dense(name: str, centers: Any, wanted: str = TABLE) -> tuple[NDArray, list[Any] | None]:
    """Return centres as a dense array of real numbers on the host, and the labels of its columns.

    Parameters
    ----------
    name : str
        The name of the centres in errors.
    centers : array-like, sparse matrix or data frame
    wanted : str
        The end of the error for a ``{shape}`` that does not have two dimensions.

    Raises
    ------
    ValueError
        If the centres do not have two dimensions, or are not real numbers; see
        :func:`lloydia.data.arrays.real_numbers`.
    """
    if type(centers) is np.ndarray and centers.ndim == 2 and centers.dtype in FLOATS:
        # The usual case: nothing to convert.
        return centers, None
    centers, names = opened(centers, name)
    centers = on_host(centers.toarray() if sp.issparse(centers) else centers)
    table = array_of(name, centers)
    if table.ndim != 2:
        raise ValueError(f"{name} {wanted.format(shape=table.shape)}")
    return real_numbers(name, table, "centres"), names


def in_order_of(
    names: Sequence[Any] | None, name: str, centers: NDArray, own: Sequence[Any] | None
) -> NDArray:
    """Return centres with their columns in the order of the features of X.

    Labels of any type are matched.  If one side has the labels 0, 1, 2, ... and the other side has
    different labels, columns are matched by position.

    Parameters
    ----------
    names : sequence or None
        Labels of the features of X; None if they have none.
    name : str
        The name of the centres in errors.
    centers : ndarray of shape (k, d)
    own : sequence or None
        Labels of the columns of `centers`; None if they have none.

    Raises
    ------
    ValueError
        If both have labels that differ.
    """
    if names is None or own is None or list(names) == list(own):
        return centers
    wanted, found = Counter(names), Counter(own)
    if wanted != found and not (is_named(names) and is_named(own)):
        return centers
    problem = ""
    if several := [each for each, count in (wanted + found).items() if count > 2]:
        problem = f"X or {name} has several columns {several[0]!r}"
    elif missing := wanted - found:
        problem = f"{name} has no column {next(iter(missing))!r}, and X has one"
    elif surplus := found - wanted:
        problem = f"{name} has a column {next(iter(surplus))!r}, and X has none"
    if problem:
        raise ValueError(
            f"{problem}: columns are matched by name, so give {name} the columns "
            f"{', '.join(map(repr, names))}, or an array."
        )
    return centers[:, [list(own).index(each) for each in names]]
