"""Rows of few features (d <= 8): no matrix units, a row in registers, centres broadcast.

A program labels rows by their scores (:mod:`scores`).  Every thread lists those of its rows
that are in doubt, which canonical D settles, and those that change, which move from sum to sum:
threads ask nothing of each other while rows are scored.
"""

from __future__ import annotations

import triton
import triton.language as tl

from lloydia.backends.cuda.device_functions.barrier import THREADS, wait_for_all
from lloydia.backends.cuda.device_functions.feature_loads import features
from lloydia.backends.cuda.device_functions.prefetch import prefetch
from lloydia.backends.cuda.low_dim.canonical import nearest
from lloydia.backends.cuda.low_dim.cells import fill_cells, look_up, nearest_named
from lloydia.backends.cuda.low_dim.kept import approximate_few, keep
from lloydia.backends.cuda.low_dim.scores import approximate, tabulate

__all__ = ["label_rows", "rows_of"]

LANES = tl.constexpr(THREADS)


@triton.jit
def rows_of(X, block, n, d: tl.constexpr, EACH: tl.constexpr):
    """Return the features of EACH rows a thread, 0 for those that are not there."""
    lane = tl.arange(0, LANES)
    first = tl.full((), LANES * EACH, tl.int64) * block
    left = tl.minimum(n - first, LANES * EACH).to(tl.int32)
    x = ()
    for e in tl.static_range(EACH):
        row = e * LANES + lane
        x = x + (features(X + first * d, row * d, row < left, d),)
    return x


@triton.jit
def rows_to_score(X, n, labels, labelled, block, d: tl.constexpr, EACH: tl.constexpr):
    """Return the labels of a block's rows, and the features of those of this program's next block.

    Labels are -1 of rows that are not there, or not `labelled`, which is 1 or 0.
    """
    lane, stride = tl.arange(0, LANES), tl.num_programs(0)
    first = block * LANES * EACH
    before = ()
    for e in tl.static_range(EACH):
        row = e * LANES + lane
        mask = row < (n - first) * labelled
        before = before + (tl.load(labels + first + row, mask=mask, other=-1),)
    coming = rows_of(X, block + stride, n, d, EACH)
    # Those after them, and the next labels: to load them here would take registers, too.
    after = tl.full((), LANES * EACH, tl.int64) * (block + 2 * stride)
    prefetch(X, after * d, n.to(tl.int64) * d, LANES * EACH * d)
    prefetch(labels, after - stride * LANES * EACH, n.to(tl.int64), LANES * EACH)
    return before, coming


@triton.jit
def label_rows(
    X, n, k, labels, labelled, current, frame, table, listed_rows, listed_old, listed_doubts,
    cells, sides, arrivals, passed,
    d: tl.constexpr, EACH: tl.constexpr, CENTERS: tl.constexpr, GROUP: tl.constexpr,
    KEPT: tl.constexpr, PITCH: tl.constexpr,
):  # fmt: skip
    """Assign this program's rows to `current`.

    Return how many rows each thread lists as changed, and how many were in doubt.

    If rows are not `labelled`, which is 1 or 0, all change, and need not be listed.  With `cells`,
    programs wait for each other once.
    """
    program, n_programs = tl.program_id(0), tl.num_programs(0)
    line, lift = tabulate(current, frame, table, k, d, PITCH, GROUP, KEPT, CENTERS)
    if cells is not None:
        fill_cells(cells, table, listed_doubts, k, sides, line, d, PITCH)
        wait_for_all(arrivals, n_programs, passed)
    if KEPT > 0:
        kept = keep(table, lift, d, PITCH, KEPT)
    lane = tl.arange(0, LANES)
    n_changed = tl.zeros((LANES,), tl.int32)
    n_doubts = tl.zeros((LANES,), tl.int32)
    coming = rows_of(X, program, n, d, EACH)
    for block in range(program, tl.cdiv(n, LANES * EACH), n_programs):
        first = block * LANES * EACH
        here = coming
        # The next rows are on their way while these are scored.
        before, coming = rows_to_score(X, n, labels, labelled, block, d, EACH)
        if cells is not None:
            found, sure = look_up(here, cells, table, frame, sides, line, d, PITCH, EACH)
        elif KEPT > 0:
            found, sure = approximate_few(here, kept, frame, k, line, d, GROUP, KEPT, EACH)
        else:
            found, sure = approximate(here, table, frame, k, line, d, PITCH, GROUP, EACH)
        for e in tl.static_range(EACH):
            rows = first + e * LANES + lane
            mask = e * LANES + lane < n - first
            changed = mask & sure[e] & (found[e] != before[e])
            doubtful = mask & (sure[e] == 0)
            tl.store(labels + rows, found[e], mask=changed)
            listed = changed & (before[e] >= 0)
            tl.store(listed_rows + n_changed * LANES + lane, rows, mask=listed)
            tl.store(listed_old + n_changed * LANES + lane, before[e], mask=listed)
            tl.store(listed_doubts + n_doubts * LANES + lane, rows, mask=doubtful)
            n_changed += changed.to(tl.int32)
            n_doubts += doubtful.to(tl.int32)
    tl.debug_barrier()
    for i in range(tl.max(n_doubts, 0)):
        mask = i < n_doubts
        listed = listed_doubts + i * LANES
        rows = tl.load(listed + lane, mask=mask, other=0)
        old = tl.load(labels + rows, mask=i < n_doubts * labelled, other=-1)
        if cells is not None:
            # Of the centres that a row's cell names; of all where it names none.
            x = features(X, rows.to(tl.int64) * d, mask, d)
            new, left = nearest_named(x, mask, cells, frame, sides, current, d)
            if tl.max(left.to(tl.int32), 0) > 0:
                new = tl.where(left, nearest(X, rows, left, listed, current, k, d), new)
        else:
            new = nearest(X, rows, mask, listed, current, k, d)
        changed = mask & (new != old)
        tl.store(labels + rows, new, mask=changed)
        tl.store(listed_rows + n_changed * LANES + lane, rows, mask=changed)
        tl.store(listed_old + n_changed * LANES + lane, old, mask=changed)
        n_changed += changed.to(tl.int32)
    tl.debug_barrier()
    return n_changed, n_doubts
