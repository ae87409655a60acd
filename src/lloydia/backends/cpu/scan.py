"""The nearest centre of each row, by looking at all of them.

Float32 scores by the register-blocked scan of :mod:`points`, the certificate of
:mod:`lloydia.exact.certificate` a row, and for the few rows in doubt the canonical D of the centres
whose scores are too near the best.  :mod:`sparse_scan` is the scan of CSR rows.

Each scan takes a list of rows (or EVERY) and a range of it, writes the label of list entry p to
``fresh[p - start]``, and where `best` and `second` are not empty an upper bound on the squared
distance to that centre and a lower bound on those to all others.  They return the number of rows in
doubt.
"""

from __future__ import annotations

import numpy as np

from lloydia.backends.cpu.amx import TILE, score_tiles
from lloydia.backends.cpu.compiled import kernel
from lloydia.backends.cpu.points import DEEP, GROUP, PANEL, frame_group, scan_deep_panel, scan_panel
from lloydia.backends.cpu.rows import distance, load

__all__ = ["canonical_row", "certified_scan", "two_nearest"]

# What a block of framed rows should fill: a good part of the second-level cache.
BLOCK_BYTES = 800_000


@kernel
def canonical_row(x, columns, out):
    """Write the D of one row to every centre; `columns` (d, k) is feature-major, float64."""
    out[:] = 0.0
    for f in range(len(x)):
        value = x[f]
        for j in range(len(out)):
            difference = value - columns[f, j]
            out[j] += difference * difference


@kernel
def two_nearest(D):
    """Return the index of the least D, the first of equals, and the least of the others."""
    nearest = 0
    rival = np.inf
    for j in range(1, len(D)):
        if D[j] < D[nearest]:
            rival = D[nearest]
            nearest = j
        elif D[j] < rival:
            rival = D[j]
    return nearest, rival


@kernel
def aligned(size):
    """Return an empty float32 array that starts at a multiple of 64 bytes."""
    raw = np.empty(size + 16, np.float32)
    start = -raw.ctypes.data % 64 // 4
    return raw[start : start + size]


