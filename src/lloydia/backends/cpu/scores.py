"""Bounds on distances, from float32 scores.

With y the float32 row in the frame of :mod:`lloydia.exact.certificate`, s its score with a centre
and E their error, ``|x'|**2`` lies within ``2**-20`` of ``|y|**2`` and

    |x'|**2 - 2 (s + E)  <=  |x' - c'|**2  <=  |x'|**2 - 2 (s - E).

A distance is the root times `factor`, the unit of the bounds over the scale of the frame.  Lower
bounds are formed in float32: what ``2**-20`` leaves covers the rounding of their first term, the
padding the five roundings after it.
"""

from __future__ import annotations

import numpy as np

from lloydia.backends.cpu.bounds import raised
from lloydia.backends.cpu.compiled import kernel
from lloydia.backends.cpu.counting import upto
from lloydia.exact.certificate import FAR

__all__ = ["above", "below", "frame", "kept", "limits", "single"]


@kernel(fastmath={"reassoc", "nsz", "contract"}, forceinline=True)
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


@kernel
def limits(square, terms):
    """Return E, and bounds on ``|x'|**2 - 2 E`` and ``|x'|**2 + 2 E``, from ``|y|**2``."""
    R = np.sqrt(square) * (1.0 + 2.0**-20) + 2.0**-60
    error = terms[0] + R * (terms[1] + R * terms[2]) if R < FAR else np.inf
    least = square * (1.0 - 2.0**-20) - 2.0**-80 - (2.0 + 2.0**-20) * error
    most = square * (1.0 + 2.0**-20) + 2.0**-80 + 2.0 * error
    return error, np.float32(least), most


@kernel(forceinline=True)
def single(factor):
    """Return `factor` in float32, for lower bounds: a smaller one where it would be infinite.

    That is where all centres are one, which leaves the scale at 1, and the data are tiny.
    """
    return np.float32(min(factor, 2.0**127))


@kernel
def below(least, score, factor, padding):
    """Return a lower bound on a distance, from that on ``|x'|**2 - 2 E`` and a score; float32."""
    square = least - np.float32(2.0) * score
    # False for a NaN too.
    root = np.sqrt(square) if square > np.float32(0.0) else np.float32(0.0)
    bound = root * single(factor) * np.float32(1.0 - padding[1]) - np.float32(padding[3])
    return max(bound, np.float32(0.0))


@kernel
def kept(bound, gone, padding):
    """Return what is kept of a lower bound: with the drift so far, rounded down; float32."""
    value = (bound + gone) * np.float32(1.0 - padding[1]) - np.float32(padding[3])
    return max(value, np.float32(0.0))


@kernel
def above(most, score, factor, padding):
    """Return an upper bound on a distance, from that on ``|x'|**2 + 2 E`` and a score; float64."""
    return raised(np.sqrt(max(most - 2.0 * np.float64(score), 0.0)) * factor, padding)
