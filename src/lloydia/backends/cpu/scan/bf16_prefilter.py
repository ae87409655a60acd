r"""The bfloat16 prefilter: scores of the heads certify most rows, with fewer products.

With ``y = h + r`` and ``b = h' + r'``, h and h' of bfloat16, Cauchy and Schwarz say

    |y.b - h.h'|  =  |r.h' + y.r'|  <=  |r| |h'| + |y| |r'|  <=  A N + B P  =  W

for bfloat16 numbers A, B of the row and N, P of the centre that are at least these norms.  So W is
one more pair of columns: the tiles add up ``s_j + W_j``, and the result bounds the score from
above, centre by centre.  A centre far from the origin has a large error.  As one bound for all
centres it would leave every row ambiguous; here it affects only rows near that centre.

With ``high`` the largest of these, that of centre a, ``low`` the second largest and E the error of
adding up, the score of a is at least ``high - 2 W_a - E`` and those of all others are at most
``low + E``.  Centre a is the label if ``high - low > 2 W_a + 2 E``.  E follows from the norm of the
farthest centre.  Where it is too large, E' of :func:`lloydia.exact.certificate.near_error` takes
its place.  E' follows from ``high - 2 W_a``, which exceeds the score of a by at most the error of
adding up: only centres that are no farther than a matter, and none of them scores above
``low + E'``.  Rows that are not certified go to :mod:`tile_scan`, or to :mod:`panel_scan` where
there are no matrix units.
"""

from __future__ import annotations

import numpy as np

from lloydia.backends.cpu.runtime.compiled import kernel, subroutine
from lloydia.backends.cpu.runtime.counting import upto
from lloydia.backends.cpu.scan.nearest import aligned, frame_rows, near_error
from lloydia.backends.cpu.scan.tile_panels import not_less
from lloydia.backends.cpu.scan.tile_scores import score_pairs
from lloydia.backends.cpu.simd.microkernel_rows_in_lanes import BYTES, GROUP, VECTORS
from lloydia.backends.cpu.simd.pairs import ABREAST, KIB, TILE, split_bf16_heads

__all__ = ["prefilter_rows"]

# The memory of a block of heads: a good part of the second-level cache.
BLOCK_BYTES = 600_000

# After a block of which more than half stays ambiguous, one block is skipped; after the next such
# block three, and so on, up to this many.
IDLE = 15

# Rows that are framed at a time.
PAIR = 2 * GROUP


@subroutine
def from_bf16(bits):
    """Return the number of a bfloat16, given by its bits, in float64."""
    return np.float64(np.int32(bits << 16).view(np.float32))


