"""The scan of dense rows on the matrix units of :mod:`simd.amx`; see :mod:`nearest`.

Rows that the scores of tiles leave ambiguous are scored again by panels.  If many rows of a group
are still ambiguous, their close centres are listed together and D is evaluated to these; a few are
left to :mod:`recheck`.
"""

from __future__ import annotations

import numpy as np

from lloydia.backends.cpu.rows.features import distance
from lloydia.backends.cpu.runtime.compiled import integers, kernel, subroutine
from lloydia.backends.cpu.scan.close_centers import list_close_centers
from lloydia.backends.cpu.scan.group_scores import score_panels
from lloydia.backends.cpu.scan.nearest import (
    BLOCK_BYTES,
    aligned,
    bound,
    certify,
    frame_rows,
    smaller_error,
)
from lloydia.backends.cpu.scan.recheck import recheck_exact
from lloydia.backends.cpu.scan.tile_scores import score_tiles
from lloydia.backends.cpu.simd.candidates import lowest_bit
from lloydia.backends.cpu.simd.microkernel_rows_in_lanes import GROUP, LANES, PANEL
from lloydia.backends.cpu.simd.pairs import TILE

__all__ = ["tile_scan"]

# Up to this many ambiguous rows of a group are rechecked one by one.
MAX_SINGLE_RECHECKS = 8


@subroutine
def recheck_close_centers(
    X, numbers, ambiguous, n, listed, k, centers, labels, nearest_D, second_D
):
    """Evaluate D of ambiguous rows of a group to their close centres.

    Parameters
    ----------
    numbers : IN, ndarray (GROUP,), int64
        The rows of X.
    ambiguous, n : IN
        Places in the group.
    listed : tuple
        What :func:`list_close_centers` listed.
    labels, nearest_D, second_D : OUT, ndarray (GROUP,)
        The nearest listed centre, its D, and the next D; ties go to the smaller label.
    """
    names, points, n_listed = listed
    for e in range(n):
        q = ambiguous[e]
        labels[q], nearest_D[q], second_D[q] = 0, np.inf, np.inf
    for e in range(n_listed):
        j, bits = names[e], points[e]
        while bits != 0 and j < k:
            q = lowest_bit(np.uint64(bits))
            bits &= bits - 1
            D = distance(X[numbers[q]], centers[j])
            if D < nearest_D[q]:
                labels[q], nearest_D[q], second_D[q] = j, D, nearest_D[q]
            elif D < second_D[q]:
                second_D[q] = D


@subroutine
def recheck_group(X, numbers, y, square, high, ambiguous, n, packed, centers, frame, errors, found):
    """Recheck `n` rows of a framed group, given by place, whose best scores are `high`.

    `found`, OUT, is (labels, D to the nearest, a lower bound on D to the others), by place.
    """
    panels, half_squares, _ = packed
    labels, nearest_D, second = found
    far, line, near, unit = errors[0], errors[2], errors[4], 1.0 / np.float64(frame[1])
    d, k = X.shape[1], len(centers)
    shrink = 1.0 - (d + 8) * 2.0**-20
    reach, names, points = aligned(GROUP), integers(len(half_squares)), integers(len(half_squares))
    requested = np.int64(0)
    for e in range(n):
        q = ambiguous[e]
        requested |= np.int64(1) << q
        error, top = np.inf, np.float64(high[q])
        if square[q] < far:
            error = smaller_error(np.float64(square[q]), 0.0, top, line, near)
        # Rounded to float32, it is still no larger than ``top - 2 error``.
        reach[q] = (top - 2.0 * error) - 2.0**-22 * (abs(high[q]) + error)
    n_listed = list_close_centers(
        y.ctypes.data, d, panels.ctypes.data, half_squares.ctypes.data, len(panels),
        reach.ctypes.data, requested, names.ctypes.data, points.ctypes.data,
    )  # fmt: skip
    listed = (names, points, n_listed)
    recheck_close_centers(X, numbers, ambiguous, n, listed, k, centers, labels, nearest_D, second)
    for e in range(n):
        q = ambiguous[e]
        if square[q] < far:
            lowest_listed = np.float64(reach[q])
            error = smaller_error(np.float64(square[q]), 0.0, lowest_listed, line, near)
            others = np.float64(square[q]) * shrink - 2.0 * (lowest_listed + error)
            second[q] = min(second[q], max(0.0, others) * unit * unit)


