r"""Which candidate lowers the total most, by distances in float32.

For a row that may be nearer to a candidate than to all seeds, let N be its distance D to the
nearest seed and D that to the candidate.  The candidate's gain is the sum of ``w max(N - D, 0)``.
A distance in float32 is a sum of squared differences, each rounded once, so that its relative error
is at most ``(d + 4) u``, u = 2**-24 (:mod:`lloydia.algorithms.geometry`).  ``relative`` also covers
the error of a canonical D, and ``absolute`` covers underflow of values scaled to about 1.

* If ``D (1 - relative) - absolute >= N`` for the computed D, the true gain is 0.
* Otherwise, if D < N, the computed gain is off by at most ``relative D + absolute``.  If D >= N, it
  is 0, and the true gain is at most ``relative D + absolute``.  In both cases the error is at most
  ``2 (relative N + absolute)``.

So with S, the sum of ``w (N + absolute)`` over the rows that are not excluded, a gain is off by at
most ``2 (relative + absolute) S``, and by ``2**-51 n S`` for its additions.  Integer potentials
round each term to the grid, which changes the gain of a row by at most one unit more.  If no other
candidate's gain can reach that of the best one, the potential of the best is the lowest.  Otherwise
the integer potentials of the candidates that can are compared; of equal ones the first is chosen.
Distances of FAR or more may have overflowed: then S is infinite, and integers decide.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["FAR", "best_of", "margins_of", "unit_of"]

# Distances of at least this, in the unit, are not compared in float32.
FAR = 2.0**100

# The largest exponent of a unit: one that float32 has.
MAX_EXPONENT = 100


def unit_of(size: float) -> float:
    """Return a power of two that scales numbers of this size to about 1, if float32 has it."""
    exponent = math.frexp(size)[1] if size > 0 else 0
    return math.ldexp(1.0, -min(max(exponent, -MAX_EXPONENT), MAX_EXPONENT))


def margins_of(n_features: int) -> tuple[float, float]:
    """Return the relative and the absolute error of a distance in float32, scaled to about 1."""
    return (n_features + 8) * 2.0**-24, n_features * 2.0**-90


def best_of(
    gains: NDArray[np.float64],
    margins: tuple[float, float],
    n_samples: int,
    quantum: float,
    reductions: Callable[[NDArray[np.int64]], NDArray[np.int64]],
) -> int:
    """Return the candidate that lowers the total most, the first one of equals.

    Parameters
    ----------
    gains : ndarray of shape (2, m)
        Gains and S.
    margins : tuple
        From :func:`margins_of`.
    n_samples : int
    quantum : float
        The unit of integer potentials, in that of gains.
    reductions : callable
        Returns by how much each of some candidates, ascending, lowers the integer total.
    """
    gain, uncertain = gains
    with np.errstate(invalid="ignore"):
        # Gains and errors may be infinite: a comparison with NaN excludes nothing.
        error = (2.0 * sum(margins) + n_samples * 2.0**-51) * uncertain + 2.0 * n_samples * quantum
        possible = np.flatnonzero(~(gain + error < (gain - error).max()))
    if len(possible) == 1:
        return int(possible[0])
    return int(possible[reductions(possible).argmax()])
