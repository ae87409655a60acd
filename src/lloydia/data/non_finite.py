"""The error for NaN and infinity in rows: where they are, and which call removes them.

A message names a place twice: the row and the column counted from 1, or the column by its name, and
the index that Python takes.  It begins like scikit-learn's, whose texts callers match.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from lloydia.data.collections import is_collection
from lloydia.data.frames import is_frame, library_of, names_of

__all__ = ["FINITE_CENTERS", "advice_for", "refuse_non_finite"]

# What to do about centres.
FINITE_CENTERS = "every number of a centre must be finite"

# Calls that drop the rows that hold NaN, or infinity, and calls that fill NaN in; no call fills
# infinity in.  Each returns new rows.
DROP = {
    "numpy": "X[numpy.isfinite(X).all(axis=1)]",
    "list": "X[numpy.isfinite(X).all(axis=1)] after X = numpy.array(X, dtype=float)",
    "sparse": "X.tocsr()[numpy.isfinite(numpy.ravel(X.sum(axis=1)))]",
    "torch": "X[X.isfinite().all(dim=1)]",
    "dask": "X[dask.array.isfinite(X).all(axis=1)]",
    "pandas": "X.dropna()",
    "polars": "X.fill_nan(None).drop_nulls()",
    "pyarrow": "X.to_pandas().dropna()",
}
DROP_INFINITY = {
    "pandas": "X.replace([numpy.inf, -numpy.inf], numpy.nan).dropna()",
    "polars": "X.filter(polars.all_horizontal(polars.all().is_finite()))",
    "pyarrow": "X.to_pandas().replace([numpy.inf, -numpy.inf], numpy.nan).dropna()",
}
FILL = {
    "torch": "torch.where(X.isnan(), X.nanmean(dim=0), X)",
    "pandas": "X.fillna(X.mean())",
    "polars": "X.fill_nan(None).fill_null(strategy='mean')",
    "dask": "",
}
# Of scikit-learn, for all other arrays.
IMPUTER = "sklearn.impute.SimpleImputer().fit_transform(X)"


def refuse_non_finite(
    X: Any,
    name: str = "X",
    given: Any = None,
    names: Sequence[Any] | None = None,
    advice: str | None = None,
) -> None:
    """Refuse NaN and infinity in an array.

    Parameters
    ----------
    X : ndarray of one or two dimensions, or a CSR matrix
    name : str
        The name of the array in the error.
    given : object, optional
        What the caller gave for `X`, such as a data frame; the advice is for its library.
    names : sequence, optional
        Labels of the columns.
    advice : str, optional
        What to do; by default the calls that drop rows or fill in values.

    Raises
    ------
    ValueError
        The message says how many rows hold NaN (or infinity, if none does), and where the first is.
    """
    values = X.data if sp.issparse(X) else X
    if values.dtype.kind != "f":
        return
    with np.errstate(over="ignore", invalid="ignore"):
        # A finite sum proves that every term is finite, at a fraction of the memory of isfinite(X).
        if math.isfinite(values.sum()) or np.isfinite(values).all():
            return
    missing = bool(np.isnan(values).any())
    rows, first = _where(X, np.isnan(values) if missing else np.isinf(values))
    found = "NaN" if missing else "infinity"
    wide = getattr(given, "dtype", None)
    given = X if given is None else given
    if not missing and isinstance(wide, np.dtype) and wide.itemsize > values.dtype.itemsize:
        found += f", or a value too large for {values.dtype},"
        advice = f"scale the values down to the range of {values.dtype}"
    elif advice is None:
        advice = advice_for(given, missing, names)
    place = _place(name, first, given, names)
    if X.ndim == 2:
        several = f"in {rows:,} of {X.shape[0]:,} rows, {'first ' if rows > 1 else ''}at "
    else:
        several = "at " if rows == 1 else f"{rows:,} times, first at "
    raise ValueError(f"Input {name} contains {found} {several}{place}; {advice}.")


def advice_for(given: Any, missing: bool, names: Sequence[Any] | None = None) -> str:
    """Return the calls that drop the rows of NaN (or of infinity), or fill NaN in.

    Parameters
    ----------
    given : object
        What the caller gave: an array or a data frame.
    missing : bool
        True for NaN, False for infinity.
    names : sequence, optional
        Labels of the features.
    """
    kind = _kind_of(given)
    if is_frame(given) and names is not None and len(names) != len(names_of(given)):
        # A column of vectors; no call finds NaN within them.
        return "drop such rows, or give finite values"
    drop = DROP[kind] if missing else DROP_INFINITY.get(kind, DROP[kind])
    if kind == "dask" and hasattr(given, "columns"):
        drop = DROP["pandas"] if missing else DROP_INFINITY["pandas"]
    fill = FILL.get(kind, IMPUTER) if missing else ""
    if kind == "pyarrow" or (kind == "pandas" and not _all_numeric(given)):
        fill = ""
    return f"drop such rows by {drop}" + (f", or fill them in by {fill}" if fill else "")


def _all_numeric(frame: Any) -> bool:
    """Return whether pandas computes means of all columns, which text and objects prevent."""
    return frame.select_dtypes("number").shape[1] == frame.shape[1]


def _kind_of(given: Any) -> str:
    """Return which calls take what the caller gave: a key of :data:`DROP`."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(given, torch.Tensor):
        return "torch"
    if is_collection(given):
        return "dask"
    if sp.issparse(given):
        return "sparse"
    number = isinstance(given, np.ndarray) and given.dtype.kind == "f"
    return library_of(given) or ("numpy" if number else "list")


def _where(X: Any, wrong: Any) -> tuple[int, tuple[int, ...]]:
    """Return how many rows hold a wrong value, and the index of the first one."""
    if not sp.issparse(X):
        rows = wrong.any(axis=1) if X.ndim == 2 else wrong
        first = np.unravel_index(int(wrong.argmax()), X.shape)
        return int(np.count_nonzero(rows)), tuple(int(i) for i in first)
    places = np.flatnonzero(wrong)
    rows = np.searchsorted(X.indptr, places, side="right") - 1
    return len(np.unique(rows)), (int(rows[0]), int(X.indices[places[0]]))


def _place(name: str, at: tuple[int, ...], given: Any, names: Sequence[Any] | None) -> str:
    """Return where a value is: row and column, and the index that Python takes."""
    if len(at) == 1:
        return f"{name}[{at[0]}]"
    row, j = at
    column = f"column {names[j]!r}" if names is not None else f"column {j + 1}"
    where = f"row {row + 1:,}, {column}"
    if names is not None:
        return where
    listed = isinstance(given, list | tuple)
    return f"{where} ({name}[{row}][{j}])" if listed else f"{where} ({name}[{row}, {j}])"
