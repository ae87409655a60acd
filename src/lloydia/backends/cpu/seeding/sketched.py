"""Evaluation of candidates by the sketch, which excludes most pairs of a row and a candidate.

:mod:`sketch` excludes a pair if the candidate is no nearer than the row's nearest seed.  The
distances of the other pairs are evaluated in float32, which nearly always shows which candidate is
the best; see :mod:`gains`.  Canonical D are evaluated for the best candidate, and for others that
may be the best: LANES pairs at a time, each of any row and any candidate.
"""

from __future__ import annotations

import numpy as np

from lloydia.backends.cpu.runtime.compiled import (
    LEAN,
    kernel,
    local,
    minimum,
    part,
    subroutine,
)
from lloydia.backends.cpu.runtime.counting import upto
from lloydia.backends.cpu.seeding.gains import FAR
from lloydia.backends.cpu.seeding.sketch_bytes import limit_of
from lloydia.backends.cpu.seeding.weights import MAX_CANDIDATES, TILE, fixed
from lloydia.backends.cpu.simd.candidates import lowest_bit
from lloydia.backends.cpu.simd.differences import difference
from lloydia.backends.cpu.simd.lanes import fetch
from lloydia.backends.cpu.simd.row_lanes import LANES, add_squares
from lloydia.backends.cpu.simd.sketch_rows import GROUP, flag_rows

__all__ = ["accept_candidate", "bound_gains", "evaluate_candidates", "lower_nearest"]

CANDIDATE_BITS = (1 << MAX_CANDIDATES) - 1

# At least so many pairs are evaluated together; a list also has room for one more tile.
MIN_PAIRS = 64
ROOM, PAIRS_ROOM = MIN_PAIRS + TILE, MIN_PAIRS + TILE * MAX_CANDIDATES

# At most so many bytes of a row are prefetched: the hardware prefetcher does the rest.
MAX_PREFETCHED = 1024


@subroutine
def evaluate_pairs(X, centers, rows, numbers, m, D):
    """Write the D of up to LANES pairs of a row and a candidate."""
    row, center = local(np.int64, LANES), local(np.int64, LANES)
    for q in upto(LANES):
        p = minimum(q, m - 1)
        row[q] = X.ctypes.data + rows[p] * X.strides[0]
        center[q] = centers.ctypes.data + numbers[p] * centers.strides[0]
    add_squares(X, row.ctypes.data, center.ctypes.data, X.strides[1], X.shape[1], D.ctypes.data)


@subroutine
def flag_tile(tile, n, first, m, groups, limits, candidates, flagged):
    """List the rows of a tile that may be nearer to one of `m` candidates, from `first` on.

    `flagged` (TILE or more,), uint32, OUT, receives for each such row its number in the tile and,
    in the MAX_CANDIDATES lowest bits, a bit for each candidate.  Returns the number of rows.
    """
    packed, initial_scores = candidates
    count = 0
    for place in upto(0, minimum(TILE, n - tile * TILE), GROUP):
        at = tile * TILE + place
        count = flag_rows(
            groups.ctypes.data + at // GROUP * groups.strides[0],
            groups.shape[1],
            packed.ctypes.data + first * packed.strides[0],
            initial_scores.ctypes.data + first * 4,
            m,
            limits.ctypes.data + at * 4,
            place,
            flagged.ctypes.data,
            count,
        )
    return count


@subroutine
def fetch_row(X, i, nearest):
    """Prefetch a row and its D."""
    row, size = X.ctypes.data + i * X.strides[0], minimum(X.shape[1] * X.itemsize, MAX_PREFETCHED)
    fetch(row, size)
    # Most rows begin within a cache line, so they end in a further one.
    fetch(row + size - 1, 1)
    fetch(nearest.ctypes.data + 8 * i, 8)


