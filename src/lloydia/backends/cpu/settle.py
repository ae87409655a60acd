"""Rows in doubt: the canonical D of the centres whose scores are too near the best."""

from __future__ import annotations

import numpy as np

from lloydia.backends.cpu.compiled import LEAN, kernel, local, maximum, minimum, subroutine
from lloydia.backends.cpu.points import LANES
from lloydia.backends.cpu.rows import distance
from lloydia.backends.cpu.scan import least_error

__all__ = ["settle"]


@subroutine(inline="always")
def next_rival(scores, j, reach):
    """Return the first score after `j` that is not below `reach`, or their number."""
    start, k = j + 1, len(scores)
    while start < k:
        stop = minimum(start + 32, k)
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


@subroutine(inline="always")
def largest(scores, tops):
    """Return the largest score; a maximum in each of the lanes of `tops` at a time."""
    k = len(scores)
    for lane in range(LANES):
        tops[lane] = scores[minimum(lane, k - 1)]
    for start in range(0, k - LANES + 1, LANES):
        for lane in range(LANES):
            score = scores[start + lane]
            tops[lane] = score if score > tops[lane] else tops[lane]
    top = scores[k - 1]
    for j in range(k // LANES * LANES, k):
        top = scores[j] if scores[j] > top else top
    for lane in range(LANES):
        top = tops[lane] if tops[lane] > top else top
    return top


@kernel(**LEAN)
def settle(
    X, rows, start, doubtful, centers, packed, frame, errors, fresh, best, second, scores
):  # fmt: skip
    """Settle the list's entries in doubt: evaluate D for the centres whose scores may be the best.

    A score that is below the best one by twice its error is that of a centre farther away.
    `scores` is scratch, float32, for all of them.
    """
    _, starts, columns = packed
    origin, scale = frame
    far, line, near = errors[0], errors[3], errors[5]
    d, k = X.shape[1], len(centers)
    unit = 1.0 / np.float64(scale)
    tops = local(np.float32, LANES)
    for entry in doubtful:
        i = rows[entry] if len(rows) else entry
        for j in range(k):
            scores[j] = starts[j]
        square = 0.0
        for f in range(d):
            y = np.float32((X[i, f] - origin[f]) * scale)
            square += np.float64(y) * np.float64(y)
            for j in range(k):
                scores[j] += y * columns[f, j]
        square *= 1.0 + 2.0**-30
        top = largest(scores, tops)
        error = least_error(square, 0.0, np.float64(top), line, near) if square < far else np.inf
        reach = np.float64(top) - 2.0 * error
        label, least, rival, j = 0, np.inf, np.inf, -1
        while True:
            j = next_rival(scores, j, reach)
            if j == k:
                break
            D = distance(X[i], centers[j])
            if D < least:
                label, least, rival = j, D, least
            elif D < rival:
                rival = D
        fresh[entry - start] = label
        if len(best):
            best[entry - start] = least
            if square < far:
                error = least_error(square, 0.0, reach, line, near)
            others = square * (1.0 - (d + 8) * 2.0**-20) - 2.0 * (reach + error)
            second[entry - start] = minimum(rival, maximum(0.0, others) * unit * unit)
