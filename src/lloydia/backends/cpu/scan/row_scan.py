"""Framed rows and their best two scores, by the microkernel with a centre in every lane."""

from __future__ import annotations

import numpy as np

from lloydia.backends.cpu.runtime.compiled import kernel
from lloydia.backends.cpu.simd.microkernel_centers_in_lanes import (
    LANES,
    MR,
    NV,
    scan_one,
    scan_three,
    scan_two,
)

__all__ = ["frame_rows", "score_rows"]


@kernel(fastmath={"reassoc", "nsz", "contract"})
def square_norm(y):
    """Return the sum of squares of a float32 row, in any order."""
    total = np.float32(0.0)
    for f in range(len(y)):
        total += y[f] * y[f]
    return total


@kernel
def frame_rows(X, rows, at, m, origin, scale, y, radius):
    """Write ``(x - origin) * scale`` of `m` rows to `y` (float32), and its squared norms."""
    for p in range(m):
        i = rows[at + p] if len(rows) else at + p
        for f in range(X.shape[1]):
            y[p, f] = np.float32((np.float64(X[i, f]) - origin[f]) * scale)
        radius[p] = square_norm(y[p])


@kernel
def score_rows(y, m, panels, half_squares, lanes):
    """Find the best two scores of `m` framed rows in every lane.

    Parameters
    ----------
    y : IN, ndarray (block, d), float32
    panels, half_squares : IN
        Vectors of LANES centres, NV per panel, and their initial scores.
    lanes : OUT, ndarray (3 * block * LANES,), float32
        Three arrays (block, LANES) end to end: the best score, the second, and the number of the
        best vector (int32).
    """
    block, d = y.shape
    n_vectors = len(half_squares) // LANES
    for v in range(0, n_vectors, NV):
        panel = panels.ctypes.data + v * d * LANES * 4
        half = half_squares.ctypes.data + v * LANES * 4
        for p in range(0, m, MR):
            row = y.ctypes.data + p * d * 4
            a = lanes.ctypes.data + p * LANES * 4
            b = a + block * LANES * 4
            c = b + block * LANES * 4
            if n_vectors - v >= 3:
                scan_three(row, d, panel, half, a, b, c, v)
            elif n_vectors - v == 2:
                scan_two(row, d, panel, half, a, b, c, v)
            else:
                scan_one(row, d, panel, half, a, b, c, v)
