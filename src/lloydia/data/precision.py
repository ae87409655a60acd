"""The type that numbers are clustered in: float32 or float64."""

from __future__ import annotations

import numpy as np

from lloydia.data.columns import DataError

__all__ = ["stored_type"]


def stored_type(raw: np.dtype, where: str) -> np.dtype:
    """Return the type in which numbers of a type are clustered.

    It is float32 for float16 and float32 in any byte order, and float64 for everything else.  If
    the columns of a table have different types, `raw` is the type to which NumPy promotes them
    (`result_type`), which holds the numbers of all columns exactly: float32 for int16 and float32,
    float64 for int32 and float32.

    Raises
    ------
    DataError
        If the type is not one of real numbers.
    """
    if raw.kind not in "fiub":
        raise DataError(f"{where} holds {raw}, not real numbers.")
    single = raw.kind == "f" and raw.itemsize <= 4
    return np.dtype(np.float32 if single else np.float64)
