"""The nearest centre of each row, by looking at all of them.

Float32 scores by the register-blocked scan of :mod:`simd.points`, the certificate of
:mod:`lloydia.exact.certificate` a row, and for the few rows in doubt, in :mod:`settle`, the
canonical D of the centres whose scores are too near the best.  :mod:`tile_scan` scores on matrix
units, :mod:`sparse_scan` is the scan of CSR rows, which leaves no doubt.

Each scan takes a list of rows (or EVERY) and a range of it, writes the label of list entry p to
``fresh[p - start]``, and where `best` and `second` are not empty an upper bound on the squared
distance to that centre and a lower bound on those to all others.  They list the entries in doubt,
of which nothing is known until they are settled, and return their number.
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
from lloydia.backends.cpu.simd.frames import fetch, frame_group, frame_run, is_compact, is_narrow
from lloydia.backends.cpu.simd.points import (
    GROUP,
    LANES,
    judge,
)
from lloydia.exact import certificate

__all__ = [
    "aligned",
    "bound",
    "certify",
    "frame_rows",
    "least_error",
    "near_error",
    "two_nearest",
]

# What a block of framed rows should fill: a good part of the second-level cache.
BLOCK_BYTES = 800_000

# Bytes of the longest rows that are asked for ahead; where they are longer, the processor itself
# finds out which come next.
FETCHED = 128


@subroutine
def two_nearest(D):
    """Return the index of the least D, the first of equals, and the least of the others."""
    nearest = 0
    rival = np.inf
    for j in upto(1, len(D)):
        if D[j] < D[nearest]:
            rival = D[nearest]
            nearest = j
        elif D[j] < rival:
            rival = D[j]
    return nearest, rival


@subroutine
def aligned(size):
    """Return an empty float32 array that starts at a multiple of 64 bytes."""
    raw = np.empty(size + 16, np.float32)
    start = -raw.ctypes.data % 64 // 4
    return raw[start : start + size]


@subroutine(inline="always")
def end_to_end(X, rows):
    """Return whether a range of a list of rows is one piece of memory."""
    return len(rows) == 0 and is_compact(X)


@subroutine(inline="always")
def frame_rows(X, rows, at, m, shape, origin, scale, y, squares, ahead, part):
    """Write ``(x - origin) * scale`` of `m` rows to `y` (groups, features, GROUP).

    `squares` receives upper bounds on the squared norms, of a relative error below
    ``(d + 8) 2**-21``.  The last row fills up the last group.  With each group `part` bytes are
    asked for, from the address `ahead` on; if that is 0, the rows of the next group.  `shape` is
    that of :func:`score_panels`.
    """
    addresses = local(np.int64, GROUP)
    data, pitch, size = X.ctypes.data, X.strides[0], X.shape[1] * X.itemsize
    size = size if size <= FETCHED and part == 0 else 0
    one_run = is_narrow(shape) and end_to_end(X, rows)
    for g in upto(-(-m // GROUP)):
        first = g * GROUP
        fetch(ahead + g * part, part)
        if one_run and first + GROUP <= m:
            frame_run(shape, X, at + first, origin, scale, y, squares, g)
            continue
        for p in upto(GROUP):
            entry = at + minimum(first + p, m - 1)
            i = rows[entry] if len(rows) else entry
            addresses[p] = data + i * pitch
        for p in upto(GROUP if size else 0):
            entry = at + minimum(first + GROUP + p, m - 1)
            i = rows[entry] if len(rows) else entry
            fetch(data + i * pitch, size)
        frame_group(shape, addresses, X, origin, scale, y, squares, g)


near_error = subroutine(certificate.near_error, inline="always")


@subroutine(inline="always")
def least_error(square, rest, score, line, near):
    """Return the smaller of the bounds by all centres and by those that are near."""
    error, other = line[0] + line[1] * square + line[2] * rest, near_error(square, score, near)
    return other if other < error else error


@subroutine(inline="always")
def certify(m, squares, rests, high, low, which, width, lines, far, labels, at, doubtful):
    """Write the labels of `m` scanned rows, and list those in doubt; the first row is `at`.

    `lines` are two: the error of a row's scores is ``line[0] + line[1] * R**2 + line[2] * r**2``,
    where `rests` are r**2; and that of :func:`lloydia.exact.certificate.near_error`.  Returns the
    number of rows in doubt.
    """
    wide, near = lines
    # What float32 rounds here is less than this adds.
    grow = 1.0 + 2.0**-20
    line = (np.float32(wide[0] * grow), np.float32(wide[1] * grow), np.float32(wide[2] * grow))
    limit, n_doubtful = np.float32(far), 0
    gaps = local(np.float64, LANES)
    for first in upto(0, m, LANES):
        bits = judge(high, low, which, width, squares, rests, line, limit, labels, first, m)
        # All of a vector, even for one: no more than two roots by themselves.
        for q in upto(LANES if bits != 0 else 0):
            score, square = np.float64(high[first + q]), np.float64(squares[first + q])
            error = near_error(square, score, near) if square < far else np.inf
            gaps[q] = score - np.float64(low[first + q]) - 2.0 * error
        while bits != 0:
            q = lowest_bit(np.uint64(bits))
            bits &= bits - 1
            doubtful[n_doubtful] = at + first + q
            n_doubtful += not gaps[q] > 0.0
    return n_doubtful


@subroutine(inline="always")
def bound(m, d, squares, rests, high, low, lines, unit, best, second):
    """Write bounds on the squared distances of scanned rows to the nearest and to all others.

    `lines` are those of :func:`certify`.
    """
    shrink = 1.0 - (d + 8) * 2.0**-20
    line, near = lines
    for p in upto(m):
        square, rest = np.float64(squares[p]), np.float64(rests[p])
        score, rival = np.float64(high[p]), np.float64(low[p])
        most = square - 2.0 * (score - least_error(square, rest, score, line, near))
        best[p] = max(0.0, most) * unit * unit
        least = square * shrink - 2.0 * (rival + least_error(square, rest, rival, line, near))
        second[p] = maximum(0.0, least) * unit * unit
