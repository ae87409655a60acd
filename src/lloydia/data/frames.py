"""Data frames of pandas, polars and Arrow: their columns as one array of one type.

The type is the one to which NumPy promotes the types of the columns, so float32 stays float32 in
every library.  Each number of a column of vectors (lists or arrays of one length) is a feature,
named ``name[0]``, ``name[1]`` and so on.
"""

from __future__ import annotations

import datetime
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lloydia.data.numbers import real_number
from lloydia.imports import load

__all__ = [
    "Frame",
    "array_from",
    "floats_of",
    "is_frame",
    "is_named",
    "labels_of",
    "library_of",
    "names_of",
    "not_numbers",
    "read_frame",
    "select",
    "too_large",
    "values_of",
]

REAL = "fiub"
KINDS = {"pandas": ["DataFrame"], "polars": ["DataFrame"], "pyarrow": ["Table", "RecordBatch"]}
VECTORS = (list, tuple, np.ndarray)
# Kinds of arrays whose values are checked one by one.
TEXT_OR_OBJECTS = "OSUT"
# Names of the types that pandas registers in Arrow and polars, for periods and intervals.  Their
# integers are no numbers.
OF_PANDAS = "pandas."
DATES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)


@dataclass(frozen=True)
class Frame:
    """The rows of a data frame.

    Attributes
    ----------
    rows : ndarray of shape (n, d), or a sparse matrix where all columns of pandas are sparse
    like : data frame
        A frame with the names of the d features; the frame itself unless it holds vectors.
    """

    rows: Any
    like: Any


def is_frame(X: Any) -> bool:
    """Return whether `X` is a data frame of pandas or polars, or an Arrow table."""
    return library_of(X) != ""


def library_of(X: Any) -> str:
    """Return the library of a data frame; "" for other objects."""
    for library, names in KINDS.items():
        module = sys.modules.get(library)
        if module is not None and isinstance(X, tuple(getattr(module, name) for name in names)):
            return library
    return ""


def names_of(X: Any) -> list[Any]:
    """Return the names of the columns of a data frame, without a pandas index in an Arrow table."""
    if library_of(X) != "pyarrow":
        return list(X.columns)
    return load("lloydia.data.arrow").feature_names(X.schema)


def labels_of(X: Any) -> list[Any] | None:
    """Return the column labels of a data frame of any library; None for other objects."""
    if is_frame(X):
        return names_of(X)
    columns = getattr(X, "columns", None)
    return None if columns is None or callable(columns) else list(columns)


def is_named(labels: Sequence[Any]) -> bool:
    """Return whether labels are names, and not merely the positions 0, 1, 2, ..."""
    return list(labels) != list(range(len(labels)))


def _features(X: Any) -> list[int]:
    """Return the positions of an Arrow table's columns that are not a pandas index."""
    names = names_of(X)
    return [i for i, name in enumerate(X.schema.names) if name in names]


def select(X: Any, places: Sequence[int]) -> Any:
    """Return a data frame of some columns, by their positions in :func:`names_of`."""
    library = library_of(X)
    if library == "pyarrow":
        features = _features(X)
        return X.select([features[place] for place in places])
    return X.iloc[:, list(places)] if library == "pandas" else X[:, list(places)]


def read_frame(X: Any, where: str = "X") -> Frame | None:
    """Return the rows of a data frame of numbers; errors call the frame `where`.

    Returns
    -------
    Frame or None
        None if the frame has no columns, or a column that does not hold numbers.

    Raises
    ------
    ValueError
        If the vectors of a column have different lengths (the message names the row), or if a
        column holds dates.
    """
    library, names = library_of(X), names_of(X)
    if library == "pyarrow":
        pyarrow = sys.modules[library]
        X = X if isinstance(X, pyarrow.Table) else pyarrow.Table.from_batches([X])
        if twice := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"{where} has two columns named {twice[0]!r}: rename one of them.")
        X = X.select(_features(X))
    if library == "pandas":
        kinds = list(X.dtypes)
        if kinds and all(isinstance(kind, np.dtype) and kind.kind in REAL for kind in kinds):
            return Frame(X.to_numpy(dtype=np.result_type(*kinds)), X)
        if kinds and all(
            hasattr(kind, "subtype") and hasattr(kind, "fill_value") for kind in kinds
        ):
            common = np.result_type(*(kind.subtype for kind in kinds))
            # Columns with another fill value are read as dense columns.
            if common.kind in REAL and all(kind.fill_value == 0 for kind in kinds):
                dtype = sys.modules[library].SparseDtype(common, common.type(0))
                return Frame(X.astype(dtype).sparse.to_coo(), X)
        columns = [_of_pandas(X.iloc[:, j]) for j in range(len(names))]
    else:
        given = X.get_columns() if library == "polars" else X.columns
        for kind, name in zip(_extensions(X, library), names):
            if kind.startswith(OF_PANDAS):
                raise not_numbers(f"{where}: column {name!r}", kind)
        columns = [
            _of_series(each, f"{where}: column {name!r}") for each, name in zip(given, names)
        ]
    columns = [_numbers(column, name, where) for column, name in zip(columns, names)]
    for column, name in zip(columns, names):
        if column.dtype.kind in "Mm":
            raise not_numbers(f"{where}: column {name!r}", column.dtype)
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


