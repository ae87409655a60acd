"""Passes read-only rows to kernels for writable rows.

Numba compiles every kernel once more for read-only arrays.  pandas and memory maps give such
arrays, and no kernel writes to the rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["as_writable"]


class Memory:
    """The memory of an array, without its read-only flag; it keeps the array alive."""

    def __init__(self, array: NDArray) -> None:
        self.array = array
        address = array.__array_interface__["data"][0]
        self.__array_interface__: dict[str, Any] = {
            **array.__array_interface__,
            "data": (address, False),
        }


def as_writable(rows: NDArray) -> NDArray:
    """Return the same memory as an array whose flags allow writing, which the caller must not do.

    An array that is writable is returned as it is.
    """
    return rows if rows.flags.writeable else np.asarray(Memory(rows))
