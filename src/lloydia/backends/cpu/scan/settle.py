"""Rows in doubt: the canonical D of the centres whose scores are too near the best."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cpu.rows.features import distance
from lloydia.backends.cpu.runtime.compiled import LEAN, kernel, maximum, minimum
from lloydia.backends.cpu.runtime.counting import upto
from lloydia.backends.cpu.scan.centers import aligned
from lloydia.backends.cpu.scan.nearest import least_error
from lloydia.backends.cpu.scan.rivals import largest, next_rival
from lloydia.backends.cpu.simd.points import LANES, LEAST

__all__ = ["room_for_scores", "settle"]


def room_for_scores(k: int) -> NDArray[np.float32]:
    """Return the scratch for a row's scores."""
    return aligned((-(-k // LANES) * LANES,))


@kernel(**LEAN)
def settle(
    X, rows, start, doubtful, centers, packed, frame, errors, fresh, best, second, scores
):  # fmt: skip
    """Settle the list's entries in doubt: evaluate D for the centres whose scores may be the best.

    A score that is below the best one by twice its error is that of a centre farther away. `packed`
    are the last two of the scores of :class:`lloydia.backends.cpu.scan.centers.Packed`, and
    `errors` its of scores without a name.  `scores` is scratch, that of :func:`room_for_scores`.
    """
    starts, columns = packed
    origin, scale = frame
    far, line, near = errors
    d, k = X.shape[1], len(centers)
    unit = 1.0 / np.float64(scale)
    for j in upto(k, len(scores)):
        scores[j] = LEAST
    for q in upto(len(doubtful)):
        entry = doubtful[q]
        i = rows[entry] if len(rows) else entry
        for j in upto(k):
            scores[j] = starts[j]
        square = 0.0
        for f in upto(d):
            y = np.float32((X[i, f] - origin[f]) * scale)
            square += np.float64(y) * np.float64(y)
            for j in upto(k):
                scores[j] += y * columns[f, j]
        square *= 1.0 + 2.0**-30
        top = np.float64(largest(scores))
        error = least_error(square, 0.0, top, line, near) if square < far else np.inf
        reach = top - 2.0 * error
        label, least, rival, j = 0, np.inf, np.inf, -1
        while True:
            j = next_rival(scores, j + 1, reach)
            if j >= k:
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
