"""The scan of :mod:`scan` on the matrix units of :mod:`amx`.

Rows that the scores of tiles leave in doubt are scored again by panels.
"""

from __future__ import annotations

import numpy as np

from lloydia.backends.cpu.amx import TILE, score_tiles
from lloydia.backends.cpu.compiled import kernel
from lloydia.backends.cpu.points import GROUP, PANEL
from lloydia.backends.cpu.scan import (
    BLOCK_BYTES,
    aligned,
    bound,
    certify,
    frame_rows,
    score_panels,
)

__all__ = ["tile_scan"]


@kernel
def rescore(y, squares, at, places, n, d, packed, deep, line, far, unit, labels, best, second):
    """Scan the framed rows at `places` by panels; keep those still in doubt, return their number.

    The block begins with row `at`; `squares`, `labels`, `best` and `second` are its.
    """
    panels, starts, _ = packed
    again = aligned(GROUP * y.shape[1]).reshape(1, y.shape[1], GROUP)
    square, high, low = aligned(GROUP), aligned(GROUP), aligned(GROUP)
    which, rests = aligned(GROUP).view(np.int32), np.zeros(GROUP, np.float32)
    fresh, doubtful = np.empty(GROUP, np.int32), np.empty(GROUP, np.int64)
    upper, lower = np.empty(GROUP), np.empty(GROUP)
    left = 0
    for first in range(0, n, GROUP):
        m = min(GROUP, n - first)
        for q in range(GROUP):
            p = places[min(first + q, n - 1)] - at
            square[q] = squares[p]
            for f in range(d):
                again[0, f, q] = y[p // GROUP, f, p % GROUP]
        score_panels(again, d, 1, panels, starts, high, low, which, deep)
        n_doubtful = certify(
            m, square, rests, high, low, which, PANEL, line, far, fresh, 0, doubtful
        )
        if len(best):
            bound(m, d, square, rests, high, low, line, unit, upper, lower)
        for q in range(m):
            p = places[first + q] - at
            labels[p] = fresh[q]
            if len(best):
                best[p] = upper[q]
                second[p] = lower[q]
        for q in range(n_doubtful):
            places[left] = places[first + doubtful[q]]
            left += 1
    return left


@kernel
def tile_scan(
    X, rows, start, stop, packed, tiles, lead, frame, errors, deep, fresh, best, second, doubtful
):  # fmt: skip
    """Scan dense rows; `tiles` too is that of :class:`lloydia.backends.cpu.centers.Packed`.

    `lead` is that of :mod:`amx` for the features, `deep` the `shape` of :func:`score_panels`.
    """
    if stop <= start:
        return 0
    origin, scale = frame
    far, tile_line, line = errors[0], errors[1], errors[2]
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
    unit = 1.0 / np.float64(scale)
    n_doubtful = 0
    for at in range(start, stop, block):
        m = min(block, stop - at)
        frame_rows(X, rows, at, m, origin, scale, y, squares)
        score_tiles(
            y, -(-m // pair) * 2, lead, scratch, tiles[0], tiles[1], high, low, which, rests
        )
        labels, upper, lower = fresh[at - start :], best[at - start :], second[at - start :]
        places = doubtful[n_doubtful:]
        n = certify(m, squares, rests, high, low, which, TILE, tile_line, far, labels, at, places)
        if len(best):
            bound(m, d, squares, rests, high, low, tile_line, unit, upper, lower)
        n_doubtful += rescore(
            y, squares, at, places, n, d, packed, deep, line, far, unit, labels, upper, lower
        )
    return n_doubtful
