"""Candidates evaluated by the sketch: canonical D of the rows that it does not exclude.

:mod:`sketch` excludes pairs of a row and a candidate that is no nearer than the row's nearest seed.
The D of the other pairs are evaluated LANES at a time, each with a row and a candidate of its own.
"""

from __future__ import annotations

import numpy as np

from lloydia.backends.cpu.runtime.compiled import LEAN, kernel, local, minimum, subroutine
from lloydia.backends.cpu.runtime.counting import upto
from lloydia.backends.cpu.seeding.sketch import threshold, write_limits
from lloydia.backends.cpu.seeding.weights import MAX_CANDIDATES, TILE, fixed
from lloydia.backends.cpu.simd.candidates import lowest_bit
from lloydia.backends.cpu.simd.row_lanes import LANES, add_squares
from lloydia.backends.cpu.simd.sketch_rows import GROUP, flag_rows

__all__ = ["accept_candidate", "evaluate_candidates", "lower_nearest"]

GROUPS = TILE // GROUP
N_MASKS = GROUPS * MAX_CANDIDATES


@subroutine
def evaluate_pairs(X, centers, rows, names, m, D):
    """Write the D of up to LANES pairs of a row and a candidate."""
    row, own = local(np.int64, LANES), local(np.int64, LANES)
    for q in upto(LANES):
        p = minimum(q, m - 1)
        row[q] = X.ctypes.data + rows[p] * X.strides[0]
        own[q] = centers.ctypes.data + names[p] * centers.strides[0]
    add_squares(X, row.ctypes.data, own.ctypes.data, X.strides[1], X.shape[1], D.ctypes.data)


@subroutine
def flag_tile(tile, n, first, m, sketched, candidates, bound, limits, masks):
    """Flag the rows of a tile that `m` candidates, from `first` on, may be nearer to.

    ``masks[g * MAX_CANDIDATES + c]`` has a bit for each row of group g of the tile.
    """
    groups, squares, thresholds = sketched
    packed, starts = candidates
    n_quads = groups.shape[1]
    for g in upto(GROUPS):
        at, place = tile * TILE + g * GROUP, g * MAX_CANDIDATES
        if at >= n:
            for c in upto(m):
                masks[place + c] = 0
            continue
        write_limits(squares, thresholds, at, bound, limits)
        flag_rows(
            groups.ctypes.data + at // GROUP * groups.strides[0],
            n_quads,
            packed.ctypes.data + first * packed.strides[0],
            starts.ctypes.data + first * 4,
            m,
            limits.ctypes.data,
            masks.ctypes.data + place * 8,
        )
        if at + GROUP > n:
            there = (np.int64(1) << (n - at)) - 1
            for c in upto(m):
                masks[place + c] &= there


