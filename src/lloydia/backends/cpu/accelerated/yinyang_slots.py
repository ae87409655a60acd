"""The rows that the assignment of :mod:`yinyang` evaluates, as its first tests do not prune them.

The first test needs only the bounds; the second one replaces u by a bound from the row's score with
its own centre.  A row that passes neither takes a slot, from which all groups are evaluated.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cpu.rows.features import load
from lloydia.backends.cpu.runtime.compiled import LEAN, subroutine
from lloydia.backends.cpu.scan.scores import above, frame, limits
from lloydia.backends.cpu.simd.microkernel_centers_in_lanes import LOWEST_SCORE

__all__ = ["TILE", "Slots", "fill", "select"]

TILE = 1024


class Slots(NamedTuple):
    """Rows that are evaluated together, and what is known of each so far.

    Attributes
    ----------
    y : ndarray of shape (block, d), float32
        The rows, centred and scaled.
    rows : ndarray of shape (block,), int64
        Their numbers.
    low_square : ndarray of shape (block,), float32; high_square, errors : the same, float64
        Bounds on ``|x'|**2 - 2 F`` and ``|x'|**2 + 2 F``, and E, as of :func:`limits`.
    own : ndarray of shape (block,), float32
        The score of the row's label; LOWEST_SCORE where its group is evaluated.
    first, runner : ndarray of shape (block,), float32
        The best score, and the best of all others.
    which : ndarray of shape (block,), int64
        The position of the best.
    within : ndarray of shape (block,), float32
        The best score of all others in its group, where that is evaluated.
    """

    y: NDArray[np.float32]
    rows: NDArray[np.int64]
    low_square: NDArray[np.float32]
    high_square: NDArray[np.float64]
    errors: NDArray[np.float64]
    own: NDArray[np.float32]
    first: NDArray[np.float32]
    runner: NDArray[np.float32]
    which: NDArray[np.int64]
    within: NDArray[np.float32]


@subroutine(**LEAN)
def select(start, stop, labels, upper, lower, moved, drift, padding, lowest_bound, active):
    """Move u of a tile of rows, and list the rows with a group that is not farther.

    Parameters
    ----------
    labels : IN, ndarray (n,), int32
    upper : IN/OUT, ndarray (n,), float32
    lower : IN, ndarray (t, n), float32
    moved : IN, ndarray (k,), float32
    drift : IN, ndarray (t,), float32
    lowest_bound : OUT, ndarray (TILE,), float32
        The smallest bound of the groups of each listed row.
    active : OUT, ndarray (TILE,), int64
        The rows.

    Returns
    -------
    int
        How many are listed.
    """
    grow, tiny = np.float32(1.0 + padding[1]), np.float32(padding[3])
    m = stop - start
    for p in range(m):
        lowest_bound[p] = np.inf
    for g in range(len(lower)):
        bounds, gone = lower[g, start:stop], drift[g]
        for p in range(m):
            bound = bounds[p] - gone
            lowest_bound[p] = bound if bound < lowest_bound[p] else lowest_bound[p]
    n_active = 0
    for p in range(m):
        u = (upper[start + p] + moved[labels[start + p]]) * grow + tiny
        upper[start + p] = u
        bound = lowest_bound[p]
        active[n_active] = start + p
        lowest_bound[n_active] = bound
        # Ding et al. 2015, global filter: u < min_G l_G keeps the label.
        n_active += not u * grow + tiny < bound
    return n_active


@subroutine(**LEAN)
def fill(
    X,
    active,
    lowest_bound,
    q,
    n_active,
    m,
    slots,
    labels,
    centers,
    upper,
    lower,
    drift,
    size,
    padding,
    x,
):
    """Put listed rows, from entry `q` on, into the slots from `m` on, until either ends.

    u is replaced by a bound from the score of the row's label; a row that this keeps in its
    cluster takes no slot.  Returns the next entry and the next slot.
    """
    y, rows, low_square, high_square, errors, own, first, runner, which, _ = slots
    panel, half_squares, place = centers.rows, centers.half_squares, centers.place
    origin, scale = centers.origin, centers.scale
    grow, tiny = np.float32(1.0 + padding[1]), np.float32(padding[3])
    factor = centers.errors.factors[1] * padding[0] / scale
    while q < n_active and m < len(rows):
        i = active[q]
        a = labels[i]
        at = place[a]
        load(X, i, x)
        square, score = frame(x, origin, scale, panel, at, y, m)
        errors[m], low_square[m], high_square[m] = limits(square, centers.errors)
        rows[m] = i
        own[m] = first[m] = runner[m] = LOWEST_SCORE
        which[m] = 0
        pruned = False
        if a >= 0:
            score += half_squares[at]
            u = np.float32(above(high_square[m], score, factor, padding))
            u = u if u < upper[i] else upper[i]
            upper[i] = u
            reach = u * grow + tiny
            pruned = reach < lowest_bound[q]
            if reach < lower[at // size, i] - drift[at // size]:
                own[m] = first[m] = score
                which[m] = at
        m += not pruned
        q += 1
    return q, m
