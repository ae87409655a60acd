"""Rows of few features (d <= 8): no matrix units, a row in registers, centres broadcast.

A program labels rows by their scores (:mod:`low_scores`).  It lists those that are in doubt, which
canonical D settles, and those that change, which move from sum to sum.
"""

from __future__ import annotations

import triton
import triton.language as tl

from lloydia.backends.cuda.flow import N_CHANGED, N_RECHECKED
from lloydia.backends.cuda.low_scores import approximate, canonical, features, tabulate, tile_of
from lloydia.backends.cuda.sums import move_row_values

__all__ = ["label_rows", "move_rows"]

# Rows in doubt that are settled together, one a thread.
SETTLED = tl.constexpr(128)

# Lists of rows: a tile adds to two of them, counted in the halves of one integer.
SECOND = tl.constexpr(1 << 16)


@triton.jit
def note(
    rows, new, old, mask, certain, labels, listed_rows, listed_old, listed_doubts,
    n_changed, n_doubts,
):  # fmt: skip
    """Write the labels of rows that changed; list them, and the rows in doubt.

    Returns how many of each are listed now.
    """
    changed = mask & certain & (new != old)
    doubtful = mask & ~certain
    chosen = changed.to(tl.int32) + doubtful.to(tl.int32) * SECOND
    count = tl.sum(chosen, 0)
    if count > 0:
        before = tl.cumsum(chosen, 0) - chosen
        at = n_changed + before % SECOND
        tl.store(labels + rows, new, mask=changed)
        tl.store(listed_rows + at, rows, mask=changed)
        tl.store(listed_old + at, old, mask=changed)
        tl.store(listed_doubts + n_doubts + before // SECOND, rows, mask=doubtful)
    return n_changed + count % SECOND, n_doubts + count // SECOND


@triton.jit
def label_rows(
    X, n, k, labels, labelled, current, frame, table, listed_rows, listed_old, listed_doubts, flow,
    one, d: tl.constexpr, ROWS: tl.constexpr, CENTERS: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """Assign this program's rows to `current`; return how many have changed, which are listed.

    The labels of rows from `labelled` on are not known before.  `one` is 1.
    """
    program, n_programs = tl.program_id(0), tl.num_programs(0)
    a, b = tabulate(current, frame, table, k, d, GROUP, CENTERS)
    # Times a number that the compiler does not know: rows are dealt to threads one by one for
    # labels too, as they are for features, which saves exchanging them between threads.
    lane = tl.arange(0, ROWS) * one
    n_changed = 0
    n_doubts = 0
    coming = tile_of(X, program, n, d, ROWS)
    for block in range(program, tl.cdiv(n, ROWS), n_programs):
        rows = block * ROWS + lane
        mask = lane < n - block * ROWS
        old = tl.load(labels + rows, mask=mask & (rows < labelled), other=-1)
        here = coming
        # The next rows are on their way while these are scored.
        coming = tile_of(X, block + n_programs, n, d, ROWS)
        new, certain = approximate(here, table, frame, k, a, b, d, GROUP, ROWS)
        n_changed, n_doubts = note(
            rows, new, old, mask, certain, labels, listed_rows, listed_old, listed_doubts,
            n_changed, n_doubts,
        )  # fmt: skip
    # What other threads of this program have listed is read below.
    tl.debug_barrier()
    for first in range(0, n_doubts, SETTLED):
        entry = first + tl.arange(0, SETTLED)
        mask = entry < n_doubts
        rows = tl.load(listed_doubts + entry, mask=mask, other=0)
        x = features(X, rows.to(tl.int64) * d, mask, d)
        old = tl.load(labels + rows, mask=mask & (rows < labelled), other=-1)
        new = canonical(x, current, k, d, SETTLED)
        n_changed, _ = note(
            rows, new, old, mask, mask, labels, listed_rows, listed_old, listed_doubts,
            n_changed, n_doubts,
        )  # fmt: skip
    tl.debug_barrier()
    tl.atomic_add(flow + N_CHANGED, n_changed, sem="relaxed")
    tl.atomic_add(flow + N_RECHECKED, n_doubts, sem="relaxed")
    return n_changed


@triton.jit
def move_rows(
    X, labels, listed_rows, listed_old, n_changed, weights, lattice, sums, bits, n_limbs, limb_size,
    d: tl.constexpr, WEIGHTED: tl.constexpr, RECOVER: tl.constexpr, MOVED: tl.constexpr,
    COLUMNS: tl.constexpr,
):  # fmt: skip
    """Move the listed rows from their old clusters to those of their labels."""
    column = tl.arange(0, COLUMNS)
    for first in range(0, n_changed, MOVED):
        entry = first + tl.arange(0, MOVED)
        mask = entry < n_changed
        rows = tl.load(listed_rows + entry, mask=mask, other=0)
        old = tl.load(listed_old + entry, mask=mask, other=-1)
        new = tl.load(labels + rows, mask=mask, other=0)
        move_row_values(
            X, rows, column, mask, d, weights, lattice, sums, old, new,
            bits, n_limbs, limb_size, WEIGHTED, RECOVER,
        )  # fmt: skip