@subroutine
def reduce_pairs(
    start, rows, names, m, D, nearest, weights, low, high, improved, improves, reductions
):  # fmt: skip
    """Add to `reductions` what some pairs take off the integers, and note the rows they lower.

    `improved` has a bit for each row of each group of the tile, `improves` those of its candidates.
    """
    for q in upto(m):
        i, c = rows[q], names[q]
        near = nearest[i]
        if D[q] < near:
            w = weights[i] if len(weights) else 1.0
            reductions[c] += fixed(near, w, low, high) - fixed(D[q], w, low, high)
            p, bit = i - start, np.int64(1) << ((i - start) % GROUP)
            before = improves[p] if improved[p // GROUP] & bit else np.uint32(0)
            improves[p] = before | np.uint32(1) << np.uint32(c)
            improved[p // GROUP] |= bit


@kernel(**LEAN)
def evaluate_candidates(
    X, first, last, m, sketched, candidates, bound, centers, nearest, weights, low, high,
    hits, counts, reductions,
):  # fmt: skip
    """Add to `reductions` what each candidate takes off the integers of some tiles.

    Parameters
    ----------
    X : IN, ndarray (n, d)
    first, last : int
        The tiles.
    m : int
        Candidates, up to MAX_CANDIDATES.
    sketched : tuple
        Groups, N and thresholds of :class:`sketch.Sketch`.
    candidates, bound : tuple
        What :meth:`sketch.Sketch.load` returns.
    centers : IN, ndarray (m, d), float64
        The candidates.
    nearest : IN, ndarray (n,), float64
    weights : IN, ndarray (n,) or (0,), float64
    low, high : float
        Powers of two whose product brings a term to its grid.
    hits, counts, reductions
        As in :func:`wide_potentials.evaluate_candidates`.

    Returns
    -------
    int
        Pairs that were evaluated.
    """
    n, n_evaluated = len(nearest), 0
    limits, masks = local(np.int32, GROUP), local(np.int64, N_MASKS)
    rows, names, D = local(np.int64, LANES), local(np.int64, LANES), local(np.float64, LANES)
    improved, improves = local(np.int64, GROUPS), local(np.uint32, TILE)
    for tile in upto(first, last):
        start, waiting = tile * TILE, 0
        flag_tile(tile, n, 0, m, sketched, candidates, bound, limits, masks)
        for g in upto(GROUPS):
            improved[g] = 0
        for c in upto(m):
            for g in upto(GROUPS):
                mask = masks[g * MAX_CANDIDATES + c]
                while mask != 0:
                    rows[waiting] = start + g * GROUP + lowest_bit(np.uint64(mask))
                    names[waiting] = c
                    mask &= mask - 1
                    waiting += 1
                    if waiting == LANES:
                        evaluate_pairs(X, centers, rows, names, waiting, D)
                        reduce_pairs(
                            start, rows, names, waiting, D, nearest, weights, low, high,
                            improved, improves, reductions,
                        )  # fmt: skip
                        n_evaluated += waiting
                        waiting = 0
        if waiting:
            evaluate_pairs(X, centers, rows, names, waiting, D)
            reduce_pairs(
                start, rows, names, waiting, D, nearest, weights, low, high, improved, improves,
                reductions,
            )  # fmt: skip
            n_evaluated += waiting
        n_hits = 0
        for g in upto(GROUPS):
            mask = improved[g]
            while mask != 0:
                p = g * GROUP + lowest_bit(np.uint64(mask))
                hits[start + n_hits] = np.uint32(p) << np.uint32(MAX_CANDIDATES) | improves[p]
                n_hits += 1
                mask &= mask - 1
        counts[tile] = n_hits
    return n_evaluated


@kernel(**LEAN)
def accept_candidate(
    X, first, last, centers, j, nearest, weights, low, high, sketched, hits, counts, totals, tops
):  # fmt: skip
    """Lower D of the listed rows that candidate `j` is nearer to; update sums and largest terms.

    Parameters
    ----------
    X, first, last, centers, weights, low, high, hits, counts : IN
        As :func:`evaluate_candidates` used or wrote them.
    j : int
        The candidate.
    nearest : IN/OUT, ndarray (n,), float64
    sketched : tuple
        ``E / q``, s / q, and the thresholds, IN/OUT, of :class:`sketch.Sketch`.
    totals, tops : IN/OUT, ndarray (n_tiles,), int64 and float64
        Integer sum and largest of weight times D; NaN where the largest term may have shrunk.
    """
    d = X.shape[1]
    errors, scale, thresholds = sketched
    rows, names, D = local(np.int64, LANES), local(np.int64, LANES), local(np.float64, LANES)
    for q in upto(LANES):
        names[q] = j
    for tile in upto(first, last):
        start, m = tile * TILE, 0
        for at in upto(counts[tile]):
            hit = hits[start + at]
            if hit >> np.uint32(j) & np.uint32(1):
                rows[m] = start + (hit >> MAX_CANDIDATES)
                m += 1
            if m == LANES or (m > 0 and at == counts[tile] - 1):
                evaluate_pairs(X, centers, rows, names, m, D)
                for p in upto(m):
                    i = rows[p]
                    w = weights[i] if len(weights) else 1.0
                    # If this row has the tile's largest term, that is unknown from here on.
                    tops[tile] = np.nan if w * nearest[i] >= tops[tile] else tops[tile]
                    totals[tile] -= fixed(nearest[i], w, low, high) - fixed(D[p], w, low, high)
                    nearest[i] = D[p]
                    thresholds[i] = threshold(D[p], errors[i], scale, d)
                m = 0


@subroutine
def lower_pairs(rows, names, m, D, before, scale, d, errors, thresholds, nearest, owners):
    """Lower D of the rows of some pairs, in their order."""
    for q in upto(m):
        i = rows[q]
        if D[q] < nearest[i]:
            nearest[i], owners[i] = D[q], before + names[q]
            thresholds[i] = threshold(D[q], errors[i], scale, d)


@kernel(**LEAN)
def lower_nearest(
    X, first, last, sketched, errors, scale, candidates, bound, centers, before, nearest, owners,
    max_evaluated,
):  # fmt: skip
    """Make all candidates seeds, in their order, and remember each row's nearest seed.

    A row's D is evaluated to the candidates that may be nearer than all before, so that ties go to
    the one that was first.  The parameters are those of the other kernels; `centers` (m, d) may
    have any number of rows, `before` is how many seeds there are already, and `owners` (n,), int32,
    IN/OUT, has each row's nearest seed.  Returns how many pairs were evaluated; after more than
    `max_evaluated` of them the others are left out.
    """
    n, d, n_evaluated = len(nearest), X.shape[1], 0
    thresholds = sketched[2]
    limits, masks = local(np.int32, GROUP), local(np.int64, N_MASKS)
    rows, names, D = local(np.int64, LANES), local(np.int64, LANES), local(np.float64, LANES)
    for tile in upto(first, last):
        start, waiting = tile * TILE, 0
        for some in upto(0, len(centers), MAX_CANDIDATES):
            m = minimum(MAX_CANDIDATES, len(centers) - some)
            flag_tile(tile, n, some, m, sketched, candidates, bound, limits, masks)
            for c in upto(m):
                for g in upto(GROUPS):
                    mask = masks[g * MAX_CANDIDATES + c]
                    while mask != 0:
                        rows[waiting] = start + g * GROUP + lowest_bit(np.uint64(mask))
                        names[waiting] = some + c
                        mask &= mask - 1
                        waiting += 1
                        if waiting == LANES:
                            evaluate_pairs(X, centers, rows, names, waiting, D)
                            lower_pairs(
                                rows, names, waiting, D, before, scale, d, errors, thresholds,
                                nearest, owners,
                            )  # fmt: skip
                            n_evaluated += waiting
                            waiting = 0
                            if n_evaluated > max_evaluated:
                                return n_evaluated
        if waiting:
            evaluate_pairs(X, centers, rows, names, waiting, D)
            lower_pairs(
                rows, names, waiting, D, before, scale, d, errors, thresholds, nearest, owners
            )
            n_evaluated += waiting
    return n_evaluated