@kernel
def frame_rows(X, rows, at, m, origin, scale, y, squares):
    """Write ``(x - origin) * scale`` of `m` rows to `y` (groups, features, GROUP).

    `squares` receives upper bounds on the squared norms, of a relative error below
    ``(d + 8) 2**-21``.  The last row fills up the last group.
    """
    d = X.shape[1]
    addresses = np.empty(GROUP, np.int64)
    for g in range(-(-m // GROUP)):
        first = g * GROUP
        for p in range(GROUP):
            entry = at + min(first + p, m - 1)
            i = rows[entry] if len(rows) else entry
            addresses[p] = X.ctypes.data + i * X.strides[0]
        frame_group(
            addresses.ctypes.data,
            X.strides[1],
            d,
            origin.ctypes.data,
            scale,
            y.ctypes.data + g * y.strides[0],
            squares.ctypes.data + first * 4,
        )
        for p in range(first, first + GROUP):
            squares[p] *= np.float32(1.0 + (d + 8) * 2.0**-22)


@kernel
def score_panels(y, d, groups, panels, halves, best, second, which):
    """Scan framed rows; the last three receive each one's best two scores and a panel."""
    for number in range(len(halves) // PANEL):
        panel = panels.ctypes.data + number * d * PANEL * 4
        half = halves.ctypes.data + number * PANEL * 4
        for g in range(groups):
            points = y.ctypes.data + g * y.strides[0]
            a = best.ctypes.data + g * GROUP * 4
            b = second.ctypes.data + g * GROUP * 4
            c = which.ctypes.data + g * GROUP * 4
            if d > DEEP:
                scan_deep_panel(points, d, panel, half, a, b, c, number)
            else:
                scan_panel(points, d, panel, half, a, b, c, number)


@kernel
def certify(m, squares, rests, high, low, which, width, line, far, labels, doubtful):
    """Write the labels of `m` scanned rows and the places of those in doubt; return their number.

    The error of a row's scores is ``line[0] + line[1] * R**2 + line[2] * r**2``; `rests` are r**2.
    """
    names = high.view(np.int32)
    certain = np.empty(m, np.bool_)
    for p in range(m):
        square = np.float64(squares[p])
        gap = np.float64(high[p]) - np.float64(low[p])
        error = line[0] + line[1] * square + line[2] * np.float64(rests[p])
        certain[p] = gap > 2.0 * error and square < far
        labels[p] = which[p] * width + (names[p] & (width - 1))
    n_doubtful = 0
    for p in range(m):
        doubtful[n_doubtful] = p
        n_doubtful += not certain[p]
    return n_doubtful


@kernel
def bound(m, d, squares, rests, high, low, line, unit, best, second):
    """Write bounds on the squared distances of scanned rows to the nearest and to all others."""
    shrink = 1.0 - (d + 8) * 2.0**-20
    for p in range(m):
        square = np.float64(squares[p])
        error = line[0] + line[1] * square + line[2] * np.float64(rests[p])
        best[p] = max(0.0, square - 2.0 * (np.float64(high[p]) - error)) * unit * unit
        least = square * shrink - 2.0 * (np.float64(low[p]) + error)
        second[p] = max(0.0, least) * unit * unit


@kernel
def largest(scores):
    """Return the largest score."""
    top = np.full(64, -np.inf, np.float32)
    k = len(scores)
    for first in range(0, k - 63, 64):
        for lane in range(64):
            score = scores[first + lane]
            top[lane] = score if score > top[lane] else top[lane]
    best = np.float32(-np.inf)
    for lane in range(64):
        best = max(best, top[lane])
    for j in range(k - k % 64, k):
        best = max(best, scores[j])
    return best


@kernel
def next_rival(scores, start, reach):
    """Return the first score from `start` on that is not below `reach`, or their number."""
    k = len(scores)
    while start < k:
        stop = min(start + 32, k)
        found = False
        for j in range(start, stop):
            # Not "at least": a score that is not a number proves nothing.
            found |= not np.float64(scores[j]) < reach
        if found:
            while np.float64(scores[start]) < reach:
                start += 1
            return start
        start = stop
    return k


@kernel
def settle(x, y, error, columns, starts, centers, scores):
    """Settle a row in doubt: evaluate D for the centres whose score is within 2 errors of the best.

    Returns the label, its D, the least D of the others that were evaluated, and what the scores of
    those that were not are below.
    """
    k = len(centers)
    for j in range(k):
        scores[j] = starts[j]
    for f in range(len(x)):
        value = y[f]
        for j in range(k):
            scores[j] += value * columns[f, j]
    reach = np.float64(largest(scores)) - 2.0 * error
    label = 0
    least = rival = np.inf
    j = next_rival(scores, 0, reach)
    while j < k:
        D = distance(x, centers[j])
        if D < least:
            rival = least
            least = D
            label = j
        elif D < rival:
            rival = D
        j = next_rival(scores, j + 1, reach)
    return label, least, rival, reach


@kernel
def rescore(y, squares, places, n, d, packed, line, far, unit, labels, best, second):
    """Scan the framed rows at `places` by panels; keep those still in doubt, return their number.

    `labels`, `best` and `second` are those of the block.
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
            p = places[min(first + q, n - 1)]
            square[q] = squares[p]
            for f in range(d):
                again[0, f, q] = y[p // GROUP, f, p % GROUP]
        score_panels(again, d, 1, panels, starts, high, low, which)
        n_doubtful = certify(m, square, rests, high, low, which, PANEL, line, far, fresh, doubtful)
        if len(best):
            bound(m, d, square, rests, high, low, line, unit, upper, lower)
        for q in range(m):
            p = places[first + q]
            labels[p] = fresh[q]
            if len(best):
                best[p] = upper[q]
                second[p] = lower[q]
        for q in range(n_doubtful):
            places[left] = places[first + doubtful[q]]
            left += 1
    return left


@kernel
def certified_scan(
    X, rows, start, stop, centers, packed, tiles, frame, errors, fresh, best, second
):
    """Scan dense rows; see the module for what it writes.

    The arguments from `centers` to `errors` are those of
    :class:`lloydia.backends.cpu.centers.Packed`.
    """
    if stop <= start:
        return 0
    panels, starts, columns = packed
    origin, scale = frame
    far, tile_line, panel_line, line = errors
    on_tiles = len(tiles[0]) > 0
    first_line, width = (tile_line, TILE) if on_tiles else (panel_line, PANEL)
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
    rests[:] = np.float32(0.0)
    doubtful = np.empty(block, np.int64)
    scratch = aligned((3 * len(y) + 8) * tiles[0].shape[1] * 256 if on_tiles else 0)
    scratch[:] = np.float32(0.0)
    x, row = np.empty(d), np.empty(d, np.float32)
    scores = np.empty(len(centers), np.float32)
    unit = 1.0 / np.float64(scale)
    rechecked = 0
    for at in range(start, stop, block):
        m = min(block, stop - at)
        frame_rows(X, rows, at, m, origin, scale, y, squares)
        labels = fresh[at - start : at - start + m]
        upper, lower = (best, second)
        if len(best):
            upper = best[at - start : at - start + m]
            lower = second[at - start : at - start + m]
        if on_tiles:
            score_tiles(y, -(-m // pair) * 2, scratch, tiles[0], tiles[1], high, low, which, rests)
        else:
            score_panels(y, d, -(-m // GROUP), panels, starts, high, low, which)
        n = certify(m, squares, rests, high, low, which, width, first_line, far, labels, doubtful)
        if len(best):
            bound(m, d, squares, rests, high, low, first_line, unit, upper, lower)
        if on_tiles:
            n = rescore(
                y, squares, doubtful, n, d, packed, panel_line, far, unit, labels, upper, lower
            )
        rechecked += n
        for q in range(n):
            p = doubtful[q]
            load(X, rows[at + p] if len(rows) else at + p, x)
            for f in range(d):
                row[f] = y[p // GROUP, f, p % GROUP]
            square = np.float64(squares[p])
            error = line[0] + line[1] * square if square < far else np.inf
            label, D, rival, reach = settle(x, row, error, columns, starts, centers, scores)
            labels[p] = label
            if len(best):
                upper[p] = D
                others = square * (1.0 - (d + 8) * 2.0**-20) - 2.0 * (reach + error)
                lower[p] = min(rival, max(0.0, others) * unit * unit)
    return rechecked
