"""The nearest centre of each row, by looking at all of them.

Float32 scores by the register-blocked scan of :mod:`points`, the certificate of
:mod:`lloydia.exact.certificate` a row, and for the few rows in doubt the canonical D of the centres
whose scores are too near the best.  :mod:`tile_scan` scores on matrix units, :mod:`sparse_scan` is
the scan of CSR rows.

Each scan takes a list of rows (or EVERY) and a range of it, writes the label of list entry p to
``fresh[p - start]``, and where `best` and `second` are not empty an upper bound on the squared
distance to that centre and a lower bound on those to all others.  They return the number of rows in
doubt.
"""

from __future__ import annotations

import numpy as np

from lloydia.backends.cpu.compiled import kernel
from lloydia.backends.cpu.points import (
    DEEP,
    GROUP,
    LANES,
    NARROW,
    PANEL,
    frame_group,
    frame_run,
    judge,
    scan_deep_panel,
    scan_panel,
)
from lloydia.backends.cpu.rows import distance, load

__all__ = [
    "aligned",
    "bound",
    "canonical_row",
    "certify",
    "frame_rows",
    "panel_scan",
    "score_panels",
    "settle_all",
    "two_nearest",
]

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
    one_run = len(rows) == 0 and X.strides == (d * X.itemsize, X.itemsize) and d <= NARROW
    for g in range(-(-m // GROUP)):
        first = g * GROUP
        if one_run and first + GROUP <= m:
            frame_run(
                X.ctypes.data + (at + first) * X.strides[0],
                d,
                origin.ctypes.data,
                scale,
                y.ctypes.data + g * y.strides[0],
                squares.ctypes.data + first * 4,
            )
            continue
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
    grow = np.float32(1.0 + (d + 8) * 2.0**-22)
    for p in range(-(-m // GROUP) * GROUP):
        squares[p] *= grow


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
    # What float32 rounds here is less than this adds.
    grow = 1.0 + 2.0**-20
    line = (np.float32(line[0] * grow), np.float32(line[1] * grow), np.float32(line[2] * grow))
    tail = np.empty(LANES, np.int32)
    n_doubtful = 0
    for first in range(0, m, LANES):
        whole = first + LANES <= m
        bits = judge(
            high.ctypes.data + 4 * first,
            low.ctypes.data + 4 * first,
            which.ctypes.data + 4 * first,
            width,
            squares.ctypes.data + 4 * first,
            rests.ctypes.data + 4 * first,
            line,
            np.float32(far),
            labels.ctypes.data + 4 * first if whole else tail.ctypes.data,
        )
        for p in range(first, 0 if whole else m):
            labels[p] = tail[p - first]
        p = first
        while bits != 0 and p < m:
            doubtful[n_doubtful] = p
            n_doubtful += bits & 1
            bits >>= 1
            p += 1
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
def settle(x, y, reach, columns, starts, centers, scores):
    """Settle a row in doubt: evaluate D for the centres whose score is not below `reach`.

    Returns the label, its D, and the least D of the others that were evaluated.
    """
    k = len(centers)
    for j in range(k):
        scores[j] = starts[j]
    for f in range(len(x)):
        value = y[f]
        for j in range(k):
            scores[j] += value * columns[f, j]
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
    return label, least, rival


@kernel
def settle_all(
    X, rows, at, places, n, y, squares, high, centers, packed, lines, far, unit,
    labels, best, second,
):  # fmt: skip
    """Settle the rows at `places` of a block that begins with entry `at` of the list of rows.

    `lines` are those of the errors of panels, by which the best scores `high` were found, and of
    scores without a name.
    """
    d = X.shape[1]
    x, row = np.empty(d), np.empty(d, np.float32)
    scores = np.empty(len(centers), np.float32)
    for q in range(n):
        p = places[q]
        load(X, rows[at + p] if len(rows) else at + p, x)
        for f in range(d):
            row[f] = y[p // GROUP, f, p % GROUP]
        square = np.float64(squares[p])
        error = lines[1][0] + lines[1][1] * square if square < far else np.inf
        reach = np.float64(high[p]) - (lines[0][0] + lines[0][1] * square) - error
        label, D, rival = settle(x, row, reach, packed[2], packed[1], centers, scores)
        labels[p] = label
        if len(best):
            best[p] = D
            others = square * (1.0 - (d + 8) * 2.0**-20) - 2.0 * (reach + error)
            second[p] = min(rival, max(0.0, others) * unit * unit)


@kernel
def panel_scan(X, rows, start, stop, centers, packed, frame, errors, fresh, best, second):
    """Scan dense rows; see the module for what it writes.

    The arguments from `centers` to `errors` are those of
    :class:`lloydia.backends.cpu.centers.Packed`.
    """
    if stop <= start:
        return 0
    panels, starts, _ = packed
    origin, scale = frame
    far, lines = errors[0], errors[2:4]
    d = X.shape[1]
    most = max(2, min(16, BLOCK_BYTES // (4 * GROUP * d))) * GROUP
    block = min(most, -(-(stop - start) // GROUP) * GROUP)
    y = aligned(block * d).reshape(block // GROUP, d, GROUP)
    squares, high, low = aligned(block), aligned(block), aligned(block)
    which, rests = aligned(block).view(np.int32), aligned(block)
    rests[:] = np.float32(0.0)
    doubtful = np.empty(block, np.int64)
    unit = 1.0 / np.float64(scale)
    rechecked = 0
    for at in range(start, stop, block):
        m = min(block, stop - at)
        frame_rows(X, rows, at, m, origin, scale, y, squares)
        score_panels(y, d, -(-m // GROUP), panels, starts, high, low, which)
        labels, upper, lower = fresh[at - start :], best[at - start :], second[at - start :]
        n = certify(m, squares, rests, high, low, which, PANEL, lines[0], far, labels, doubtful)
        if len(best):
            bound(m, d, squares, rests, high, low, lines[0], unit, upper, lower)
        rechecked += n
        settle_all(
            X, rows, at, doubtful, n, y, squares, high, centers, packed, lines, far, unit,
            labels, upper, lower,
        )  # fmt: skip
    return rechecked
