"""Values of Arrow types as NumPy arrays: numbers, DECIMALs, and vectors of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lloydia.data.columns import DataError

__all__ = [
    "element",
    "extension_of",
    "not_numbers",
    "numbers",
    "numpy_type",
    "plain",
    "refuse_missing",
    "stored",
    "stored_in",
    "vectors",
]

# The name of the extension type that pandas registers for periods.
PERIOD = "pandas.period"


def stored(kind: Any) -> Any:
    """Return an Arrow type; for an extension or a category of numbers, the type of its storage."""
    from pyarrow import types

    if types.is_dictionary(kind) and _is_number(kind.value_type):
        return kind.value_type
    return getattr(kind, "storage_type", kind)


def extension_of(field: Any) -> str:
    """Return the name of the extension type of a field; "" for other types.

    The metadata contain the name of a type that is not registered in this process.
    """
    written = (field.metadata or {}).get(b"ARROW:extension:name", b"").decode(errors="replace")
    return getattr(field.type, "extension_name", "") or written


def stored_in(field: Any) -> Any:
    """Return the type in which a field is stored, and a type of dates for pandas periods.

    Periods are stored as integers that count, for instance, months since 1970.
    """
    import pyarrow as pa

    return pa.date32() if extension_of(field) == PERIOD else stored(field.type)


def element(kind: Any) -> Any:
    """Return the type of the numbers of a type of vectors; None for anything else."""
    from pyarrow import types

    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        inner = stored(kind.value_type)
        return inner if _is_number(inner) else None
    return None


def _is_number(kind: Any) -> bool:
    from pyarrow import types

    return (
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_boolean(kind)
        or types.is_decimal(kind)
    )


def not_numbers(kind: Any) -> str:
    """Return the name of an Arrow type's values in errors; "" for numbers and vectors of them."""
    from pyarrow import types

    if _is_number(kind) or element(kind) is not None:
        return ""
    if types.is_date(kind) or types.is_timestamp(kind):
        return "dates"
    if types.is_null(kind):
        return "only missing values"
    words = types.is_dictionary(kind) or str(kind).endswith(("string", "string_view"))
    return "text" if words else str(kind)


def numpy_type(kind: Any) -> np.dtype:
    """Return the NumPy type of the values of a type of numbers or of vectors."""
    from pyarrow import types

    inner = element(kind) or kind
    return np.dtype(np.float64 if types.is_decimal(inner) else inner.to_pandas_dtype())


def plain(column: Any) -> Any:
    """Return an array in the type that :func:`stored` returns."""
    if hasattr(column, "dictionary_decode") and stored(column.type) != column.type:
        return column.dictionary_decode()
    return getattr(column, "storage", column)


def numbers(values: Any) -> NDArray[Any]:
    """Return an Arrow array of numbers, none missing, as a NumPy array."""
    import pyarrow as pa

    if pa.types.is_decimal(values.type):
        # Arrow's own conversion multiplies by a power of 10, which rounds twice.  The conversion by
        # way of a text gives the nearest float64.
        values = values.cast(pa.string()).cast(pa.float64())
    return values.to_numpy(zero_copy_only=False)


def vectors(column: Any, width: int, label: str, place: Callable[[int], str]) -> NDArray[Any]:
    """Return the vectors of a column: shape (n, width)."""
    from pyarrow import compute

    refuse_missing(column, label, place)
    lengths = compute.list_value_length(column).to_numpy(zero_copy_only=False)
    other = np.flatnonzero(lengths != width)
    if len(other):
        row = int(other[0])
        raise DataError(
            f"{place(row)}, {label} holds a vector of {lengths[row]:,} numbers, and that of the "
            f"first row has {width:,}; give all the same length."
        )
    flat = plain(column.flatten())
    if flat.null_count:
        row, i = divmod(int(_missing(flat)[0]), width)
        raise DataError(
            f"{place(row)}, {label}: number {i + 1:,} of the vector is missing; fill it in or "
            "remove the row."
        )
    return numbers(flat).reshape(len(column), width)


def refuse_missing(column: Any, label: str, place: Callable[[int], str]) -> None:
    """Raise an error for a column with a missing value."""
    if column.null_count:
        row = int(_missing(column)[0])
        raise DataError(f"{place(row)}, {label} is missing; fill it in or remove the row.")


def _missing(column: Any) -> NDArray[np.intp]:
    return np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))