@subroutine
def evaluate_gains(
    X, rows, pairs, numbers, m, centers, unit, margins, nearest, weights, nearer, gains
):
    """Add the gains of `m` pairs, see :func:`bound_gains`; flag in `nearer` which may be nearer.

    A pair is a row, by its place in `rows`, and a candidate.
    """
    relative, absolute = margins
    square = np.float64(unit) * np.float64(unit)
    D = local(np.float32, PAIRS_ROOM)
    # No branch depends on a distance, so the loads of later pairs are already in flight.
    for q in upto(m):
        D[q] = difference(X, rows[pairs[q]], centers, numbers[q], unit)
    for q in upto(m):
        i, c, far = rows[pairs[q]], numbers[q], np.float64(D[q])
        near, w = nearest[i] * square, weights[i] if len(weights) else 1.0
        gain = w * (near - far)
        gains[0, c] += gain if gain > 0.0 else 0.0
        # NaN counts as nearer.
        farther = (far < FAR) & (far * (1.0 - relative) - absolute >= near)
        uncertain = w * (near + absolute) if far < FAR else np.inf
        gains[1, c] += 0.0 if farther else uncertain
        nearer[pairs[q]] |= np.uint32(not farther) << np.uint32(c)


@kernel(**LEAN)
def bound_gains(
    X, first, last, groups, limits, candidates, centers, unit, margins, nearest, weights,
    hits, counts, gains,
):  # fmt: skip
    """Add to `gains` by how much candidates lower the total of some tiles, and S of :mod:`gains`.

    Parameters
    ----------
    X : IN, ndarray (n, d)
    first, last : int
        The tiles.
    groups, limits : IN, ndarray
        Those of :class:`sketch.Sketch`.
    candidates : tuple
        What :meth:`sketch.Sketch.load` returns.
    centers : IN, ndarray (m, d), X's type
        The candidates times `unit`; up to MAX_CANDIDATES.
    unit : X's type
        A power of two.
    margins : tuple
        The relative and the absolute error of a distance; see :mod:`gains`.
    nearest : IN, ndarray (n,), float64
    weights : IN, ndarray (n,) or (0,), float64
    hits : OUT, ndarray (n,), uint32
        For each tile, from the place of its first row on: the rows that some candidate may lower,
        as :func:`flag_tile` lists them.
    counts : OUT, ndarray (n_tiles,), int64
        Hits of each tile.
    gains : IN/OUT, ndarray (2, m or more), float64
        For each candidate, over the rows that it may lower: the sum of weight times the decrease of
        D, and S; both times the square of the unit.

    Returns
    -------
    int
        Pairs that were evaluated.
    """
    n, m, n_evaluated, n_rows, n_pairs = len(nearest), len(centers), 0, 0, 0
    flagged, rows, nearer = local(np.uint32, TILE), local(np.int64, ROOM), local(np.uint32, ROOM)
    pairs, numbers = local(np.int32, PAIRS_ROOM), local(np.int32, PAIRS_ROOM)
    for tile in upto(first, last):
        counts[tile] = 0
        for at in upto(flag_tile(tile, n, 0, m, groups, limits, candidates, flagged)):
            hit = np.int64(flagged[at])
            i = tile * TILE + (hit >> MAX_CANDIDATES)
            # The row is read later, after some more tiles.
            fetch_row(X, i, nearest)
            rows[n_rows], nearer[n_rows] = i, 0
            bits = hit & CANDIDATE_BITS
            while bits != 0:
                pairs[n_pairs], numbers[n_pairs] = n_rows, lowest_bit(np.uint64(bits))
                bits &= bits - 1
                n_pairs += 1
            n_rows += 1
        if n_pairs >= MIN_PAIRS or tile == last - 1:
            evaluate_gains(
                X, rows, pairs, numbers, n_pairs, centers, unit, margins, nearest, weights, nearer,
                gains,
            )  # fmt: skip
            n_hits = last_tile = 0
            for p in upto(n_rows):
                row_tile = rows[p] // TILE
                # `counts[row_tile] += 1` would wait for the store of the row before.
                n_hits = n_hits if row_tile == last_tile else 0
                place = np.uint32(rows[p] - row_tile * TILE)
                hits[row_tile * TILE + n_hits] = place << np.uint32(MAX_CANDIDATES) | nearer[p]
                n_hits += nearer[p] != 0
                counts[row_tile], last_tile = n_hits, row_tile
            n_evaluated += n_pairs
            n_rows = n_pairs = 0
    return n_evaluated