def too_large(what: str) -> ValueError:
    """Return the error for whole numbers, of Python, that float64 cannot hold."""
    return ValueError(f"{what} holds numbers too large for float64: scale them down.")


def not_numbers(what: str, held: object) -> ValueError:
    """Return the error for a column, or an array, of dates, spans of time, periods or the like."""
    return ValueError(
        f"{what} holds {held!s:.80}, not real numbers: convert it to numbers, such as days since a "
        "date, or leave it out."
    )


def _extensions(X: Any, library: str) -> list[str]:
    """Return the name of each column's extension type; "" for columns of other types."""
    if library == "pyarrow":
        return [load("lloydia.data.arrow_values").extension_of(field) for field in X.schema]
    # Earlier versions of polars have none.
    return [kind.ext_name() if hasattr(kind, "ext_name") else "" for kind in X.dtypes]


def _of_pandas(column: Any) -> NDArray[Any]:
    """Return a column; an extension type becomes the NumPy type of its values."""
    kind = getattr(column.dtype, "numpy_dtype", None)
    if kind is None or kind.kind not in REAL:
        return np.asarray(column)
    if column.isna().any():
        # Missing values become NaN, which is refused later.
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    return column.to_numpy(dtype=kind)


def array_from(X: Any, where: str) -> NDArray[Any]:
    """Return an array of another library as an ndarray; errors call it `where`.

    Raises
    ------
    ValueError
        If NumPy has no type for the values, such as unions of types.
    """
    try:
        return np.asarray(X)
    except NotImplementedError:
        kind = getattr(X, "type", None) or type(X).__name__
        raise ValueError(
            f"{where} holds {kind}, not real numbers: convert it, or leave it out."
        ) from None


def values_of(column: Any) -> Sequence[Any]:
    """Return the values of a data frame of one column."""
    library = library_of(column)
    if library == "pandas":
        return list(column.iloc[:, 0])
    held = column.to_series() if library == "polars" else column.column(0)
    return held.to_list() if library == "polars" else held.to_pylist()


def _of_series(column: Any, where: str) -> NDArray[Any]:
    """Return a column of polars or Arrow; structs become objects, because they are not vectors."""
    array = array_from(column, where)
    if array.ndim == 2 and hasattr(column, "struct") and hasattr(column.dtype, "fields"):
        array = np.empty(len(column), object)
        array[:] = column.to_list()
    return array


def _numbers(column: NDArray[Any], name: Any, where: str) -> NDArray[Any]:
    """Return a column of Python objects as numbers or vectors (n, width), if it holds such."""
    if column.dtype.kind not in TEXT_OR_OBJECTS or len(column) == 0:
        return column
    if any(isinstance(value, VECTORS) for value in column):
        return _vectors(column, name, where)
    for value in column:
        if isinstance(value, DATES):
            raise not_numbers(f"{where}: column {name!r}", repr(value))
    try:
        return floats_of(column)
    except OverflowError:
        raise too_large(f"{where}: column {name!r}") from None
    except (TypeError, ValueError):
        return column


def floats_of(values: NDArray[Any]) -> NDArray[np.float64]:
    """Return Python objects or texts as numbers.

    This is stricter than NumPy, which reads the text ``"1_2"`` as 12, and dates as numbers.

    Raises
    ------
    ValueError
        If a value is a date, or a text that is not a number (see docs/tables.md).
    TypeError or OverflowError
        If a value is of another type, or too large.
    """
    numbers = values.astype(object)
    for place, value in np.ndenumerate(numbers):
        if isinstance(value, DATES):
            raise ValueError(f"{value!r:.80} is not a real number")
        if isinstance(value, str | bytes):
            text = value if isinstance(value, str) else value.decode("latin-1")
            numbers[place] = real_number(text)
    return numbers.astype(np.float64)


def _vectors(column: NDArray[Any], name: Any, where: str) -> NDArray[Any]:
    place = where + ": row {:,}, column {!r}"
    for row, value in enumerate(column):
        if not isinstance(value, VECTORS):
            raise ValueError(
                f"{place.format(row + 1, name)} is {value!r:.80}, and other rows are vectors: "
                "fill it in or remove the row."
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
        if stacked.ndim != 2 or stacked.shape[1] == 0:
            # Nested or empty vectors.
            return column
        return floats_of(stacked) if stacked.dtype.kind in TEXT_OR_OBJECTS else stacked
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
