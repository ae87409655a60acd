"""Ambiguous rows: canonical D to the centres whose scores are close to the best."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cpu.rows.features import distance
from lloydia.backends.cpu.runtime.compiled import LEAN, kernel, maximum, minimum
from lloydia.backends.cpu.runtime.counting import upto
from lloydia.backends.cpu.scan.centers import aligned
from lloydia.backends.cpu.scan.close_centers import largest, next_close_center
from lloydia.backends.cpu.scan.nearest import smaller_error
from lloydia.backends.cpu.simd.microkernel_rows_in_lanes import LANES, LOWEST_SCORE

__all__ = ["recheck_exact", "scratch_for_scores"]


def scratch_for_scores(k: int) -> NDArray[np.float32]:
    """Return the scratch for a row's scores."""
    return aligned((-(-k // LANES) * LANES,))


@kernel(**LEAN)
def recheck_exact(
    X, rows, start, ambiguous, centers, packed, frame, errors, fresh, best, second, scores
):  # fmt: skip
    """Find the nearest centres of ambiguous rows by canonical D.

    Scores are off by at most E, so a centre whose score is below the best one by more than 2 E is
    farther away.  D is evaluated to all others.

    Parameters
    ----------
    X, rows, start, fresh, best, second
        See :mod:`nearest`.
    ambiguous : IN, ndarray of int64
        List entries.
    centers : IN, ndarray (k, d), float64
    packed : IN
        The last two `scores` of :class:`centers.Packed`.
    frame, errors : IN
        Those of :class:`centers.Packed`, `errors` for scores without an index.
    scores : scratch
        From :func:`scratch_for_scores`.
    """
    half_squares, columns = packed
    origin, scale = frame
    far, line, near = errors
    d, k = X.shape[1], len(centers)
    unit = 1.0 / np.float64(scale)
    for j in upto(k, len(scores)):
        scores[j] = LOWEST_SCORE
    for q in upto(len(ambiguous)):
        entry = ambiguous[q]
        i = rows[entry] if len(rows) else entry
        for j in upto(k):
            scores[j] = half_squares[j]
        square = 0.0
        for f in upto(d):
            y = np.float32((X[i, f] - origin[f]) * scale)
            square += np.float64(y) * np.float64(y)
            for j in upto(k):
                scores[j] += y * columns[f, j]
        square *= 1.0 + 2.0**-30
        top = np.float64(largest(scores))
        error = smaller_error(square, 0.0, top, line, near) if square < far else np.inf
        reach = top - 2.0 * error
        label, nearest_D, second_D, j = 0, np.inf, np.inf, -1
        while True:
            j = next_close_center(scores, j + 1, reach)
            if j >= k:
                break
            D = distance(X[i], centers[j])
            if D < nearest_D:
                label, nearest_D, second_D = j, D, nearest_D
            elif D < second_D:
                second_D = D
        fresh[entry - start] = label
        if len(best):
            best[entry - start] = nearest_D
            if square < far:
                error = smaller_error(square, 0.0, reach, line, near)
            others = square * (1.0 - (d + 8) * 2.0**-20) - 2.0 * (reach + error)
            second[entry - start] = minimum(second_D, maximum(0.0, others) * unit * unit)
