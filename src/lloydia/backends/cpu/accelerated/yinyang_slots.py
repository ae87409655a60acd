"""The rows that the assignment of :mod:`yinyang` evaluates, as its first tests do not prune them.

The first test needs only the bounds; the second one replaces u by a bound from the row's score with
its own centre.  A row that passes neither takes a slot, from which all groups are evaluated.
"""

from __future__ import annotations

import numpy as np

from lloydia.backends.cpu.rows.features import load
from lloydia.backends.cpu.runtime.compiled import part, subroutine
from lloydia.backends.cpu.runtime.counting import upto
from lloydia.backends.cpu.scan.scores import above, frame, limits
from lloydia.backends.cpu.simd.microkernel_centers_in_lanes import LOWEST_SCORE

__all__ = ["SLOT", "TILE", "fill", "select"]

TILE = 1024


# What is known so far of a row that is evaluated.
SLOT = np.dtype(
    [
        # E, and bounds on |x'|**2 + 2 F and |x'|**2 - 2 F, as of :func:`limits`.
        ("error", np.float64),
        ("high_square", np.float64),
        ("low_square", np.float32),
        # The score of the row's label; LOWEST_SCORE where its group is evaluated.
        ("own", np.float32),
        # The best score, and the best of all others.
        ("best", np.float32),
        ("second", np.float32),
        # The best score of all others in its group, where that is evaluated.
        ("within", np.float32),
        # The position of the best.
        ("which", np.int32),
    ],
    align=True,
)


@subroutine(inline="always")
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
    for p in upto(m):
        lowest_bound[p] = np.inf
    for g in upto(len(lower)):
        bounds, gone = part(lower[g], start, stop), drift[g]
        for p in upto(m):
            bound = bounds[p] - gone
            lowest_bound[p] = bound if bound < lowest_bound[p] else lowest_bound[p]
    n_active = 0
    for p in upto(m):
        u = (upper[start + p] + moved[labels[start + p]]) * grow + tiny
        upper[start + p] = u
        bound = lowest_bound[p]
        active[n_active] = start + p
        lowest_bound[n_active] = bound
        # Ding et al. 2015, global filter: u < min_G l_G keeps the label.
        n_active += not u * grow + tiny < bound
    return n_active


@subroutine(inline="always")
def fill(
    X, active, lowest_bound, q, n_active, m, rows, y, slots, labels, centers, upper, lower, drift,
    size, padding, x,
):  # fmt: skip
    """Put listed rows, from entry `q` on, into the slots from `m` on, until either ends.

    u is replaced by a bound from the score of the row's label; a row that this keeps in its
    cluster takes no slot.  Of each slot, `rows`, OUT, receives the number of the row, `y`, OUT,
    (block, d), float32, the row, centred and scaled, and `slots`, OUT, a SLOT.  Returns the next
    entry and the next slot.
    """
    panel, half_squares, place = centers.rows, centers.half_squares, centers.place
    origin, scale = centers.origin, centers.scale
    grow, tiny = np.float32(1.0 + padding[1]), np.float32(padding[3])
    factor = centers.errors.factors[1] * padding[0] / scale
    while q < n_active and m < len(slots):
        i, slot = active[q], slots[m]
        a = labels[i]
        at = place[a]
        load(X, i, x)
        square, score = frame(x, origin, scale, panel, at, y, m)
        error, low_square, high_square = limits(square, centers.errors)
        rows[m] = i
        slot.error, slot.low_square, slot.high_square = error, low_square, high_square
        slot.own = slot.best = slot.second = np.float32(LOWEST_SCORE)
        slot.which = np.int32(0)
        pruned = False
        if a >= 0:
            score += half_squares[at]
            u = np.float32(above(high_square, score, factor, padding))
            u = u if u < upper[i] else upper[i]
            upper[i] = u
            reach = u * grow + tiny
            pruned = reach < lowest_bound[q]
            if reach < lower[at // size, i] - drift[at // size]:
                slot.own = slot.best = score
                slot.which = np.int32(at)
        m += not pruned
        q += 1
    return q, m
