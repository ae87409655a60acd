r"""The screen: scores that prove for which rows a candidate is no nearer than the nearest seed.

**Scores.**  With the first seed m as origin let ``b_j = fl(c_j - m)`` and N = D(x, m).  Up to
rounding ``D(x, c_j) = N - 2 s_j``, ``s_j = x.b_j - (m.b_j + |b_j|^2 / 2)``: one product a feature,
in X's own type, not three operations in float64.

**Error.**  Let u be the unit roundoff of X's type, ``R = |x - m|``, ``M = |m|``,
``C >= |c_j - m|``.  As in :mod:`lloydia.exact.certificate`, but with x itself, of norm at most
R + M, and a start of magnitude at most ``M C + C^2 / 2``, a score is off by at most
``(d + 4) u ((R + 2 M) C + C^2)`` up to a factor ``1 + 2 (d + 8) u``; N / 2 by
``(d + 4) 2**-53 R^2 / 2``; and the canonical D / 2 by ``(d + 4) 2**-53 (R^2 + C^2)``, because
``|x - c_j|^2 <= 2 R^2 + 2 C^2``.  With ``R C <= (R^2 + C^2) / 2`` all that is at most
``(d + 4) u (2 R^2 + 5/2 C^2 + 2 M C)``, so with ``e = 3 (d + 8) u`` (the rest covers the rounding
of the test itself)

    s_j <= (N - D(x)) / 2 - e (N + C^2 + M C)   implies   D(x, c_j) >= D(x)

canonically, where D(x) is the row's distance to its nearest seed, so candidate j does not lower it.
For all other rows D is evaluated.

**Range.**  The b_j are scaled by the power of two that brings C to [1/2, 1), and the test with
them: a score is then no larger than about ``R + 2 M``.  A product that underflows costs at most the
smallest number of the type, and one of N or D ``2**-1074`` times the scale: the test has room for d
of each.  If ``R + 2 M`` could overflow, no row is skipped.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cpu.runtime.compiled import minimum, part, subroutine
from lloydia.backends.cpu.seeding.weights import MAX_CANDIDATES
from lloydia.backends.cpu.simd.frames import is_compact
from lloydia.backends.cpu.simd.lanes import OCTET, ROWS, above

__all__ = ["Screen", "aligned", "list_reachable_rows"]

# Up to this many features the 3 in e covers the factor 1 + 2 (d + 8) u for float32.
MAX_FEATURES = 2**20


def aligned(shape: tuple[int, int], dtype: Any) -> NDArray:
    """Return an array of zeros that starts at a multiple of 64 bytes."""
    size = shape[0] * shape[1]
    raw = np.zeros(size + 8 * OCTET, dtype=dtype)
    start = -raw.ctypes.data % 64 // raw.itemsize
    return raw[start : start + size].reshape(shape)


class Screen:
    """Candidates in the layout that kernels read, and the test.

    Parameters
    ----------
    origin : ndarray of shape (d,), float64
        m, the first seed.
    radius : float
        The largest distance of a row to it.
    dtype : float32 or float64
        Of the rows.
    n_candidates : int
        The largest number that :meth:`load` will take, up to 16.

    Attributes
    ----------
    panel : ndarray of shape (d, lanes)
        Candidates minus the origin, scaled, in X's type.
    initial_scores : ndarray of shape (1, lanes)
        The initial scores; -inf in lanes without a candidate.
    columns : ndarray of shape (d, 8 or 16), float64
        The candidates themselves.
    """

    def __init__(
        self, origin: NDArray[np.float64], radius: float, dtype: Any, n_candidates: int
    ) -> None:
        d, self.single = len(origin), np.dtype(dtype) == np.float32
        octets = OCTET if n_candidates <= OCTET else 2 * OCTET
        lanes = 2 * OCTET if self.single else octets
        self.origin, self.radius = origin, radius
        self.panel, self.initial_scores = aligned((d, lanes), dtype), aligned((1, lanes), dtype)
        self.columns = aligned((d, octets), np.float64)

    def load(self, candidates: NDArray[np.float64]) -> tuple[float, float, float]:
        """Store candidates (m, d); return the test.

        The test is e, the scaled ``e (C^2 + M C)`` plus the error of underflow, and the scale.
        """
        m, d = candidates.shape
        b = candidates - self.origin
        squares = np.einsum("cf,cf->c", b, b)
        initial = -np.einsum("cf,f->c", b, self.origin) - 0.5 * squares
        grow = 1.0 + 2.0**-20
        norm = np.einsum("f,f->", self.origin, self.origin)
        M, C = (math.sqrt(s) * grow for s in (norm, squares.max()))
        scale = math.ldexp(1.0, -min(max(math.frexp(C)[1], -1000), 1000))
        self.columns[:, :m] = candidates.T
        self.panel[:, :m] = b.T * scale
        self.initial_scores.fill(-np.inf)
        self.initial_scores[0, :m] = initial * scale
        relative = 3.0 * (d + 8) * (2.0**-24 if self.single else 2.0**-53)
        absolute = scale * (relative * (C * C + M * C) + (d + 4) * 2.0**-1072)
        absolute += d * (2.0**-140 if self.single else 2.0**-1060)
        far = 2.0**120 if self.single else 2.0**1000
        if d > MAX_FEATURES or not self.radius + 2.0 * M < far:
            absolute = math.inf
        return relative, absolute, scale


@subroutine(inline="always")
def list_reachable_rows(
    X, start, stop, panel, initial_scores, test, nearest, norms, limits, bits, copies, hits
):
    """List the rows of a tile whose D some candidate may lower; return how many.

    Parameters
    ----------
    X : IN, ndarray (n, d)
    start, stop : int
        The rows of the tile.
    panel, initial_scores, test : IN
        Those of :class:`Screen`.
    nearest, norms : IN, ndarray (n,), float64
        D to the nearest and to the first seed.
    limits, bits : scratch, ndarray (TILE,), X's type and uint16
    copies : scratch, ndarray (ROWS, d), X's type
        For rows that are not contiguous.
    hits : OUT, ndarray (n,), uint32
        From `start` on, for each row: its number in the tile, then a bit per candidate.
    """
    relative, absolute, scale = test
    near, norm = part(nearest, start, stop), part(norms, start, stop)
    # `range` is faster than `upto` in these loops, see :mod:`runtime.counting`.
    for p in range(len(near)):
        limits[p] = (0.5 * (norm[p] - near[p]) - relative * norm[p]) * scale - absolute
    # Addresses, because slicing an array takes as long as comparing its values.
    d, size = X.shape[1], X.itemsize
    base, limit, bit = X.ctypes.data + start * d * size, limits.ctypes.data, bits.ctypes.data
    pitch, vector = panel.shape[1] * size, 8 * OCTET
    in_place = is_compact(X)
    for p in range(0, stop - start, ROWS):
        rows = base + p * d * size
        if not in_place or start + p + ROWS > len(X):
            for r in range(minimum(ROWS, stop - start - p)):
                for f in range(d):
                    copies[r, f] = X[start + p + r, f]
            rows = copies.ctypes.data
        for at in range(0, pitch, vector):
            some, initial = panel.ctypes.data + at, initial_scores.ctypes.data + at
            above(X, rows, d, some, pitch, initial, at // size, limit, bit)
        limit += ROWS * size
        bit += ROWS * 2
    count = 0
    for p in range(stop - start):
        hits[start + count] = np.uint32(p) << np.uint32(MAX_CANDIDATES) | bits[p]
        count += bits[p] != 0
    return count
