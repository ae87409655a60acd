"""The assignment of :mod:`lloydia.algorithms.yinyang`.

Ding, Zhao, Shen, Musuvathi and Mytkowicz 2015, "Yinyang k-means".  Three passes over a range of
rows, each leaving fewer: the bounds as they are, SIMD over rows; u replaced by a bound from the
row's score with its own centre; then, group by group, the rows whose bound fails against the
group's panels.  All distances come from scores, see :mod:`scan.scores`.

A row's label is certified if its best score exceeds all others of evaluated groups, and that of its
old label, by 2 E or 2 E'; the centres of the other groups are farther by their bounds.  Ambiguous
rows get their label from canonical D.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cpu.accelerated.yinyang_slots import SLOT, TILE, fill, select
from lloydia.backends.cpu.rows.features import load, nearest_center
from lloydia.backends.cpu.runtime.compiled import LEAN, kernel, local, minimum, part, subroutine
from lloydia.backends.cpu.runtime.counting import upto
from lloydia.backends.cpu.scan.bounds import upper_bound
from lloydia.backends.cpu.scan.panels import best_of_all, best_of_one
from lloydia.backends.cpu.scan.scores import above, below, certain, stored_bound
from lloydia.backends.cpu.simd.microkernel_centers_in_lanes import LANES, LOWEST_SCORE, MR

__all__ = ["scratch_for", "yinyang"]

# At most so many rows are evaluated together.  Lists have room for MR more, since they are padded
# to a multiple of MR.
BLOCK = 128 * MR
LISTED = BLOCK + MR


@subroutine(inline="always")
def fail(m, rows, pitch, base, bounds, gone, upper, padding, found, addresses):
    """List the slots whose bound of a group fails, and the addresses of their rows.

    The addresses go on, with any row, to a multiple of MR.  Returns how many fail.
    """
    grow, tiny = np.float32(1.0 + padding[1]), np.float32(padding[3])
    n = 0
    for p in upto(m):
        i = np.uint64(rows[p])
        found[n] = p
        addresses[n] = base + p * pitch
        # Ding et al. 2015, group filter: u < l_G rules out all centres of G.
        n += not upper[i] * grow + tiny < bounds[i] - gone
    for q in upto(n, n + MR):
        addresses[q] = base
    return n


@subroutine(inline="always")
def scan_group(panels, half_squares, group, per_group, n, addresses, best, second, which):
    """Find the best two of a group, and the position of the best, for `n` rows by address."""
    d, width = panels.shape[1:]
    # Addresses are taken once: a use of ctypes counts a reference, which takes longer than a row.
    every, start, ends = addresses.ctypes.data, panels.ctypes.data, half_squares.ctypes.data
    firsts, seconds, winners = best.ctypes.data, second.ctypes.data, which.ctypes.data
    first = group * per_group
    for panel in upto(first, minimum(first + per_group, len(panels))):
        vectors, half = start + panel * d * width * 4, ends + panel * width * 4
        at, anew = panel * width, panel == first
        for q in upto(0, n, MR):
            rows = every + q * 8
            a, b, c = firsts + q * 4, seconds + q * 4, winners + q * 4
            if width > LANES:
                best_of_all(rows, d, vectors, half, a, b, c, at, anew)
            else:
                best_of_one(rows, d, vectors, half, a, b, c, at, anew)


@subroutine(inline="always")
def fold(n, found, best, second, winner, rows, slots, bounds, gone, factor, padding):
    """Merge the scores of an evaluated group into the slots, and set its bounds.

    The bounds are on all centres of the group; :func:`write_labels` raises that of a group whose
    best centre is the new label.
    """
    for q in upto(n):
        p, b, s = found[q], best[q], second[q]
        slot = slots[p]
        bounds[rows[p]] = stored_bound(below(slot.low_square, b, factor, padding), gone, padding)
        top, runner = slot.best, slot.second
        better = b > top
        loser = top if better else b
        runner_up = s if better else runner
        slot.second = loser if loser > runner_up else runner_up
        slot.best = b if better else top
        slot.which = winner[q] if better else slot.which
        slot.within = s if better else slot.within


@subroutine(inline="always")
def write_labels(
    X, m, rows, slots, centers, labels, upper, lower, drift, size, padding, x, D, fresh
):  # fmt: skip
    """Write the labels of `m` slots, and set the bounds that depend on them.

    Returns the number of ambiguous rows.
    """
    order, place = centers.order, centers.place
    near, (low, high) = centers.errors.near, centers.errors.factors
    low, high = low * padding[0] / centers.scale, high * padding[0] / centers.scale
    rechecked = 0
    for p in upto(m):
        slot = slots[p]
        i, low_square, high_square = rows[p], slot.low_square, slot.high_square
        a, nearest = labels[i], order[slot.which]
        j = nearest
        if certain(slot.best, slot.second, slot.error, high_square, near):
            u = np.float32(above(high_square, slot.best, high, padding))
            upper[i] = u if j != a or u < upper[i] else upper[i]
        else:
            rechecked += 1
            load(X, i, x)
            j, square = nearest_center(x, centers.columns, D)
            upper[i] = upper_bound(np.sqrt(square) * padding[0], padding)
        fresh[p] = j
        skipped = slot.own > np.float32(LOWEST_SCORE)
        if nearest == j and not (j == a and skipped):
            g = slot.which // size
            lower[g, i] = stored_bound(
                below(low_square, slot.within, low, padding), drift[g], padding
            )
        if j != a and skipped:
            # The old label is now one of the others of its group, which was not evaluated.
            g = place[a] // size
            bound = stored_bound(below(low_square, slot.own, low, padding), drift[g], padding)
            lower[g, i] = np.float32(minimum(lower[g, i], bound))
    return rechecked


@subroutine(inline="always")
def evaluate(m, rows, y, slots, centers, upper, lower, drift, size, padding, lists):
    """Evaluate the groups of `m` slots that their bounds do not rule out.

    Returns the number of distances.
    """
    found, addresses, best, second, winner = lists
    base, pitch = y.ctypes.data, y.shape[1] * 4
    panels, half_squares, k = centers.panels, centers.half_squares, len(centers.rows)
    per_group = size // panels.shape[2]
    factor = centers.errors.factors[0] * padding[0] / centers.scale
    evaluated = 0
    for g in upto(len(lower)):
        bounds, gone = lower[g], drift[g]
        n = fail(m, rows, pitch, base, bounds, gone, upper, padding, found, addresses)
        if n:
            evaluated += n * minimum(size, k - g * size)
            scan_group(panels, half_squares, g, per_group, n, addresses, best, second, winner)
            fold(n, found, best, second, winner, rows, slots, bounds, gone, factor, padding)
    return evaluated


def scratch_for(d: int, k: int) -> tuple[NDArray, ...]:
    """Return the scratch of :func:`yinyang`."""
    block = max(8, min(BLOCK // MR, 262144 // d // MR)) * MR
    return np.empty((block, d), np.float32), np.empty(block, SLOT), np.empty(d), np.empty(k)


@kernel(**LEAN)
def yinyang(
    X, start, stop, labels, centers, moved, drift, size, upper, lower, padding, rows, fresh, scratch
):  # fmt: skip
    """Assign a range of rows.

    Parameters
    ----------
    X, start, stop : IN
    labels : IN, ndarray (n,), int32
    centers : Grouped, IN
    moved : IN, ndarray (k,), float32
    drift : IN, ndarray (t,), float32
    size : int
        Centres a group.
    upper : IN/OUT, ndarray (n,), float32
    lower : IN/OUT, ndarray (t, n), float32
    rows : OUT, ndarray (stop - start,), int64
        The rows that were evaluated.
    fresh : OUT, ndarray (stop - start,), int32
        Their labels.
    scratch : tuple
        From :func:`scratch_for`.

    Returns
    -------
    n_rows, n_distances, n_rechecked : int
    """
    y, slots, x, D = scratch
    lowest_bound, active = local(np.float32, TILE), local(np.int64, TILE)
    found, addresses = local(np.int32, LISTED), local(np.int64, LISTED)
    best, second = local(np.float32, BLOCK), local(np.float32, BLOCK)
    lists = found, addresses, best, second, local(np.int32, BLOCK)
    block = len(slots)
    # Typed zeros: functions would be compiled again for the types of literals.
    zero = n_rows = evaluated = rechecked = q = n_active = np.int64(0)
    at = start
    while True:
        m, taken = zero, part(rows, n_rows)
        while m < block and (q < n_active or at < stop):
            if q == n_active:
                q, end = zero, minimum(at + TILE, stop)
                n_active = select(
                    at, end, labels, upper, lower, moved, drift, padding, lowest_bound, active
                )
                at = end
            before = q
            q, m = fill(
                X, active, lowest_bound, q, n_active, m, taken, y, slots, labels, centers, upper,
                lower, drift, size, padding, x,
            )  # fmt: skip
            evaluated += q - before
        if m == 0:
            return n_rows, evaluated, rechecked
        evaluated += evaluate(
            m, taken, y, slots, centers, upper, lower, drift, size, padding, lists
        )
        rechecked += write_labels(
            X, m, taken, slots, centers, labels, upper, lower, drift, size, padding, x, D,
            part(fresh, n_rows),
        )  # fmt: skip
        n_rows += m
