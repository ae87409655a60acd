"""What all scans share: framing rows, the certificate, and bounds on distances.

A scan computes float32 scores of a row with all centres and applies the certificate of
:mod:`lloydia.exact.certificate`.  A row that it does not certify is *ambiguous*: :mod:`recheck`
evaluates its canonical D to the centres whose scores are close to the best.

Every scan has these parameters:

rows : IN, ndarray of int64
    A list of rows, or EVERY.
start, stop : int
    A range of the list.
fresh : OUT, ndarray (stop - start or more,), int32
    The label of list entry p goes to ``fresh[p - start]``.
best, second : OUT, ndarray of the same length, float64, or empty
    An upper bound on the squared distance to that centre, and a lower bound on those to all others.
"""

from __future__ import annotations

import numpy as np

from lloydia.backends.cpu.runtime.compiled import (
    local,
    maximum,
    minimum,
    subroutine,
)
from lloydia.backends.cpu.runtime.counting import upto
from lloydia.backends.cpu.simd.candidates import lowest_bit
from lloydia.backends.cpu.simd.frames import (
    frame_group,
    frame_interleaved,
    is_compact,
    is_interleaved,
    prefetch,
)
from lloydia.backends.cpu.simd.microkernel_rows_in_lanes import (
    GROUP,
    LANES,
    certify_vector,
)
from lloydia.exact import certificate

__all__ = [
    "aligned",
    "bound",
    "certify",
    "frame_rows",
    "near_error",
    "smaller_error",
    "two_nearest",
]

# The memory of a block of framed rows: a good part of the second-level cache.
BLOCK_BYTES = 800_000

# Rows of at most this many bytes are prefetched.  The hardware prefetcher recognises the sequence
# of longer rows.
PREFETCHED_BYTES = 128


@subroutine
def two_nearest(D):
    """Return the index of the smallest D, the first of equals, and the smallest of the others."""
    nearest = 0
    second = np.inf
    for j in upto(1, len(D)):
        if D[j] < D[nearest]:
            second = D[nearest]
            nearest = j
        elif D[j] < second:
            second = D[j]
    return nearest, second


@subroutine
def aligned(size):
    """Return an empty float32 array that starts at a multiple of 64 bytes."""
    raw = np.empty(size + 16, np.float32)
    start = -raw.ctypes.data % 64 // 4
    return raw[start : start + size]


@subroutine(inline="always")
def end_to_end(X, rows):
    """Return whether a range of a list of rows is contiguous memory."""
    return len(rows) == 0 and is_compact(X)


