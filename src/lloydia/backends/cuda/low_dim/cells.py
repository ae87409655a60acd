r"""Cells: rows of one or two features look up which centres can be nearest.

What lies within 1 of the frame's origin, feature by feature, is cut into cells; rows that do not
are in doubt.  To all rows of a box with middle m and half sides h, centre j is farther than centre
i if

.. math:: t_i(m) - t_j(m) > \sum_f h_f |c_{if} - c_{jf}|,

for the difference of their scores t (:mod:`lloydia.exact.certificate`) is linear.  With i the
nearest of m, few centres remain, whose names a cell holds; where there are more than it has room
for, its rows are in doubt.  Boxes are taken larger by more than the roundings of where a row is,
and the sum by twice the errors of the scores (:mod:`scores`; that i has the best of all holds
for its norm here, too): what remains has the canonical nearest, ties included (Kanungo et al. 2002
prune the nodes of a tree by the same geometry).  So of rows in doubt canonical D is asked of the
centres that their cells name, and of all where those are too many or there is no cell.
"""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.device_functions.barrier import THREADS
from lloydia.backends.cuda.device_functions.feature_loads import features
from lloydia.backends.cuda.low_dim.canonical import canonical_distance
from lloydia.backends.cuda.low_dim.scores import LEAST, contest, framed, proof, settled
from lloydia.backends.cuda.runtime.launching import next_power

__all__ = ["cell_type", "fill_cells", "look_up", "nearest_named", "sides_of"]

LANES = tl.constexpr(THREADS)
# Names in a cell, of 8 or 16 bits each, the highest in the lowest bits; where there is none all
# bits are set.
NAMES = tl.constexpr(4)
# Centres under way at a time.
UNROLL = tl.constexpr(4)
# Cells of a side of a patch, whose centres are found together: along the first feature, and there
# are THREADS cells in all.
SIDE = tl.constexpr(16)
# Of at most so many clusters all are scored, and where scores of all rows would be fewer for each
# cell; and the most clusters that have names.
FEW_CLUSTERS, SCORES_EACH, MOST_NAMES = 32, 640, 0xFFFF


def cell_type(k: int) -> torch.dtype:
    """Return the integers that hold NAMES of k names."""
    return torch.int32 if k <= 0xFF else torch.int64


def sides_of(n: int, d: int, k: int) -> int:
    """Return how many cells are along each feature, or 0 where they do not pay.

    Most then hold one name.  There are none either where a program has room for fewer than k rows
    (:func:`shape.shape_of`): :func:`fill_cells` lists the centres of a patch in a list of rows.
    """
    if d > 2 or not FEW_CLUSTERS < k <= MOST_NAMES:
        return 0
    sides = next_power(64 * k if d == 1 else math.isqrt(256 * k), LANES.value)
    return sides if SCORES_EACH * sides**d <= n * k else 0


@triton.jit
def interval(first, count, sides):
    """Return the middle and the half of some cells of a side, and all that rounding may add."""
    return (2 * first + count) / (1.0 * sides) - 1.0, count / (1.0 * sides) + 2.0**-20


@triton.jit
def score_at(middle, table, j, mask, d: tl.constexpr, PITCH: tl.constexpr):
    """Return the scores at some places of some centres (one, if `j` is a number), and these."""
    c = features(table, j * PITCH, mask, d + 1)
    score = c[d]
    for f in tl.static_range(d):
        score += middle[f] * c[f]
    return score, c


@triton.jit
def margin_of(middle, half, line, d: tl.constexpr):
    """Return twice what proves that a centre is farther, for all rows of a box."""
    radius = 0.0
    for f in tl.static_range(d):
        corner = tl.abs(middle[f]) + half[f]
        radius += corner * corner
    return 2.0 * proof(radius, line)


@triton.jit
def behind(gap, c, nearest, half, margin, d: tl.constexpr):
    """Return whether a centre c is farther than the `nearest` of the middle, wherever in the box.

    `gap` is between their scores there.
    """
    reach = margin
    for f in tl.static_range(d):
        reach += half[f] * tl.abs(c[f] - nearest[f])
    # What is rounded here is relative.
    return gap > 1.00001 * reach


@triton.jit
def patch(table, k, near, middle, half, margin, d: tl.constexpr, PITCH: tl.constexpr):
    """List in `near` the centres that can be nearest in a box; return how many they are."""
    lane = tl.arange(0, LANES)
    top = tl.full((), -float("inf"), tl.float32)
    name = tl.zeros((), tl.int32)
    for first in range(0, k, LANES):
        score, _ = score_at(middle, table, first + lane, first + lane < k, d, PITCH)
        score = tl.where(first + lane < k, score, -float("inf"))
        here = tl.max(score, 0)
        at = tl.min(tl.where(score == here, first + lane, k), 0)
        name = tl.where(here > top, at, name)
        top = tl.maximum(here, top)
    nearest = features(table, name * PITCH, None, d)
    count = tl.zeros((), tl.int32)
    for first in range(0, k, LANES):
        score, c = score_at(middle, table, first + lane, first + lane < k, d, PITCH)
        farther = behind(top - score, c, nearest, half, margin, d)
        kept = ((first + lane < k) & (farther == 0)).to(tl.int32)
        tl.store(near + count + tl.cumsum(kept, 0) - kept, first + lane, mask=kept > 0)
        count += tl.sum(kept, 0)
    tl.debug_barrier()
    return count


