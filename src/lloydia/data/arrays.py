"""From what callers have to what engines take: finite float32 or float64, in any layout."""

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
    values_of,
)
from lloydia.data.numbers import real_number, shown
from lloydia.data.sparse import as_csr

__all__ = [
    "ROWS",
    "acceptable",
    "array_of",
    "check_weights",
    "home_of",
    "is_buffer",
    "is_sound",
    "on_host",
    "real_numbers",
    "refuse_complex",
    "refuse_masked",
    "refuse_path",
    "refuse_range",
    "refuse_weight",
    "rows_on_host",
]

# How scikit-learn's validation is asked to check X.
ROWS: dict[str, Any] = {
    "accept_sparse": "csr",
    "dtype": [np.float64, np.float32],
    "accept_large_sparse": False,
}

# NumPy's names of half precision; bfloat16 is ml_dtypes'.
HALF = ("float16", "bfloat16")

# Beyond this ratio of the largest to the smallest weight, products could leave float64's range.
LARGEST_RATIO = 2.0**200


def on_host(X: Any) -> Any:
    """Return `X` on the host, in this machine's byte order, half precision widened to float32.

    torch tensors become NumPy arrays: those on the host share their memory, arrays on a GPU are
    copied.  A sparse matrix becomes CSR with sorted 32-bit indices, each once.

    Raises
    ------
    ValueError
        If values of a masked array are masked, or a sparse matrix cannot have 32-bit indices.
    """
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

    That knows the type of arrays, and takes all else as float64.  Data frames and lists whose
    numbers are float32 or half precision, beside integers of at most 16 bits, become float32
    arrays; a data frame becomes an array without names.

    Raises
    ------
    ValueError
        As :func:`on_host`, or X holds dates, text that is no number, or vectors of different
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
            # A view of several dimensions has no rows that can be looked at one by one.
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
    """Raise the error for complex rows; it begins as scikit-learn's, which prints all of them."""
    raise ValueError(
        f"Complex data not supported: X holds {dtype}; give real and imaginary parts as columns of "
        "their own, such as numpy.hstack([X.real, X.imag])."
    )


def is_buffer(X: Any) -> bool:
    """Return whether X shows its memory, by Python's buffer protocol."""
    try:
        memoryview(X)
    except TypeError:
        return False
    return True


def _numbers(X: NDArray) -> NDArray:
    """Return rows of Python objects, or of texts, as numbers."""
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
    except (TypeError, ValueError) as error:
        if X.dtype == object and "sequence" in str(error):
            raise
        # scikit-learn raises a TypeError for values that are neither text nor numbers.
        raise type(error)(
            f"X does not hold real numbers only: {error}; convert these values."
        ) from None


def _refuse_columns(X: Any) -> NoReturn:
    """Raise the error for a data frame that holds something else than numbers."""
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
    """Return whether a value of a data frame is there, and is neither number nor text of one."""
    if not isinstance(value, str | bytes):
        return not (value is None or isinstance(value, Real | Decimal | np.bool_))
    try:
        real_number(value if isinstance(value, str) else value.decode("latin-1"))
    except ValueError:
        return True
    return False


def array_of(name: str, values: Any) -> NDArray:
    """Return what a parameter of this name has on the host as an array.

    Raises
    ------
    ValueError
        They are rows of unequal lengths.
    """
    try:
        return np.asarray(values)
    except ValueError as error:
        raise ValueError(
            f"{name} holds {len(values)} rows of different lengths: give all the same length."
        ) from error


def real_numbers(name: str, values: Any, what: str) -> NDArray:
    """Return the values of a parameter as an array of real numbers on the host.

    NumPy would read dates as nanoseconds, and the text ``"1_2"`` as 12.

    Parameters
    ----------
    name : str
        What errors call the parameter.
    values : array-like
    what : str
        What errors call its values, such as "weights".

    Returns
    -------
    ndarray of bool, integers or floats, of any shape
        float64 for Python objects, such as ``decimal.Decimal``.

    Raises
    ------
    ValueError
        The values are sparse or masked, make no array, or are not all real numbers.
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
        raise ValueError(f"{name} holds numbers too large for float64: scale them down.") from None


def refuse_masked(X: Any, where: str = "") -> None:
    """Raise an error for an array with masked values: nothing here looks at masks.

    `where` is what an error begins with.
    """
    if isinstance(X, np.ma.MaskedArray) and (count := int(np.ma.count_masked(X))):
        values = "value is" if count == 1 else "values are"
        raise ValueError(
            f"{where}{count:,} {values} masked, and masked values cannot be used: fill them "
            "(numpy.ma.filled), or leave out their rows."
        )


def refuse_path(X: Any) -> None:
    """Raise an error for the name of a file where rows are asked for."""
    if isinstance(X, str | Path):
        raise ValueError(
            f"X={str(X)!r} is a text, not rows: if it is a path, read the file first (numpy.load, "
            "pandas.read_csv), or pass lloydia.chunks(path) to KMeans."
        )


def is_sound(X: Any) -> bool:
    """Return whether `X` is an array that scikit-learn's validation would return as it is.

    It may say no where the answer is yes.
    """
    if type(X) is not np.ndarray or X.dtype not in ROWS["dtype"] or X.ndim != 2 or X.size == 0:
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        return math.isfinite(X.sum())


def home_of(X: Any) -> Callable[[Any], Any]:
    """Return the function that brings an engine's arrays to the library and device of `X`.

    For anything on the host that is NumPy; what is on a cluster stays there.
    """
    if is_collection(X):
        return lambda values: values.collection if isinstance(values, Partitions) else values
    return returning(X) if on_gpu(X) else on_host


def check_weights(sample_weight: Any, n_samples: int) -> NDArray[np.float64] | None:
    """Return the weights on the host as float64, or None where there are none.

    Raises
    ------
    ValueError
        If they are not one finite non-negative number a row, all are 0, or they lie too far apart.
    """
    if sample_weight is None:
        return None
    weights = real_numbers("sample_weight", sample_weight, "weights").astype(np.float64)
    if weights.ndim == 0:
        weights = np.full(n_samples, weights)
    if weights.ndim != 1:
        raise ValueError(
            f"Sample weights must be 1D array or scalar, got {weights.ndim}D: sample_weight has "
            f"shape {weights.shape}."
        )
    if weights.shape != (n_samples,):
        raise ValueError(f"sample_weight.shape == {weights.shape}, expected {(n_samples,)}!")
    bad = np.flatnonzero(~acceptable(weights))
    if len(bad):
        refuse_weight(int(bad[0]), weights[bad[0]])
    with np.errstate(over="ignore"):
        total = weights.sum()
    positive = weights[weights > 0]
    refuse_range(total, positive.min(initial=np.inf), positive.max(initial=0.0))
    return weights


def acceptable(weights: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which weights can be taken, each by itself."""
    return np.isfinite(weights) & (weights >= 0)


def refuse_weight(row: int, weight: float) -> NoReturn:
    """Raise the error for one that cannot."""
    raise ValueError(f"sample_weight[{row}] is {weight}: weights must be finite and >= 0.")


def refuse_range(total: float, least: float, largest: float) -> None:
    """Refuse weights by their sum, the least positive one and the largest one."""
    if not np.isfinite(total):
        raise ValueError("The sample weights add up to infinity: scale them down.")
    if largest == 0:
        raise ValueError("All sample weights are zero: give at least one row a positive weight.")
    if largest / LARGEST_RATIO > least:
        raise ValueError(
            f"The weights {least:.3g} and {largest:.3g} lie too far apart: their ratio must be at "
            f"most {LARGEST_RATIO:.3g}."
        )