@subroutine(inline="always")
def frame_rows(X, rows, at, m, shape, origin, scale, y, squares, next_rows, part):
    """Frame `m` rows of a list, from entry `at` on: ``(x - origin) * scale`` in float32.

    Parameters
    ----------
    X : IN, ndarray (n, d)
    shape
        As in :func:`score_panels`.
    origin, scale : IN
        The frame, of X's type.
    y : OUT, ndarray (groups, d, GROUP), float32
        The last row fills up the last group.
    squares : OUT, ndarray (groups * GROUP,), float32
        Upper bounds on the squared norms, with a relative error below ``(d + 8) 2**-21``.
    next_rows, part : int
        With each group, `part` bytes from the address `next_rows` on are prefetched.  If `part` is
        0, the rows of the next group are.
    """
    addresses = local(np.int64, GROUP)
    data, pitch, size = X.ctypes.data, X.strides[0], X.shape[1] * X.itemsize
    size = size if size <= PREFETCHED_BYTES and part == 0 else 0
    interleaved = is_interleaved(shape) and end_to_end(X, rows)
    for g in upto(-(-m // GROUP)):
        first = g * GROUP
        prefetch(next_rows + g * part, part)
        if interleaved and first + GROUP <= m:
            frame_interleaved(shape, X, at + first, origin, scale, y, squares, g)
            continue
        for p in upto(GROUP):
            entry = at + minimum(first + p, m - 1)
            i = rows[entry] if len(rows) else entry
            addresses[p] = data + i * pitch
        for p in upto(GROUP if size else 0):
            entry = at + minimum(first + GROUP + p, m - 1)
            i = rows[entry] if len(rows) else entry
            prefetch(data + i * pitch, size)
        frame_group(shape, addresses, X, origin, scale, y, squares, g)


near_error = subroutine(certificate.near_error, inline="always")


@subroutine(inline="always")
def smaller_error(square, residual, score, line, near):
    """Return the smaller of two bounds on the error of scores: by all centres, or by near ones."""
    error, other = line[0] + line[1] * square + line[2] * residual, near_error(square, score, near)
    return other if other < error else error


@subroutine(inline="always")
def certify(m, squares, residuals, high, low, which, width, lines, far, labels, at, ambiguous):
    """Write the labels of `m` scanned rows, list the ambiguous ones, and return how many.

    A row is certified if its best score exceeds the second by more than twice the error E of its
    scores, ``high - low > 2 E`` (:mod:`lloydia.exact.certificate`), with either bound E.

    Parameters
    ----------
    squares, residuals : IN, ndarray (m or more,), float32
        R**2 and r**2 of each row.
    high, low : IN, ndarray (m or more,), float32
        The best two scores.
    which : IN, ndarray (m or more,), int32
        The best centre, in units of `width` centres.
    lines : tuple
        (a, b, c) of ``E = a + b R**2 + c r**2``, and the line of
        :func:`lloydia.exact.certificate.near_error`.
    far : float
        Rows with a larger R**2 are not certified.
    labels : OUT, ndarray (m or more,), int32
    at : int
        The list entry of the first row.
    ambiguous : OUT, ndarray (m or more,), int64
        List entries.
    """
    all_centers, near = lines
    # This covers the float32 roundings of the test.
    grow = 1.0 + 2.0**-20
    line = (
        np.float32(all_centers[0] * grow),
        np.float32(all_centers[1] * grow),
        np.float32(all_centers[2] * grow),
    )
    limit, n_ambiguous = np.float32(far), 0
    gaps = local(np.float64, LANES)
    for first in upto(0, m, LANES):
        bits = certify_vector(
            high, low, which, width, squares, residuals, line, limit, labels, first, m
        )
        # A full vector even for one row: it takes no longer than two scalar square roots.
        for q in upto(LANES if bits != 0 else 0):
            score, square = np.float64(high[first + q]), np.float64(squares[first + q])
            error = near_error(square, score, near) if square < far else np.inf
            gaps[q] = score - np.float64(low[first + q]) - 2.0 * error
        while bits != 0:
            q = lowest_bit(np.uint64(bits))
            bits &= bits - 1
            ambiguous[n_ambiguous] = at + first + q
            n_ambiguous += not gaps[q] > 0.0
    return n_ambiguous


@subroutine(inline="always")
def bound(m, d, squares, residuals, high, low, lines, unit, best, second):
    """Write bounds on the squared distances of scanned rows.

    By :mod:`lloydia.exact.certificate`, with the score s of a centre: ``D <= R**2 - 2 (s - E)``
    bounds that of the best from above, and ``D >= R**2 - 2 (s + E)`` those of all others, for which
    s is the second best score, from below.

    Parameters
    ----------
    squares, residuals, high, low, lines
        As in :func:`certify`.
    unit : float
        The inverse of the frame's scale.
    best, second : OUT, ndarray (m or more,), float64
    """
    shrink = 1.0 - (d + 8) * 2.0**-20
    line, near = lines
    for p in upto(m):
        square, residual = np.float64(squares[p]), np.float64(residuals[p])
        score, second_score = np.float64(high[p]), np.float64(low[p])
        largest_square = square - 2.0 * (score - smaller_error(square, residual, score, line, near))
        best[p] = max(0.0, largest_square) * unit * unit
        smallest_square = square * shrink - 2.0 * (
            second_score + smaller_error(square, residual, second_score, line, near)
        )
        second[p] = maximum(0.0, smallest_square) * unit * unit
