"""Rows of few features that one program holds: they stay in its registers from first to last.

Such runs take the time that threads wait for memory.  So nothing is listed, rows move where they
are labelled, and where centres fit into registers every thread frames them by itself.
"""

from __future__ import annotations

import triton
import triton.language as tl

from lloydia.backends.cuda.device_functions.barrier import THREADS
from lloydia.backends.cuda.device_functions.exact_numbers import rint
from lloydia.backends.cuda.device_functions.feature_loads import features
from lloydia.backends.cuda.low_dim.canonical import canonical
from lloydia.backends.cuda.low_dim.kept import approximate_few, frame_centers
from lloydia.backends.cuda.low_dim.moves import move, one_of
from lloydia.backends.cuda.low_dim.scores import approximate, tabulate

__all__ = ["fixed_point_grid_of", "label_and_move"]

LANES = tl.constexpr(THREADS)
# More than the rows of a program.
MANY = tl.constexpr(1 << 16)
# What is below all labels once one, or that there was none, is taken from it.
DOUBT = tl.constexpr(-2)
# Limbs that are added where rows move: mostly all.
UNROLLED_LIMBS = tl.constexpr(2)
# Columns of a thread's rows that move at once; with more it takes long to compile.
MOST_AT_ONCE = tl.constexpr(8)


@triton.jit
def labels_of(labels, n, EACH: tl.constexpr):
    """Return the labels of EACH rows a thread, -1 for those that are not there."""
    lane = tl.arange(0, LANES)
    found = ()
    for e in tl.static_range(EACH):
        rows = lane + e * LANES
        found = found + (tl.load(labels + rows, mask=rows < n, other=-1),)
    return found


@triton.jit
def fixed_point_grid_of(fixed_point_grid, d: tl.constexpr):
    """Return scale, quantum and inverse of each column: d features, and the weight."""
    columns = ()
    for f in tl.static_range(d + 1):
        at = fixed_point_grid + f
        columns = columns + ((tl.load(at), tl.load(at + d + 1), tl.load(at + 2 * (d + 1))),)
    return columns


@triton.jit
def move_by_few(x, mask, old, new, columns, sums, bits, limb_size, d: tl.constexpr):
    """Move UNROLLED_LIMBS of rows without weights, as :func:`moves.move` does.

    Nothing here waits for anything else here.
    """
    step = ((1023 + bits.to(tl.int64)) << 52).to(tl.float64, bitcast=True)
    to = sums + new.to(tl.int64) * (d + 1)
    off = sums + old.to(tl.int64) * (d + 1)
    taken = mask & (old >= 0)
    for f in tl.static_range(d + 1):
        scale, quantum, inverse = columns[f]
        value = tl.full((LANES,), 1.0, tl.float64) if f == d else x[f].to(tl.float64)
        p = value * scale
        for limb in tl.static_range(UNROLLED_LIMBS):
            v = rint(p * inverse)
            integer = v.to(tl.int64)
            there = integer != 0
            at = limb * limb_size + f
            tl.atomic_add(to + at, integer, mask=mask & there, sem="relaxed")
            tl.atomic_add(off + at, -integer, mask=taken & there, sem="relaxed")
            p = (p - v * quantum) * step


@triton.jit
def features_of(x, e, d: tl.constexpr):
    """Return the features of entry e of a tuple, whichever that is."""
    here = ()
    for f in tl.static_range(d):
        here = here + (one_of(x, f, e),)
    return here


@triton.jit
def label_and_move(
    x, columns, X, n, k, weights, labels, labelled, current, frame, table, fixed_point_grid, sums,
    bits, n_limbs, limb_size, moves,
    d: tl.constexpr, WEIGHTED: tl.constexpr, RECOVER: tl.constexpr, EACH: tl.constexpr,
    CENTERS: tl.constexpr, GROUP: tl.constexpr, KEPT: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Assign all rows, whose features are `x`, to `current`, and move those that change.

    Return how many changed and how many were in doubt.  Where not `moves`, sums stay; if rows are
    not `labelled`, which is 1 or 0, all change.
    """
    lane = tl.arange(0, LANES)
    before = labels_of(labels, n * labelled, EACH)
    if KEPT > 0:
        kept, line = frame_centers(current, frame, k, d, KEPT)
        found, sure = approximate_few(x, kept, frame, k, line, d, GROUP, KEPT, EACH)
    else:
        line, _ = tabulate(current, frame, table, k, d, COLUMNS, GROUP, KEPT, CENTERS)
        found, sure = approximate(x, table, frame, k, line, d, COLUMNS, GROUP, EACH)
    each = tl.zeros((LANES,), tl.int32)
    for e in tl.static_range(EACH):
        rows = lane + e * LANES
        changed = (rows < n) & sure[e] & (found[e] != before[e])
        doubtful = (rows < n) & (sure[e] == 0)
        each += changed.to(tl.int32) + doubtful.to(tl.int32) * MANY
        # Until they are settled, what is there says of rows in doubt what they were.
        tl.store(labels + rows, tl.where(doubtful, DOUBT - before[e], found[e]), mask=rows < n)
    counted = tl.sum(each, 0)
    n_changed, n_doubts = counted % MANY, counted // MANY
    for e in tl.range(0, tl.where(n_doubts > 0, EACH, 0), loop_unroll_factor=1):
        rows = lane + e * LANES
        marked = tl.load(labels + rows, mask=rows < n, other=0)
        mask = marked < 0
        if tl.sum(mask.to(tl.int32), 0) > 0:
            new = canonical(features(X, rows.to(tl.int64) * d, mask, d), current, k, d, LANES)
            n_changed += tl.sum((mask & (new != DOUBT - marked)).to(tl.int32), 0)
            tl.store(labels + rows, new, mask=mask)
    found = labels_of(labels, n, EACH)
    changed = ()
    for e in tl.static_range(EACH):
        changed = changed + ((lane + e * LANES < n) & (found[e] != before[e]),)
    moves = moves & (n_changed > 0)
    if not WEIGHTED:
        if EACH * (d + 1) <= MOST_AT_ONCE:
            if moves:
                for e in tl.static_range(EACH):
                    move_by_few(
                        x[e], changed[e], before[e], found[e], columns, sums, bits, limb_size, d
                    )  # fmt: skip
        else:
            for e in tl.range(0, tl.where(moves, EACH, 0), loop_unroll_factor=1):
                move_by_few(
                    features_of(x, e, d), one_of(changed, None, e), one_of(before, None, e),
                    one_of(found, None, e), columns, sums, bits, limb_size, d,
                )  # fmt: skip
    done: tl.constexpr = 0 if WEIGHTED else UNROLLED_LIMBS
    for e in tl.range(0, tl.where(moves & (n_limbs > done), EACH, 0), loop_unroll_factor=1):
        move(
            features_of(x, e, d), lane + e * LANES, one_of(changed, None, e),
            one_of(before, None, e), one_of(found, None, e), weights, fixed_point_grid, sums, bits,
            n_limbs, limb_size, d, WEIGHTED, RECOVER, done,
        )  # fmt: skip
    return n_changed, n_doubts
