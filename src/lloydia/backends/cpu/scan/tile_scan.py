"""The scan of :mod:`nearest` on the matrix units of :mod:`simd.amx`.

Rows that the scores of tiles leave in doubt are scored again by panels; for those that are still
in doubt, the panels' scores, which are the same again, tell the centres whose D decide, unless they
are few: then :mod:`settle` does it.
"""

from __future__ import annotations

import numpy as np

from lloydia.backends.cpu.rows.features import distance
from lloydia.backends.cpu.runtime.compiled import integers, kernel, subroutine
from lloydia.backends.cpu.scan.group_scores import score_panels
from lloydia.backends.cpu.scan.nearest import (
    BLOCK_BYTES,
    aligned,
    bound,
    certify,
    frame_rows,
    least_error,
)
from lloydia.backends.cpu.scan.rivals import list_rivals
from lloydia.backends.cpu.scan.settle import settle
from lloydia.backends.cpu.scan.tile_scores import score_tiles
from lloydia.backends.cpu.simd.candidates import lowest_bit
from lloydia.backends.cpu.simd.pairs import TILE
from lloydia.backends.cpu.simd.points import GROUP, LANES, PANEL

__all__ = ["tile_scan"]

# Rows in doubt of a group up to which each is settled by itself.
FEW = 8


@subroutine
def decide(X, numbers, doubtful, n, listed, k, centers, labels, least, rivals):
    """Evaluate D of a group's rows in doubt to their rivals, as :func:`list_rivals` lists them.

    `numbers` are the rows of X; their labels, D and the next D are written.
    """
    names, points, n_listed = listed
    for e in range(n):
        q = doubtful[e]
        labels[q], least[q], rivals[q] = 0, np.inf, np.inf
    for e in range(n_listed):
        j, bits = names[e], points[e]
        while bits != 0 and j < k:
            q = lowest_bit(np.uint64(bits))
            bits &= bits - 1
            D = distance(X[numbers[q]], centers[j])
            if D < least[q]:
                labels[q], least[q], rivals[q] = j, D, least[q]
            elif D < rivals[q]:
                rivals[q] = D


@subroutine
def settle_group(X, numbers, y, square, high, doubtful, n, packed, centers, frame, errors, found):
    """Settle `n` rows of a framed group, given by place, whose best scores are `high`.

    `found` is (labels, D to the nearest, a lower bound on D to the others), by place.
    """
    panels, starts, _ = packed
    labels, least, second = found
    far, line, near, unit = errors[0], errors[2], errors[4], 1.0 / np.float64(frame[1])
    d, k = X.shape[1], len(centers)
    shrink = 1.0 - (d + 8) * 2.0**-20
    reach, names, points = aligned(GROUP), integers(len(starts)), integers(len(starts))
    wanted = np.int64(0)
    for e in range(n):
        q = doubtful[e]
        wanted |= np.int64(1) << q
        error, top = np.inf, np.float64(high[q])
        if square[q] < far:
            error = least_error(np.float64(square[q]), 0.0, top, line, near)
        # Rounded to float32 it is still not more than this.
        reach[q] = (top - 2.0 * error) - 2.0**-22 * (abs(high[q]) + error)
    n_listed = list_rivals(
        y.ctypes.data, d, panels.ctypes.data, starts.ctypes.data, len(panels), reach.ctypes.data,
        wanted, names.ctypes.data, points.ctypes.data,
    )  # fmt: skip
    listed = (names, points, n_listed)
    decide(X, numbers, doubtful, n, listed, k, centers, labels, least, second)
    for e in range(n):
        q = doubtful[e]
        if square[q] < far:
            least_listed = np.float64(reach[q])
            error = least_error(np.float64(square[q]), 0.0, least_listed, line, near)
            others = np.float64(square[q]) * shrink - 2.0 * (least_listed + error)
            second[q] = min(second[q], max(0.0, others) * unit * unit)


