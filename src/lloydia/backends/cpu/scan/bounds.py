"""Bounds rounded the safe way: :mod:`lloydia.algorithms.geometry` in compiled code.

They are stored in float32 and computed in float64, in the unit of `padding`, which is
(unit, relative, difference, absolute).
"""

from __future__ import annotations

import numpy as np

from lloydia.backends.cpu.runtime.compiled import LEAN, maximum, subroutine

__all__ = ["above", "below", "lower_bound", "upper_bound"]


@subroutine(**LEAN)
def upper_bound(value, padding):
    """Return an upper bound from a computed value."""
    return value * (1.0 + padding[1]) + padding[3]


@subroutine(**LEAN)
def lower_bound(value, padding):
    """Return a lower bound from a computed value."""
    return maximum(value * (1.0 - padding[1]) - padding[3], 0.0)


@subroutine(**LEAN)
def above(value):
    """Return a float32 no smaller than a computed value of any sign; one rounding is covered."""
    return np.float32(value + abs(value) * np.float32(2.0**-21))


@subroutine(**LEAN)
def below(value):
    """Return a float32 no larger than a computed value of any sign."""
    less = value - abs(value) * np.float32(2.0**-21)
    return np.float32(less if value < np.inf else value)
