"""Bounds on distances, from float32 scores.

With y the float32 row in the frame of :mod:`lloydia.exact.certificate`, s its score with a centre
and F, v, w the errors and factors of :class:`lloydia.backends.cpu.scan.grouped.Errors`, ``|x'|**2``
lies within ``2**-20`` of ``|y|**2`` and

    (|x'|**2 - 2 (s + F)) v**2  <=  |x' - c'|**2  <=  (|x'|**2 - 2 (s - F)) w**2.

A distance is the root times `factor`, v or w times the unit of the bounds over the scale of the
frame.  Lower bounds are formed in float32: what ``2**-20`` leaves covers the rounding of their
first term, the padding the five roundings after it.
"""

from __future__ import annotations

import numpy as np

from lloydia.backends.cpu.runtime.compiled import LEAN, maximum, minimum, subroutine
from lloydia.backends.cpu.runtime.counting import upto
from lloydia.backends.cpu.scan.bounds import upper_bound
from lloydia.backends.cpu.scan.nearest import near_error
from lloydia.exact.certificate import FAR

__all__ = ["above", "below", "certain", "finite_float32", "frame", "limits", "stored_bound"]


@subroutine(fastmath={"reassoc", "nsz", "contract"}, forceinline=True, **LEAN)
def frame(x, origin, scale, panel, at, y, m):
    """Centre, scale and round a row (d,) into ``y[m]``.

    Returns ``|y|**2``, in float64, and the inner product with ``panel[at]``, in float32.
    """
    square, score = 0.0, np.float32(0.0)
    for f in upto(len(x)):
        value = np.float32((x[f] - origin[f]) * scale)
        y[m, f] = value
        square += np.float64(value) * np.float64(value)
        score += value * panel[at, f]
    return square, score


@subroutine(inline="always")
def limits(square, errors):
    """Return E, and bounds on ``|x'|**2 - 2 F`` and ``|x'|**2 + 2 F``, from ``|y|**2``."""
    terms, own = errors.terms, errors.own
    R = np.sqrt(square) * (1.0 + 2.0**-20) + 2.0**-60
    error = terms[0] + R * (terms[1] + R * terms[2]) if R < FAR else np.inf
    off = own[0] + R * (own[1] + R * own[2]) if R < FAR else np.inf
    low_square = square * (1.0 - 2.0**-20) - 2.0**-80 - (2.0 + 2.0**-20) * off
    high_square = square * (1.0 + 2.0**-20) + 2.0**-80 + 2.0 * off
    return error, np.float32(low_square), high_square


@subroutine(inline="always")
def certain(best, second, error, high_square, near):
    """Return whether the centre of the best score is nearer than all of no better than `second`.

    `error` and `high_square` are E and the bound on ``|x'|**2 + 2 F`` of :func:`limits`.
    """
    gap = np.float64(best) - np.float64(second)
    return gap > 2.0 * error or gap > 2.0 * near_error(high_square, np.float64(best), near)


@subroutine(inline="always")
def finite_float32(factor):
    """Return `factor` in float32, for lower bounds: a smaller number where it would be infinite.

    That happens if all centres are equal, which leaves the scale at 1, and the data are tiny.
    """
    return np.float32(minimum(factor, 2.0**127))


@subroutine(**LEAN)
def below(low_square, score, factor, padding):
    """Return a lower bound on a distance, from that on ``|x'|**2 - 2 F`` and a score; float32."""
    square = low_square - np.float32(2.0) * score
    # The comparison is false for a NaN too.
    root = np.sqrt(square) if square > np.float32(0.0) else np.float32(0.0)
    bound = root * finite_float32(factor) * np.float32(1.0 - padding[1]) - np.float32(padding[3])
    return np.float32(maximum(bound, 0.0))


@subroutine(**LEAN)
def stored_bound(bound, drift, padding):
    """Return the stored form of a lower bound: plus the drift so far, rounded down; float32."""
    value = (bound + drift) * np.float32(1.0 - padding[1]) - np.float32(padding[3])
    return np.float32(maximum(value, 0.0))


@subroutine(**LEAN)
def above(high_square, score, factor, padding):
    """Return an upper bound on a distance, from that on ``|x'|**2 + 2 F`` and a score; float64."""
    return upper_bound(
        np.sqrt(maximum(high_square - 2.0 * np.float64(score), 0.0)) * factor, padding
    )