@kernel
def rescore(
    X, rows, y, squares, at, places, n, packed, centers, frame, errors, deep, labels, best, second
):
    """Scan the framed rows at `places` by panels, and settle those still in doubt.

    The block begins with entry `at` of the list `rows`; `squares`, `labels`, `best` and `second`
    are its.  Returns the number of rows that were settled.
    """
    d, lines, unit = X.shape[1], (errors[2], errors[4]), 1.0 / np.float64(frame[1])
    again = aligned(GROUP * y.shape[1]).reshape(1, y.shape[1], GROUP)
    square, high, low = aligned(3 * GROUP).reshape(3, GROUP)
    which, rests = aligned(GROUP).view(np.int32), aligned(GROUP)
    rests[:] = np.float32(0.0)
    fresh, doubtful, numbers = np.empty(GROUP, np.int32), integers(GROUP), integers(GROUP)
    upper, lower = np.empty(GROUP), np.empty(GROUP)
    settled = 0
    for first in range(0, n, GROUP):
        m = min(GROUP, n - first)
        for q in range(GROUP):
            entry = places[min(first + q, n - 1)]
            numbers[q] = rows[entry] if len(rows) else entry
            p = entry - at
            square[q] = squares[p]
            for f in range(d):
                again[0, f, q] = y[p // GROUP, f, p % GROUP]
        score_panels(again, d, 1, *packed[:2], high, low, which, deep, 0, 0)
        n_doubtful = certify(
            m, square, rests, high, low, which, PANEL, lines, errors[0], fresh, 0, doubtful
        )
        settled += n_doubtful
        if len(best):
            bound(m, d, square, rests, high, low, lines, unit, upper, lower)
        if n_doubtful > FEW:
            found = (fresh, upper, lower)
            settle_group(
                X, numbers, again, square, high, doubtful, n_doubtful, packed, centers, frame,
                errors, found,
            )  # fmt: skip
        for q in range(m):
            p = places[first + q] - at
            labels[p] = fresh[q]
            if len(best):
                best[p] = upper[q]
                second[p] = lower[q]
        if 0 < n_doubtful <= FEW:
            for e in range(n_doubtful):
                doubtful[e] = places[first + doubtful[e]]
            entries = doubtful[:n_doubtful]
            scores = aligned(-(-len(centers) // LANES) * LANES)
            exact = (errors[0], errors[3], errors[5])
            settle(
                X, rows, at, entries, centers, packed[1:], frame, exact, labels, best, second,
                scores,
            )  # fmt: skip
    return settled


@kernel
def tile_scan(
    X, rows, start, stop, packed, tiles, centers, lead, frame, errors, deep, fresh, best, second
):
    """Scan dense rows, and settle those in doubt; return how many these were.

    `tiles` and `centers` too are those of :class:`lloydia.backends.cpu.scan.centers.Packed`, `lead`
    is that of :mod:`tile_scores` for the features, `deep` the `shape` of :func:`score_panels`.
    """
    if stop <= start:
        return 0
    origin, scale = frame
    far, tile_line = errors[0], errors[1]
    d = X.shape[1]
    even = d + d % 2
    # Tiles take the points of two groups.
    pair = 2 * GROUP
    most = max(1, min(8, BLOCK_BYTES // (4 * pair * d))) * pair
    block = min(most, -(-(stop - start) // pair) * pair)
    y = aligned(block * even).reshape(block // GROUP, even, GROUP)
    for g in range(len(y) if even > d else 0):
        y[g, d] = np.float32(0.0)
    squares, high, low = aligned(block), aligned(block), aligned(block)
    which, rests = aligned(block).view(np.int32), aligned(block)
    scratch = aligned((3 * len(y) + 8) * tiles[0].shape[1] * 256)
    scratch[:] = np.float32(0.0)
    # A tile's error has no other bound.
    lines = tile_line, (np.inf, np.inf, np.inf, np.inf)
    unit = 1.0 / np.float64(scale)
    places, settled = np.empty(block, np.int64), 0
    for at in range(start, stop, block):
        m = min(block, stop - at)
        frame_rows(X, rows, at, m, deep, origin, scale, y, squares, 0, 0)
        score_tiles(
            y, -(-m // pair) * 2, lead, scratch, tiles[0], tiles[1], high, low, which, rests
        )
        labels, upper, lower = fresh[at - start :], best[at - start :], second[at - start :]
        n = certify(m, squares, rests, high, low, which, TILE, lines, far, labels, at, places)
        if len(best):
            bound(m, d, squares, rests, high, low, lines, unit, upper, lower)
        settled += rescore(
            X, rows, y, squares, at, places, n, packed, centers, frame, errors, deep, labels,
            upper, lower,
        )  # fmt: skip
    return settled
