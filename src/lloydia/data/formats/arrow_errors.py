"""What pyarrow raises for files that it does not read, and the sentence about it."""

from __future__ import annotations

from lloydia.data.columns import DataError

__all__ = ["arrow_errors", "unreadable"]


def arrow_errors() -> tuple[type[Exception], ...]:
    """Return what pyarrow raises for a damaged file."""
    import pyarrow as pa

    # Names are decoded when a file is opened, and may be damaged.
    return pa.ArrowException, OSError, UnicodeDecodeError


def unreadable(error: Exception, where: str, what: str) -> DataError:
    """Return the error for a file, called `where`, that should be `what`, such as "an Arrow file".

    Some types of numbers, such as integers of 128 bits, are in the formats and not in pyarrow.
    """
    if isinstance(error, NotImplementedError):
        said = str(error).splitlines()[0].rstrip(".") if str(error) else "an unknown type"
        return DataError(
            f"{where} holds what pyarrow does not read ({said}): write it with other types, such "
            "as float64."
        )
    return DataError(f"{where} is damaged or not {what}.")
