"""The errors of pyarrow for files that it cannot read, and Lloydia's error for them."""

from __future__ import annotations

from lloydia.data.columns import DataError

__all__ = ["arrow_errors", "unreadable"]


def arrow_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions that pyarrow raises for a damaged file."""
    import pyarrow as pa

    # Opening a file decodes names, which may be damaged.
    return pa.ArrowException, OSError, UnicodeDecodeError


def unreadable(error: Exception, where: str, what: str) -> DataError:
    """Return the error for a file, called `where`, that should be `what`, such as "an Arrow file".

    The formats have some types, such as 128-bit integers, that pyarrow does not support.
    """
    if isinstance(error, NotImplementedError):
        said = str(error).splitlines()[0].rstrip(".") if str(error) else "an unknown type"
        return DataError(
            f"{where} holds what pyarrow does not read ({said}): write it with other types, such "
            "as float64."
        )
    return DataError(f"{where} is damaged or not {what}.")
