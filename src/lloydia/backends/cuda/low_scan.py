"""Rows of few features (d <= 8): no matrix units, a row in registers, centres broadcast.

A program labels rows by their scores (:mod:`low_scores`).  It lists those that are in doubt, which
canonical D settles, and those that change, which move from sum to sum.  The centres follow in the
same launch: all programs are resident, so they wait for each other, and one launch runs as many
iterations as are queued.
"""

from __future__ import annotations

import triton
import triton.language as tl

from lloydia.backends.cuda.flow import HALT, ITERATION, N_CHANGED, N_RECHECKED
from lloydia.backends.cuda.launching import EXACT, INTERPRETED, ceil_div, next_power, processors
from lloydia.backends.cuda.low_means import low_means
from lloydia.backends.cuda.low_scores import approximate, canonical, features, tabulate
from lloydia.backends.cuda.run import Run
from lloydia.backends.cuda.sums import move_row_values

__all__ = ["iterate", "wait_for_all"]

# Programs that a multiprocessor holds at a time, the rows that one looks at together, and the
# products that it moves together.
RESIDENT, ROWS, MOVED = 4, 512, 1024

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
def tile_of(X, block, n, d: tl.constexpr, ROWS: tl.constexpr):
    """Return the features of a block of rows, 0 for those that are not there."""
    lane = tl.arange(0, ROWS)
    first = block.to(tl.int64) * ROWS
    return features(X + first * d, lane * d, lane < n - first, d)


@triton.jit
def wait_for_all(arrivals, n_programs, passed):
    """Wait until every program has come here; `passed` is how often they have before."""
    tl.debug_barrier()
    arrived = tl.atomic_add(arrivals, 1, sem="acq_rel") + 1
    while arrived < n_programs * (passed + 1):
        arrived = tl.atomic_add(arrivals, 0, sem="acq_rel")
    tl.debug_barrier()


@triton.jit(
    do_not_specialize=[
        "n", "k", "n_limbs", "bits", "n_slots", "settles", "room", "n_iterations",
        "one",
    ]
)  # fmt: skip
def low_kernel(
    X, n, k, weights, lattice, frame_numbers, labels, sums, n_limbs, bits, exponents,
    current, history, n_slots, report, flow, settles, changed_rows, changed_old, doubts, room,
    table, arrivals, n_iterations, one,
    d: tl.constexpr, WEIGHTED: tl.constexpr, RECOVER: tl.constexpr, ROWS: tl.constexpr,
    MOVED: tl.constexpr, COLUMNS: tl.constexpr, CENTERS: tl.constexpr, GROUP: tl.constexpr,
    REPLICAS: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Run iterations.

    With ``n_iterations = 0``, one assignment without sums; with -1, one with sums and no means.
    """
    program, n_programs = tl.program_id(0), tl.num_programs(0)
    limb_size = k.to(tl.int64) * (d + 1)
    own = sums + (program % REPLICAS) * n_limbs * limb_size
    column = tl.arange(0, COLUMNS)
    kind: tl.constexpr = tl.float64 if X.dtype.element_ty == tl.float64 else tl.float32
    frame = ()
    for f in tl.static_range(d + 1):
        frame = frame + (tl.load(frame_numbers + f).to(kind),)
    # This program's lists: rows that change, and rows in doubt.
    listed_rows = changed_rows + program * room
    listed_old = changed_old + program * room
    listed_doubts = doubts + program * room
    running = tl.load(flow + HALT) == 0
    done = 0
    n_blocks = tl.cdiv(n, ROWS)
    # Times a number that the compiler does not know: rows are dealt to threads one by one for
    # labels too, as they are for features, which saves exchanging them between threads.
    lane = tl.arange(0, ROWS) * one
    while running:
        a, b = tabulate(current, frame, table, k, d, GROUP, CENTERS)
        # Before the first assignment there are no labels.
        labelled = tl.where(tl.load(flow + ITERATION) > 0, n, 0)
        n_changed = 0
        n_doubts = 0
        coming = tile_of(X, program, n, d, ROWS)
        for block in range(program, n_blocks, n_programs):
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
        if n_iterations != 0:
            for first in range(0, n_changed, MOVED):
                entry = first + tl.arange(0, MOVED)
                mask = entry < n_changed
                rows = tl.load(listed_rows + entry, mask=mask, other=0)
                old = tl.load(listed_old + entry, mask=mask, other=-1)
                new = tl.load(labels + rows, mask=mask, other=0)
                move_row_values(
                    X, rows, column, mask, d, weights, lattice, own, old, new,
                    bits, n_limbs, limb_size, WEIGHTED, RECOVER,
                )  # fmt: skip
        running = done + 1 < n_iterations
        if n_iterations > 0:
            wait_for_all(arrivals, n_programs, 2 * done)
            low_means(
                program, n_programs, sums, n_limbs, bits, exponents, k, d,
                current, history, n_slots, report, flow, settles, REPLICAS, BLOCK_K, COLUMNS,
            )  # fmt: skip
            wait_for_all(arrivals, n_programs, 2 * done + 1)
            running = running & (tl.load(flow + HALT, volatile=True) == 0)
        done += 1
    # The last program to leave makes the barrier ready for the next launch.
    if tl.atomic_add(arrivals + 1, 1, sem="acq_rel") == n_programs - 1:
        tl.store(arrivals, 0)
        tl.store(arrivals + 1, 0)


def group_of(k: int) -> int:
    """Return how many columns the table of k centres has."""
    return 1 if k < 16 else 4 if k < 48 else 8


def iterate(run: Run, n_iterations: int) -> None:
    """Queue iterations of a run; with 0 or -1 one assignment, as :func:`low_kernel` says."""
    rows, lattice = run.rows, run.lattice
    n, d = rows.X.shape
    n_replicas, n_limbs, k, m = run.sums.shape
    programs = RESIDENT * processors(rows.device)
    block = min(max(next_power(ceil_div(n, programs)), 128), ROWS)
    programs = 1 if INTERPRETED else min(programs, ceil_div(n, block))
    room = ceil_div(ceil_div(n, block), programs) * block
    columns = next_power(m)
    # All programs have to be resident: a thread may have so many registers.
    options = {"launch_cooperative_grid": True, "maxnreg": 65536 // (128 * RESIDENT) // 8 * 8}
    low_kernel[(programs,)](
        rows.X, n, k, lattice.weights, lattice.columns, lattice.frame, run.labels,
        run.sums, n_limbs, lattice.grid.bits, lattice.exponents,
        run.current, run.history, len(run.history), run.report, run.flow, run.settles,
        run.changed_rows, run.changed_old, run.doubts, room,
        run.table, run.arrivals, n_iterations, 1,
        d=d, WEIGHTED=lattice.weights is not None, RECOVER=lattice.grid.recover,
        ROWS=block, MOVED=MOVED // columns, COLUMNS=columns, CENTERS=128, GROUP=group_of(k),
        REPLICAS=n_replicas, BLOCK_K=min(max(1, 256 // (columns * n_replicas)), next_power(k)),
        **EXACT, **({} if INTERPRETED else options),
    )  # fmt: skip