@subroutine
def reduce_pairs(rows, numbers, m, D, nearest, weights, low, high, reductions):
    """Add to `reductions` by how much some pairs lower the integer potentials."""
    for q in upto(m):
        i, near = rows[q], nearest[rows[q]]
        if D[q] < near:
            w = weights[i] if len(weights) else 1.0
            reductions[numbers[q]] += fixed(near, w, low, high) - fixed(D[q], w, low, high)


@kernel(**LEAN)
def evaluate_candidates(
    X, first, last, centers, chosen, nearest, weights, low, high, hits, counts, reductions
):
    """Add to `reductions` by how much some candidates lower the integer potentials of some tiles.

    Parameters
    ----------
    X, first, last, nearest, weights, hits, counts : IN
        As :func:`bound_gains` used or wrote them.
    centers : IN, ndarray (m, d), float64
        The candidates.
    chosen : int
        A bit for each candidate that is evaluated.
    low, high : float
        Powers of two whose product brings a term to its grid.
    reductions : IN/OUT, ndarray (m or more,), int64
    """
    rows, numbers, D = local(np.int64, LANES), local(np.int64, LANES), local(np.float64, LANES)
    waiting = 0
    for tile in upto(first, last):
        start = tile * TILE
        for at in upto(counts[tile]):
            bits = np.int64(hits[start + at]) & chosen
            while bits != 0:
                rows[waiting] = start + (hits[start + at] >> MAX_CANDIDATES)
                numbers[waiting] = lowest_bit(np.uint64(bits))
                bits &= bits - 1
                waiting += 1
                if waiting == LANES:
                    evaluate_pairs(X, centers, rows, numbers, waiting, D)
                    reduce_pairs(rows, numbers, waiting, D, nearest, weights, low, high, reductions)
                    waiting = 0
    if waiting:
        evaluate_pairs(X, centers, rows, numbers, waiting, D)
        reduce_pairs(rows, numbers, waiting, D, nearest, weights, low, high, reductions)


@subroutine
def accept_rows(rows, m, D, nearest, weights, low, high, sketched, d, limits, totals, tops):
    """Lower D of some rows, their limits, and the sums and largest terms of their tiles."""
    squares, errors, unit, error = sketched
    for q in upto(m):
        i, near = rows[q], nearest[rows[q]]
        if D[q] < near:
            tile, w = i // TILE, weights[i] if len(weights) else 1.0
            # If this row has the tile's largest term, the new largest term is unknown.
            tops[tile] = np.nan if w * near >= tops[tile] else tops[tile]
            totals[tile] -= fixed(near, w, low, high) - fixed(D[q], w, low, high)
            nearest[i] = D[q]
            limits[i] = limit_of(D[q], squares[i], errors[i], unit, d, error)