@subroutine
def split_rows(X, rows, at, m, frame, n_head_pairs, y, squares, residuals, tiles, bounds):
    """Frame `m` rows, and write the tiles of their heads, and (A, B) of each to `bounds`."""
    d = X.shape[1]
    pitch = -(-n_head_pairs // TILE) * ABREAST * KIB
    column = (d + 1) // 2
    place = column // TILE * ABREAST * KIB // 4 + column % TILE * TILE
    names = tiles.view(np.int32)
    for first in upto(0, m, PAIR):
        n = min(PAIR, m - first)
        frame_rows(X, rows, at + first, n, None, frame[0], frame[1], y, squares[first:], 0, 0)
        for v in upto(2 * VECTORS):
            points = y.ctypes.data + v // VECTORS * y.strides[0] + v % VECTORS * BYTES
            vector = first // TILE + v
            out = tiles.ctypes.data + vector // ABREAST * pitch + vector % ABREAST * KIB
            found = residuals.ctypes.data + vector * BYTES
            split_bf16_heads(points, y.shape[1] // 2, n_head_pairs, out, found)
        for p in upto(first, first + PAIR):
            vector = p // TILE
            residual = not_less(np.sqrt(np.float64(residuals[p])), d)
            of_row = not_less(np.sqrt(np.float64(squares[p])), d)
            base = (vector // ABREAST * pitch + vector % ABREAST * KIB) // 4
            names[base + place + p % TILE] = np.int32(residual | of_row << 16)
            bounds[p, 0] = from_bf16(residual)
            bounds[p, 1] = from_bf16(of_row)


@subroutine
def certify_rows(m, d, squares, bounds, high, low, which, panels, lines, far, unit, out, ambiguous):
    """Write labels and bounds of `m` rows, list the ambiguous ones by place, return how many.

    `out` is (labels, best, second); the test is that of this module: ``high - low > 2 W_a + 2 E``.
    """
    labels, best, second = out
    line, near = lines
    names = high.view(np.int32)
    column = (d + 1) // 2
    shrink = 1.0 - (d + 8) * 2.0**-20
    n_ambiguous = 0
    for p in upto(m):
        square = np.float64(squares[p])
        ambiguous[n_ambiguous] = p
        if not square < far:
            n_ambiguous += 1
            continue
        name = names[p] & (TILE - 1)
        tile = which[p]
        pair = panels[tile // ABREAST, column // TILE, tile % ABREAST, name, column % TILE]
        width = bounds[p, 0] * from_bf16(pair & 0xFFFF) + bounds[p, 1] * from_bf16(
            pair >> 16 & 0xFFFF
        )
        error = of_others = line[0] + line[1] * square
        upper, lower = np.float64(high[p]), np.float64(low[p])
        score = upper - 2.0 * width
        labels[p] = tile * TILE + name
        if not score - lower > 2.0 * error:
            error = near_error(square, score, near)
            of_others = near_error(square, lower, near) if len(best) else error
            n_ambiguous += not score - lower > 2.0 * error
        if len(best):
            best[p] = max(0.0, square - 2.0 * (score - error)) * unit * unit
            second[p] = max(0.0, square * shrink - 2.0 * (lower + of_others)) * unit * unit
    return n_ambiguous


@kernel
def prefilter_rows(
    X, rows, start, stop, tiles, n_head_pairs, frame, far, lines, fresh, best, second, left
):
    """Certify dense rows by their heads; return how many are left, and how many were tried.

    Parameters
    ----------
    X, rows, start, stop, fresh, best, second
        See :mod:`nearest`; only certified rows are written.
    tiles, n_head_pairs, frame, far : IN
        As in :func:`tile_scan.tile_scan`.
    lines : tuple
        Two, as in :func:`nearest.certify`, for the error of adding up the heads.
    left : OUT, ndarray (stop - start,), int64
        List entries that are not certified.
    """
    if stop <= start:
        return 0, 0
    panels, half_squares = tiles
    d = X.shape[1]
    even = d + d % 2
    n_steps = -(-n_head_pairs // TILE)
    max_rows = max(1, min(16, BLOCK_BYTES // (PAIR * n_steps * KIB // TILE))) * PAIR
    block = min(max_rows, -(-(stop - start) // PAIR) * PAIR)
    y = aligned(PAIR * even).reshape(2, even, GROUP)
    for g in upto(2 if even > d else 0):
        y[g, d] = np.float32(0.0)
    squares, high, low, residuals = aligned(block), aligned(block), aligned(block), aligned(block)
    which, bounds = aligned(block).view(np.int32), np.empty((block, 2))
    ambiguous = np.empty(block + 1, np.int64)
    scratch = aligned((block // TILE + 8) * n_steps * KIB // 4)
    scratch[:] = np.float32(0.0)
    unit = 1.0 / np.float64(frame[1])
    n_left = n_tried = idle = pause = 0
    for at in upto(start, stop, block):
        m = min(block, stop - at)
        n = m
        if idle == 0:
            split_rows(X, rows, at, m, frame, n_head_pairs, y, squares, residuals, scratch, bounds)
            n_pairs = -(-m // PAIR) * VECTORS
            score_pairs(scratch, n_pairs, n_head_pairs, panels, half_squares, high, low, which)
            out = fresh[at - start :], best[at - start :], second[at - start :]
            n = certify_rows(
                m, d, squares, bounds, high, low, which, panels, lines, far, unit, out, ambiguous
            )
            for q in upto(n):
                left[n_left + q] = at + ambiguous[q]
            n_tried += m
            idle = pause = min(IDLE, 2 * pause + 1) if 2 * n > m else 0
        else:
            idle -= 1
            for p in upto(m):
                left[n_left + p] = at + p
        n_left += n
    return n_left, n_tried
