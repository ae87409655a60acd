"""Conversion of callers' arrays to those of engines: finite float32 or float64, in any layout."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from decimal import Decimal
from numbers import Real
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from lloydia.data.collections import Partitions, is_collection
from lloydia.data.device_arrays import as_tensor, on_gpu, returning
from lloydia.data.frames import (
    TEXT_OR_OBJECTS,
    VECTORS,
    array_from,
    floats_of,
    is_frame,
    names_of,
    not_numbers,
    read_frame,
    select,
    too_large,
    values_of,
)
from lloydia.data.numbers import real_number, shown
from lloydia.data.sparse import as_csr

__all__ = [
    "ROWS",
    "array_of",
    "home_of",
    "is_buffer",
    "is_sound",
    "on_host",
    "real_numbers",
    "refuse_complex",
    "refuse_masked",
    "refuse_path",
    "rows_on_host",
]

# The arguments of scikit-learn's validation of X.
ROWS: dict[str, Any] = {
    "accept_sparse": "csr",
    "dtype": [np.float64, np.float32],
    "accept_large_sparse": False,
    # See lloydia.data.non_finite, whose errors say where values are.
    "ensure_all_finite": False,
}

# Names of half-precision types in NumPy; bfloat16 comes from ml_dtypes.
HALF = ("float16", "bfloat16")


def on_host(X: Any) -> Any:
    """Return `X` on the host, in native byte order, with half precision converted to float32.

    torch tensors become NumPy arrays.  A tensor on the host shares its memory with the result; an
    array on a GPU is copied.  A sparse matrix becomes CSR with sorted, unique 32-bit indices.

    Raises
    ------
    ValueError
        If values of a masked array are masked, or if a sparse matrix is too large for 32-bit
        indices.
    """
    if type(X) is np.ndarray and X.dtype.isnative and X.dtype.itemsize != 2:
        # The usual case: nothing to convert.
        return X
    refuse_masked(X)
    if on_gpu(X):
        X = as_tensor(X).cpu()
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(X, torch.Tensor):
        if X.layout != torch.strided:
            raise ValueError(
                "This torch tensor is sparse: convert it by to_dense(), or use a CSR matrix of "
                "SciPy."
            )
        X = X.detach()
        # NumPy has no bfloat16; float32 holds every half-precision value.
        X = (X.float() if X.is_floating_point() and X.element_size() == 2 else X).numpy()
    kind = getattr(X, "dtype", None)
    if isinstance(kind, np.dtype) and (kind.itemsize == 2 or not kind.isnative):
        half = kind.name in HALF
        if half or not kind.isnative:
            X = X if sp.issparse(X) else np.asanyarray(X)
            X = X.astype(np.float32 if half else kind.newbyteorder("="))
    return as_csr(X) if sp.issparse(X) else X


def rows_on_host(X: Any) -> Any:
    """Return the rows of X as :func:`on_host` does, in a type that scikit-learn's validation keeps.

    scikit-learn keeps the type of arrays, and converts everything else to float64.  So data frames
    and lists become arrays first, without column names.  Their type is float32 if they hold float32
    or half precision and otherwise only integers of at most 16 bits.

    Raises
    ------
    ValueError
        As :func:`on_host`, or if X holds dates, text that is not a number, or vectors of different
        lengths.
    """
    if is_frame(X):
        frame = read_frame(X)
        if frame is None and X.shape[0]:
            _refuse_columns(X)
        return X if frame is None else on_host(frame.rows)
    if isinstance(X, list | tuple | memoryview):
        try:
            torch = sys.modules.get("torch")
            # Iteration over a memoryview of several dimensions is not possible.
            listed = bool(X) and not isinstance(X, memoryview)
            if torch is not None and listed and all(isinstance(row, torch.Tensor) for row in X):
                return on_host(torch.stack(list(X)))
            found = np.asarray(X)
        except (TypeError, ValueError, RuntimeError):
            return X
        X = found if found.dtype.kind in "fiubcMm" + TEXT_OR_OBJECTS else X
    if hasattr(X, "collect") and not hasattr(X, "dtype"):
        raise ValueError(f"X is a {type(X).__name__}, which has no rows yet: pass X.collect().")
    X = on_host(X)
    typed = isinstance(getattr(X, "dtype", None), np.dtype)
    if not typed and (hasattr(X, "__array__") or is_buffer(X)):
        # Such as an Arrow tensor, or a series of polars.
        X = array_from(X, "X")
    if isinstance(X, np.ndarray) and X.dtype.kind in TEXT_OR_OBJECTS:
        X = _numbers(X)
    kind = getattr(getattr(X, "dtype", None), "kind", "")
    if kind in ("M", "m"):
        raise not_numbers("X", X.dtype)
    if kind == "V":
        raise ValueError(f"X holds {X.dtype}, not real numbers: convert it, or leave it out.")
    if kind == "c":
        refuse_complex(X.dtype)
    return X


def refuse_complex(dtype: Any) -> NoReturn:
    """Raise the error for complex rows; it begins like scikit-learn's, which prints all rows."""
    raise ValueError(
        f"Complex data not supported: X holds {dtype}; give real and imaginary parts as columns of "
        "their own, such as numpy.hstack([X.real, X.imag])."
    )


def is_buffer(X: Any) -> bool:
    """Return whether X supports Python's buffer protocol."""
    try:
        memoryview(X)
    except TypeError:
        return False
    return True


