"""Data frames of pandas, polars and Arrow: their columns as one array of one type.

The type is the one that NumPy promotes those of the columns to, so float32 stays float32,
however a library stores it.  A column of vectors (lists or arrays of one length) is as many
features as its vectors have numbers, named ``name[0]``, ``name[1]`` and so on.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Frame", "is_frame", "names_of", "read_frame", "select"]

REAL = "fiub"
KINDS = {"pandas": ["DataFrame"], "polars": ["DataFrame"], "pyarrow": ["Table", "RecordBatch"]}
VECTORS = (list, tuple, np.ndarray)


@dataclass(frozen=True)
class Frame:
    """The rows of a data frame.

    Attributes
    ----------
    rows : ndarray of shape (n, d), or a sparse matrix where all columns of pandas are sparse
    like : data frame
        It has the names of the d features, and is the frame itself unless that holds vectors.
    """

    rows: Any
    like: Any


def is_frame(X: Any) -> bool:
    """Return whether `X` is a data frame of pandas or polars, or an Arrow table."""
    return _library(X) != ""


def _library(X: Any) -> str:
    for library, names in KINDS.items():
        module = sys.modules.get(library)
        if module is not None and isinstance(X, tuple(getattr(module, name) for name in names)):
            return library
    return ""


def names_of(X: Any) -> list[Any]:
    """Return the names of the columns of a data frame."""
    return list(X.schema.names if _library(X) == "pyarrow" else X.columns)


def select(X: Any, places: Sequence[int]) -> Any:
    """Return a data frame of some columns, by their positions."""
    library = _library(X)
    if library == "pyarrow":
        return X.select(list(places))
    return X.iloc[:, list(places)] if library == "pandas" else X[:, list(places)]


def read_frame(X: Any, where: str = "X") -> Frame | None:
    """Return the rows of a data frame of numbers, which errors call `where`.

    Returns
    -------
    Frame or None
        None for a frame that holds something else than numbers: that is left to scikit-learn's
        validation.

    Raises
    ------
    ValueError
        The vectors of a column have different lengths (it names the row), or a column holds dates.
    """
    library, names = _library(X), names_of(X)
    if library == "pyarrow":
        pyarrow = sys.modules[library]
        X = X if isinstance(X, pyarrow.Table) else pyarrow.Table.from_batches([X])
    if library == "pandas":
        kinds = list(X.dtypes)
        if kinds and all(isinstance(kind, np.dtype) and kind.kind in REAL for kind in kinds):
            return Frame(X.to_numpy(dtype=np.result_type(*kinds)), X)
        if kinds and all(
            hasattr(kind, "subtype") and hasattr(kind, "fill_value") for kind in kinds
        ):
            return Frame(X.sparse.to_coo(), X)
        columns = [_of_pandas(X.iloc[:, j]) for j in range(len(names))]
    else:
        given = X.get_columns() if library == "polars" else X.columns
        columns = [np.asarray(column) for column in given]
    columns = [_numbers(column, name, where) for column, name in zip(columns, names)]
    for column, name in zip(columns, names):
        if column.dtype.kind in "Mm":
            raise ValueError(
                f"{where}: column {name!r} holds {column.dtype}, not real numbers: convert it, or "
                "leave it out."
            )
    if not columns or any(column.dtype.kind not in REAL for column in columns):
        return None
    widths = [column.shape[1] if column.ndim == 2 else 0 for column in columns]
    rows = np.empty(
        (len(columns[0]), sum(width or 1 for width in widths)),
        np.result_type(*(column.dtype for column in columns)),
    )
    start = 0
    for column, width in zip(columns, widths):
        rows[:, start : start + (width or 1)] = column.reshape(len(rows), width or 1)
        start += width or 1
    return Frame(rows, _named(library, names, widths) if any(widths) else X)


def _of_pandas(column: Any) -> NDArray[Any]:
    """Return a column; an extension type as the NumPy type that it stands for."""
    kind = getattr(column.dtype, "numpy_dtype", None)
    if kind is None or kind.kind not in REAL:
        return np.asarray(column)
    if column.isna().any():
        # Missing values are refused later, as NaN.
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    return column.to_numpy(dtype=kind)


def _numbers(column: NDArray[Any], name: Any, where: str) -> NDArray[Any]:
    """Return a column of Python objects as numbers or vectors (n, width), where it holds these."""
    if column.dtype != object or len(column) == 0:
        return column
    if any(isinstance(value, VECTORS) for value in column):
        return _vectors(column, name, where)
    try:
        # As scikit-learn's validation does.
        return column.astype(np.float64)
    except (TypeError, ValueError):
        return column


def _vectors(column: NDArray[Any], name: Any, where: str) -> NDArray[Any]:
    place = where + ": row {:,}, column {!r}"
    for row, value in enumerate(column):
        if not isinstance(value, VECTORS):
            raise ValueError(
                f"{place.format(row + 1, name)} is {value!r:.80} among vectors: fill it in or "
                "remove the row."
            )
    lengths = np.array([len(value) for value in column])
    other = np.flatnonzero(lengths != lengths[0])
    if len(other):
        row = int(other[0])
        raise ValueError(
            f"{place.format(row + 1, name)} holds a vector of {lengths[row]:,} numbers, and "
            f"that of the first row has {lengths[0]:,}: give all the same length."
        )
    try:
        stacked = np.stack([np.asarray(value) for value in column])
        return stacked.astype(np.float64) if stacked.dtype == object else stacked
    except (TypeError, ValueError):
        return column


def _named(library: str, names: Sequence[Any], widths: Sequence[int]) -> Any:
    """Return a frame without rows that has the names of the features."""
    expanded = [
        f"{name}[{i}]" if width else name
        for name, width in zip(names, widths)
        for i in range(width or 1)
    ]
    if len(set(expanded)) < len(expanded):
        twice = next(name for name in expanded if expanded.count(name) > 1)
        raise ValueError(f"X has two columns named {twice!r}: rename one of them.")
    module = sys.modules[library]
    if library == "pandas":
        return module.DataFrame(columns=expanded)
    if library == "polars":
        return module.DataFrame(schema=expanded)
    return module.table({name: module.array([], module.float64()) for name in expanded})