@triton.jit
def fill_cells(
    cells, table, near, k, sides, line, d: tl.constexpr, PITCH: tl.constexpr
):  # fmt: skip
    """Fill this program's share of the cells; `near` is room for k names, its own."""
    lane = tl.arange(0, LANES)
    BITS: tl.constexpr = 16 if cells.dtype.element_ty == tl.int64 else 8
    wide: tl.constexpr = SIDE if d == 2 else LANES
    across = sides // wide
    for block in range(tl.program_id(0), across * (sides // (LANES // wide) if d == 2 else 1),
                       tl.num_programs(0)):  # fmt: skip
        at = (block % across * wide, block // across * (LANES // wide))
        places = (at[0] + lane % wide, at[1] + lane // wide)
        middle, half, middles, halves = (), (), (), ()
        for f in tl.static_range(d):
            count = wide if f == 0 else LANES // wide
            of_patch = interval(at[f], count, sides)
            of_cell = interval(places[f], 1, sides)
            middle, half = middle + (of_patch[0],), half + (of_patch[1],)
            middles, halves = middles + (of_cell[0],), halves + (of_cell[1],)
        # What the last patch has listed is no longer read.
        tl.debug_barrier()
        n_near = patch(table, k, near, middle, half, margin_of(middle, half, line, d), d, PITCH)
        margin = margin_of(middles, halves, line, d)
        top = tl.full((LANES,), -float("inf"), tl.float32)
        name = tl.zeros((LANES,), tl.int32)
        for i in tl.range(0, n_near, loop_unroll_factor=UNROLL):
            j = tl.load(near + i)
            score, _ = score_at(middles, table, j, None, d, PITCH)
            name = tl.where(score > top, j, name)
            top = tl.maximum(top, score)
        nearest = features(table, name * PITCH, None, d)
        count = tl.zeros((LANES,), tl.int32)
        entry = tl.full((LANES,), -1, cells.dtype.element_ty)
        for i in tl.range(0, n_near, loop_unroll_factor=UNROLL):
            j = tl.load(near + i)
            score, c = score_at(middles, table, j, None, d, PITCH)
            kept = behind(top - score, c, nearest, halves, margin, d) == 0
            entry = tl.where(kept, (entry << BITS) | j.to(entry.dtype), entry)
            count += kept.to(tl.int32)
        cell = places[0]
        if d == 2:
            cell += places[1] * sides
        tl.store(cells + cell, tl.where(count <= NAMES, entry, -1))


@triton.jit
def centers_of(table, j, mask, PITCH: tl.constexpr):
    """Return the columns of the table (2 or 4) for centres j, read in one go."""
    wide = j[:, None] * PITCH + tl.arange(0, PITCH)[None, :]
    c = tl.load(table + wide, mask=mask[:, None], other=0.0)
    if PITCH == 2:
        return tl.split(c)
    else:  # What follows a return is compiled, too.
        even, odd = tl.split(c.reshape(c.shape[0], 2, 2))
        c0, c2 = tl.split(even)
        c1, c3 = tl.split(odd)
        return c0, c1, c2, c3


@triton.jit
def cell_of(y, sides, d: tl.constexpr):
    """Return the cells of rows in the frame, and whether they lie there."""
    cell = tl.zeros(y[0].shape, tl.int32)
    inside = tl.full(y[0].shape, 1, tl.int1)
    for f in tl.static_range(d):
        place = (y[d - 1 - f] + 1.0) * (0.5 * sides)
        cell = cell * sides + tl.minimum(tl.maximum(place, 0.0), sides - 1.0).to(tl.int32)
        inside = inside & (tl.abs(y[f]) <= 1.0)
    return cell, inside


@triton.jit
def named(entries, i):
    """Return the names that entries of cells have in place i, and whether there are any."""
    BITS: tl.constexpr = 16 if entries.dtype == tl.int64 else 8
    none: tl.constexpr = (1 << BITS) - 1
    j = (entries >> (BITS * i)).to(tl.int32) & none
    return j, j != none


@triton.jit
def look_up(
    x, cells, table, frame, sides, line, d: tl.constexpr, PITCH: tl.constexpr, EACH: tl.constexpr
):  # fmt: skip
    """Return the labels of EACH vectors of rows by their cells, and whether each is certain."""
    y, entries, inside = (), (), ()
    for e in tl.static_range(EACH):
        here = framed(x[e], frame, d)
        cell, there = cell_of(here, sides, d)
        y, entries, inside = y + (here,), entries + (tl.load(cells + cell),), inside + (there,)
    found, sure = (), ()
    for e in tl.static_range(EACH):
        first, some = named(entries[e], 0)
        _, several = named(entries[e], 1)
        best = tl.full(first.shape, LEAST, tl.float32)
        second = best
        label = first
        for i in tl.static_range(NAMES):
            j, there = named(entries[e], i)
            there = several & there
            c = centers_of(table, j, there, PITCH)
            score = c[d]
            for f in tl.static_range(d):
                score = tl.fma(y[e][f], c[f], score)
            best, second, label = contest(best, second, label, tl.where(there, score, LEAST), j)
        certain = settled(y[e], best, second, line, d) | (some & (several == 0))
        sure = sure + (inside[e] & certain,)
        found = found + (label,)
    return found, sure


@triton.jit
def nearest_named(x, mask, cells, frame, sides, centers, d: tl.constexpr):
    """Return the labels of rows by canonical D to the centres that their cells name.

    And which of the rows in `mask` have none: they lie in no cell, or in one that names none.
    """
    cell, inside = cell_of(framed(x, frame, d), sides, d)
    entry = tl.load(cells + cell, mask=mask & inside, other=-1)
    least = tl.full(cell.shape, float("inf"), tl.float64)
    label = tl.full(cell.shape, -1, tl.int32)
    for i in tl.static_range(NAMES):
        # They descend: of equals the last one wins.
        j, there = named(entry, i)
        D = canonical_distance(x, features(centers, j * d, there, d), d)
        better = there & (D <= least)
        label = tl.where(better, j, label)
        least = tl.where(better, D, least)
    return label, mask & (label < 0)