def _numbers(X: NDArray) -> NDArray:
    """Return rows of Python objects or texts as numbers."""
    vectors = [isinstance(value, VECTORS) for value in X] if X.ndim == 1 else []
    if vectors and all(vectors):
        raise ValueError(
            "X is one column of vectors: give numpy.stack(X), or a data frame with this column."
        )
    if any(vectors):
        row = vectors.index(False)
        raise ValueError(
            f"X: row {row + 1:,} is {X[row]!r:.80}, and other rows are vectors: fill it in or "
            "remove the row."
        )
    try:
        return floats_of(X)
    except OverflowError:
        raise too_large("X") from None
    except (TypeError, ValueError) as error:
        if X.dtype == object and "sequence" in str(error):
            raise
        # scikit-learn raises a TypeError for values that are neither text nor numbers.
        raise type(error)(
            f"X does not hold real numbers only: {error}; convert these values."
        ) from None


def _refuse_columns(X: Any) -> NoReturn:
    """Raise the error for a data frame with a column that does not hold numbers."""
    for place, name in enumerate(names_of(X)):
        column = select(X, [place])
        if read_frame(column) is None:
            for row, value in enumerate(values_of(column)):
                if _is_no_number(value):
                    held = value.tolist() if isinstance(value, np.ndarray) else value
                    is_text = isinstance(held, str)
                    said = f"{shown(held)}, not a" if is_text else f"{held!s:.80}, not a real"
                    raise ValueError(
                        f"X: row {row + 1:,}, column {name!r} is {said} number: convert the "
                        "column, or leave it out."
                    )
            raise ValueError(
                f"X: column {name!r} holds values that are not real numbers: convert the column, "
                "or leave it out."
            )
    raise ValueError("X is a data frame without columns: give at least one column.")


def _is_no_number(value: Any) -> bool:
    """Return whether a value of a data frame is neither missing, nor a number or text of one."""
    if not isinstance(value, str | bytes):
        return not (value is None or isinstance(value, Real | Decimal | np.bool_))
    try:
        real_number(value if isinstance(value, str) else value.decode("latin-1"))
    except ValueError:
        return True
    return False


def array_of(name: str, values: Any) -> NDArray:
    """Return the value of the parameter `name` as an array.

    Raises
    ------
    ValueError
        If the value consists of rows of different lengths.
    """
    try:
        return np.asarray(values)
    except ValueError as error:
        raise ValueError(
            f"{name} holds {len(values)} rows of different lengths: give all the same length."
        ) from error


def real_numbers(name: str, values: Any, what: str) -> NDArray:
    """Return the values of a parameter as an array of real numbers on the host.

    This is stricter than NumPy, which reads dates as nanoseconds and the text ``"1_2"`` as 12.

    Parameters
    ----------
    name : str
        The name of the parameter in errors.
    values : array-like
    what : str
        The name of its values in errors, such as "weights".

    Returns
    -------
    ndarray of bool, integers or floats, of any shape
        float64 for Python objects, such as ``decimal.Decimal``.

    Raises
    ------
    ValueError
        If the values are sparse or masked, have rows of different lengths, or are not all real
        numbers.
    """
    if sp.issparse(values):
        raise ValueError(
            f"{name} is sparse, a {type(values).__name__}: give a dense array (toarray())."
        )
    refuse_masked(values, f"{name}: ")
    array = array_of(name, on_host(values))
    if array.dtype.kind in "fiub":
        return array
    if array.dtype.kind != "O":
        held = "text" if array.dtype.kind in "UST" else array.dtype
        raise ValueError(f"{name} holds {held}, and {what} must be real numbers.")
    for place, value in np.ndenumerate(array):
        if not isinstance(value, Real | Decimal | np.bool_):
            where = f"{name}[{', '.join(map(str, place))}]" if place else name
            raise ValueError(f"{where} is {value!r:.80}, and {what} must be real numbers.")
    try:
        return array.astype(np.float64)
    except OverflowError:
        raise too_large(name) from None


def refuse_masked(X: Any, where: str = "") -> None:
    """Raise an error for an array with masked values, because the engines ignore masks.

    `where` is the beginning of the message.
    """
    if isinstance(X, np.ma.MaskedArray) and (count := int(np.ma.count_masked(X))):
        values = "value is" if count == 1 else "values are"
        raise ValueError(
            f"{where}{count:,} {values} masked, and masked values cannot be used: fill them "
            "(numpy.ma.filled), or leave out their rows."
        )


def refuse_path(X: Any) -> None:
    """Raise ValueError if X is the path of a file."""
    if isinstance(X, str | Path):
        raise ValueError(
            f"X={str(X)!r} is a text, not rows: if it is a path, read the file first (numpy.load, "
            "pandas.read_csv), or pass lloydia.chunks(path) to KMeans."
        )


def is_sound(X: Any) -> bool:
    """Return True only if scikit-learn's validation would certainly return the array `X` unchanged.

    The result may be False although the validation would return `X` unchanged.
    """
    if type(X) is not np.ndarray or X.dtype not in ROWS["dtype"] or X.ndim != 2 or X.size == 0:
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        return math.isfinite(X.sum())


def home_of(X: Any) -> Callable[[Any], Any]:
    """Return the function that converts an engine's arrays to the library and device of `X`.

    For X on the host, the result is an ndarray; results on a Dask cluster stay there.
    """
    if is_collection(X):
        return lambda values: values.collection if isinstance(values, Partitions) else values
    return returning(X) if on_gpu(X) else on_host
