"""Sketches as bytes, and the limits of their scores; :mod:`sketch` derives both.

With the numbers of a sketch the kernels compute a bound on its error.
"""

from __future__ import annotations

import numpy as np

from lloydia.backends.cpu.runtime.compiled import LEAN, kernel, part, subroutine
from lloydia.backends.cpu.runtime.counting import upto
from lloydia.backends.cpu.simd.lanes import OCTET, ROWS, products
from lloydia.backends.cpu.simd.sketch_rows import GROUP

__all__ = [
    "COLUMNS_AT_ONCE",
    "TOP",
    "WIDTH",
    "limit_of",
    "pack_candidates",
    "pack_groups",
    "write_limits",
]

# Numbers of a sketch that is a projection.  With 48 numbers instead, 1.1 to 1.3 times as many pairs
# were evaluated, for rows of rank 48 and noise of a tenth to a third of their deviation.
WIDTH = 64

# Columns of V that are multiplied together.
COLUMNS_AT_ONCE = 2 * OCTET

# Numbers of a sketch are up to TOP; rows' bytes are larger by OFFSET.
TOP, OFFSET = 127.0, 128

# Adding this to a float32 of magnitude up to 2**22 rounds it to an integer, in the low bits.
ROUNDER = np.float32(1.5 * 2.0**23)

# This part of N + L is subtracted from a limit, since its computation rounds.
RELATIVE = 2.0**-20

# The lowest limit: the scores of all candidates are above it.
LOWEST = np.float32(-(2.0**30) * 1.9)


@subroutine
def project(X, at, m, frame, y, v):
    """Write `m` framed rows from `at` on to `y`, and V'y to `v`; without a projection, y again."""
    origin, scale, V, _, _ = frame
    d = X.shape[1]
    for r in range(m):
        for f in range(d):
            y[r, f] = np.float32((np.float64(X[at + r, f]) - origin[f]) * scale)
        for f in range(d if len(V) == 0 else 0):
            v[r, f] = y[r, f]
    if len(V) > 0:
        for p in range(0, WIDTH, COLUMNS_AT_ONCE):
            columns, to = V.ctypes.data + 4 * p, v.ctypes.data + 4 * p
            products(y.ctypes.data, d, columns, V.strides[0], to, v.strides[0])


@subroutine(fastmath={"reassoc"})
def square_of(values):
    """Return the sum of squares, in float64 and in any order."""
    total = 0.0
    for p in range(len(values)):
        total += np.float64(values[p]) * np.float64(values[p])
    return total


@subroutine
def sketch(y, v, frame, numbers, lost):
    """Write the numbers of the sketch of a framed row; return N and ``E / q``.

    `v` is V'y, or y without a projection, and is overwritten; `lost` is scratch.
    """
    _, _, V, offset, q = frame
    d, square = len(y), square_of(y)
    norm = np.sqrt(square) * (1.0 + (d + 8) * 2.0**-50)
    error = norm * 2.0**-23
    if len(V) > 0:
        of_products = (d + 8) * 2.0**-24 * WIDTH**0.5 * norm * (1.0 + 2.0**-6)
        delta = of_products * (2.0 * norm + of_products) + square * (d + 8) * 2.0**-50
        rest = square - square_of(part(v, 0, WIDTH - 1))
        rest = np.sqrt(rest if rest > 0.0 else 0.0)
        root = np.sqrt(delta)
        v[WIDTH - 1] = np.float32(rest - offset)
        error += of_products + (rest + offset) * 2.0**-23
        if delta > 0.0:
            error += delta / (rest if rest > root else root)
    width, top, inverse = (WIDTH if len(V) > 0 else d), np.float32(TOP), np.float32(1.0 / q)
    for p in range(width):
        w = v[p] * inverse
        w = w if w < top else top
        w = w if w > -top else -top
        w = (w + ROUNDER) - ROUNDER
        numbers[p] = np.int32(w)
        lost[p] = np.float64(v[p]) - np.float64(w) * q
    integer_square = np.int64(0)
    for p in range(width):
        integer_square += numbers[p] * numbers[p]
    error = (error + np.sqrt(square_of(lost))) * (1.0 + 2.0**-20) / q + 2.0**-60
    return np.float32(integer_square), np.float32(error)


@subroutine
def limit_of(D, square, row_error, unit, d, error):
    """Return the limit of a row with this D, N and ``E / q``, for candidates of an error."""
    root = np.sqrt(D) * (1.0 + (d + 8) * 2.0**-52) + 2.0**-500
    t = np.float32((unit * root + np.float64(row_error)) * (1.0 + 2.0**-20) + 2.0**-60) + error
    L = t * t
    limit = np.float32(0.5) * (square - L) - np.float32(RELATIVE) * (square + L)
    limit -= np.float32(2.0)
    # NaN and minus infinity become the lowest limit, too.
    return np.int32(limit if limit > LOWEST else LOWEST)


@kernel(**LEAN)
def write_limits(squares, errors, nearest, first, last, unit, d, error, limits):
    """Write the limits of rows `first` to `last`; see :class:`Sketch`."""
    for i in upto(first, last):
        limits[i] = limit_of(nearest[i], squares[i], errors[i], unit, d, error)


@subroutine
def quad(numbers, at, width, more):
    """Return four bytes from `at` on, each larger by `more`, in 32 bits."""
    bits = np.uint32(0)
    for b in range(4):
        number = numbers[at + b] if at + b < width else np.int32(0)
        bits |= np.uint32((number + more) & 0xFF) << np.uint32(8 * b)
    return np.int32(bits)


@kernel
def pack_groups(X, first, last, frame, groups, squares, errors):
    """Write groups ``first`` to ``last``; the parameters are those of :class:`Sketch`."""
    n, d = X.shape
    width = WIDTH if len(frame[2]) > 0 else d
    y, v = np.zeros((ROWS, d), np.float32), np.zeros((ROWS, width), np.float32)
    numbers, lost = np.empty(width, np.int32), np.empty(width)
    for at in range(first * GROUP, min(last * GROUP, n), ROWS):
        m = min(ROWS, n - at)
        project(X, at, m, frame, y, v)
        for r in range(m):
            i = at + r
            squares[i], errors[i] = sketch(y[r], v[r], frame, numbers, lost)
            for j in range(groups.shape[1]):
                groups[i // GROUP, j, i % GROUP] = quad(numbers, 4 * j, width, OFFSET)


@kernel
def pack_candidates(X, first, last, frame, packed, initial_scores, errors):
    """Write the bytes, the initial scores and ``E / q`` of candidates `first` to `last`."""
    d = X.shape[1]
    width = WIDTH if len(frame[2]) > 0 else d
    y, v = np.zeros((ROWS, d), np.float32), np.zeros((ROWS, width), np.float32)
    numbers, lost = np.empty(width, np.int32), np.empty(width)
    for at in range(first, last, ROWS):
        m = min(ROWS, last - at)
        project(X, at, m, frame, y, v)
        for r in range(m):
            c = at + r
            _, errors[c] = sketch(y[r], v[r], frame, numbers, lost)
            square = total = np.int64(0)
            for p in range(width):
                square += numbers[p] * numbers[p]
                total += numbers[p]
            # Half of an odd square is rounded down, so that the score is never too low.
            initial_scores[c] = np.int32(-(square // 2) - OFFSET * total)
            for j in range(packed.shape[1]):
                packed[c, j] = quad(numbers, 4 * j, width, 0)