@kernel
def rescore(
    X, rows, y, squares, at, places, n, packed, centers, frame, errors, deep, labels, best, second
):
    """Scan framed rows again by panels, and recheck those that stay ambiguous; return how many.

    Parameters
    ----------
    at : int
        The list entry that the block begins with.
    places, n : IN
        The list entries to scan.
    y, squares, labels, best, second
        The framed rows of the block, their squared norms, labels and bounds.
    """
    d, lines, unit = X.shape[1], (errors[2], errors[4]), 1.0 / np.float64(frame[1])
    framed = aligned(GROUP * y.shape[1]).reshape(1, y.shape[1], GROUP)
    square, high, low = aligned(3 * GROUP).reshape(3, GROUP)
    which, residuals = aligned(GROUP).view(np.int32), aligned(GROUP)
    residuals[:] = np.float32(0.0)
    fresh, ambiguous, numbers = np.empty(GROUP, np.int32), integers(GROUP), integers(GROUP)
    upper, lower = np.empty(GROUP), np.empty(GROUP)
    n_rechecked = 0
    for first in range(0, n, GROUP):
        m = min(GROUP, n - first)
        for q in range(GROUP):
            entry = places[min(first + q, n - 1)]
            numbers[q] = rows[entry] if len(rows) else entry
            p = entry - at
            square[q] = squares[p]
            for f in range(d):
                framed[0, f, q] = y[p // GROUP, f, p % GROUP]
        score_panels(framed, d, 1, *packed[:2], high, low, which, deep, 0, 0)
        n_ambiguous = certify(
            m, square, residuals, high, low, which, PANEL, lines, errors[0], fresh, 0, ambiguous
        )
        n_rechecked += n_ambiguous
        if len(best):
            bound(m, d, square, residuals, high, low, lines, unit, upper, lower)
        if n_ambiguous > MAX_SINGLE_RECHECKS:
            found = (fresh, upper, lower)
            recheck_group(
                X, numbers, framed, square, high, ambiguous, n_ambiguous, packed, centers, frame,
                errors, found,
            )  # fmt: skip
        for q in range(m):
            p = places[first + q] - at
            labels[p] = fresh[q]
            if len(best):
                best[p] = upper[q]
                second[p] = lower[q]
        if 0 < n_ambiguous <= MAX_SINGLE_RECHECKS:
            for e in range(n_ambiguous):
                ambiguous[e] = places[first + ambiguous[e]]
            ambiguous_rows = ambiguous[:n_ambiguous]
            scores = aligned(-(-len(centers) // LANES) * LANES)
            exact = (errors[0], errors[3], errors[5])
            recheck_exact(
                X, rows, at, ambiguous_rows, centers, packed[1:], frame, exact, labels, best,
                second, scores,
            )  # fmt: skip
    return n_rechecked


@kernel
def tile_scan(
    X,
    rows,
    start,
    stop,
    packed,
    tiles,
    centers,
    n_head_pairs,
    frame,
    errors,
    deep,
    fresh,
    best,
    second,
):
    """Scan dense rows; return how many needed exact distances.

    Parameters
    ----------
    X, rows, start, stop, fresh, best, second
        See :mod:`nearest`.
    packed, tiles, centers, frame, errors : IN
        Those of :class:`centers.Packed`; `packed` are its `scores`.
    n_head_pairs : int
        From :func:`tile_scores.head_pairs_of`.
    deep
        The `shape` of :func:`score_panels`.
    """
    if stop <= start:
        return 0
    origin, scale = frame
    far, tile_line = errors[0], errors[1]
    d = X.shape[1]
    even = d + d % 2
    # Tiles take the points of two groups.
    pair = 2 * GROUP
    max_rows = max(1, min(8, BLOCK_BYTES // (4 * pair * d))) * pair
    block = min(max_rows, -(-(stop - start) // pair) * pair)
    y = aligned(block * even).reshape(block // GROUP, even, GROUP)
    for g in range(len(y) if even > d else 0):
        y[g, d] = np.float32(0.0)
    squares, high, low = aligned(block), aligned(block), aligned(block)
    which, residuals = aligned(block).view(np.int32), aligned(block)
    scratch = aligned((3 * len(y) + 8) * tiles[0].shape[1] * 256)
    scratch[:] = np.float32(0.0)
    # The error of a tile's scores has no bound by near centres only.
    lines = tile_line, (np.inf, np.inf, np.inf, np.inf)
    unit = 1.0 / np.float64(scale)
    places, n_rechecked = np.empty(block, np.int64), 0
    for at in range(start, stop, block):
        m = min(block, stop - at)
        frame_rows(X, rows, at, m, deep, origin, scale, y, squares, 0, 0)
        score_tiles(
            y,
            -(-m // pair) * 2,
            n_head_pairs,
            scratch,
            tiles[0],
            tiles[1],
            high,
            low,
            which,
            residuals,
        )
        labels, upper, lower = fresh[at - start :], best[at - start :], second[at - start :]
        n = certify(m, squares, residuals, high, low, which, TILE, lines, far, labels, at, places)
        if len(best):
            bound(m, d, squares, residuals, high, low, lines, unit, upper, lower)
        n_rechecked += rescore(
            X, rows, y, squares, at, places, n, packed, centers, frame, errors, deep, labels,
            upper, lower,
        )  # fmt: skip
    return n_rechecked