@kernel(**LEAN)
def accept_candidate(
    X, first, last, centers, j, nearest, weights, low, high, sketched, limits, hits, counts,
    totals, tops,
):  # fmt: skip
    """Lower D of the listed rows that candidate `j` is nearer to; update sums and largest terms.

    Parameters
    ----------
    X, first, last, centers, weights, low, high, hits, counts : IN
        As :func:`evaluate_candidates` used them.
    j : int
        The candidate.
    nearest : IN/OUT, ndarray (n,), float64
    sketched : tuple
        N, ``E / q``, s / q, and the error that limits are kept for, of :class:`sketch.Sketch`.
    limits : IN/OUT, ndarray (n or more,), int32
    totals, tops : IN/OUT, ndarray (n_tiles,), int64 and float64
        Integer sum and largest of weight times D; NaN where the largest term may have shrunk.
    """
    d, m = X.shape[1], 0
    squares, errors, _, _ = sketched
    rows, numbers, D = local(np.int64, ROOM), local(np.int64, LANES), local(np.float64, LANES)
    for q in upto(LANES):
        numbers[q] = j
    for tile in upto(first, last):
        start, before = tile * TILE, m
        for at in upto(counts[tile]):
            hit = np.int64(hits[start + at])
            rows[m] = start + (hit >> MAX_CANDIDATES)
            m += hit >> j & 1
        # The rows are read later, after some more tiles.
        for p in upto(before, m):
            fetch_row(X, rows[p], nearest)
            fetch(squares.ctypes.data + 4 * rows[p], 4)
            fetch(errors.ctypes.data + 4 * rows[p], 4)
            fetch(limits.ctypes.data + 4 * rows[p], 4)
        if m >= MIN_PAIRS or tile == last - 1:
            for done in upto(0, m, LANES):
                here = minimum(LANES, m - done)
                some = part(rows, done, done + here)
                evaluate_pairs(X, centers, some, numbers, here, D)
                accept_rows(
                    some, here, D, nearest, weights, low, high, sketched, d, limits, totals, tops
                )
            m = 0


@subroutine
def lower_pairs(rows, numbers, m, D, before, sketched, d, limits, nearest, owners):
    """Lower D of the rows of some pairs, and their limits, in their order."""
    squares, errors, unit, error = sketched
    for q in upto(m):
        i = rows[q]
        if D[q] < nearest[i]:
            nearest[i], owners[i] = D[q], before + numbers[q]
            limits[i] = limit_of(D[q], squares[i], errors[i], unit, d, error)


@kernel(**LEAN)
def lower_nearest(
    X, first, last, groups, limits, sketched, candidates, centers, before, nearest, owners,
    max_evaluated,
):  # fmt: skip
    """Make all candidates seeds, in their order, and remember each row's nearest seed.

    The D of a row is evaluated to each candidate that may be nearer than all before it, so that of
    equally near seeds the first is kept.  The parameters are those of the other kernels; `centers`
    (m, d) may have any number of rows, `before` is the number of earlier seeds, and `owners` (n,),
    int32, IN/OUT, has the nearest seed of each row.  Returns the number of evaluated pairs; after
    more than `max_evaluated` pairs it skips the others.
    """
    n, d, n_evaluated = len(nearest), X.shape[1], 0
    flagged = local(np.uint32, TILE)
    rows, numbers, D = local(np.int64, LANES), local(np.int64, LANES), local(np.float64, LANES)
    for tile in upto(first, last):
        start, waiting = tile * TILE, 0
        for some in upto(0, len(centers), MAX_CANDIDATES):
            m = minimum(MAX_CANDIDATES, len(centers) - some)
            n_flagged = flag_tile(tile, n, some, m, groups, limits, candidates, flagged)
            for at in upto(n_flagged):
                hit = np.int64(flagged[at])
                bits = hit & CANDIDATE_BITS
                while bits != 0:
                    rows[waiting] = start + (hit >> MAX_CANDIDATES)
                    numbers[waiting] = some + lowest_bit(np.uint64(bits))
                    bits &= bits - 1
                    waiting += 1
                    if waiting == LANES:
                        evaluate_pairs(X, centers, rows, numbers, waiting, D)
                        lower_pairs(
                            rows, numbers, waiting, D, before, sketched, d, limits, nearest, owners
                        )
                        n_evaluated += waiting
                        waiting = 0
                        if n_evaluated > max_evaluated:
                            return n_evaluated
        if waiting:
            evaluate_pairs(X, centers, rows, numbers, waiting, D)
            lower_pairs(rows, numbers, waiting, D, before, sketched, d, limits, nearest, owners)
            n_evaluated += waiting
    return n_evaluated
