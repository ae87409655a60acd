"""Counter-based random numbers: the number of row i depends only on a key and on i.

It is the i-th output of SplitMix64 (Steele, Lea and Flood 2014, "Fast splittable pseudorandom
number generators") with the initial state `key`.  So every engine, thread and part of a data set
draws the same number for a row, in any order.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["GOLDEN", "MIX", "chosen", "uniforms"]

GOLDEN = 0x9E3779B97F4A7C15
# Pairs (shift, multiplier); the last multiplier does nothing.
MIX = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1))


def uniforms(key: int, n: int) -> NDArray[np.float64]:
    """Return the random numbers of rows 0 to n - 1: multiples of ``2**-53`` in [0, 1)."""
    z = np.uint64(key) + np.arange(1, n + 1, dtype=np.uint64) * np.uint64(GOLDEN)
    for shift, multiplier in MIX:
        z = (z ^ (z >> np.uint64(shift))) * np.uint64(multiplier)
    return (z >> np.uint64(11)).astype(np.float64) * 2.0**-53


def chosen(terms: NDArray[np.int64], total: int, key: int, factor: float) -> NDArray[np.int64]:
    """Return the rows with ``u * total < factor * term``, both sides rounded once to float64.

    Each row is chosen independently, with probability ``min(1, factor * term / total)``.  The terms
    must be below ``2**53``.
    """
    return np.flatnonzero(uniforms(key, len(terms)) * float(total) < factor * terms)
