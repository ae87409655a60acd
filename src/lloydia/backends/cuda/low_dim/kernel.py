"""Iterations over rows of few features, any number in one launch: all programs are resident.

Rows are labelled (:mod:`scan`) and moved (:mod:`moves`), or both at once
(:mod:`summed`, and :mod:`alone` for one program's rows); then their clusters' centres
follow (:mod:`means`).  Programs wait for each other, the host for none of it.
"""

from __future__ import annotations

import triton
import triton.language as tl

from lloydia.backends.cuda.device_functions.barrier import leave, wait_for_all
from lloydia.backends.cuda.device_functions.run_state import (
    ASSIGNED,
    ITERATION,
    N_CHANGED,
    N_RECHECKED,
    STOPPED,
)
from lloydia.backends.cuda.low_dim.alone import fixed_point_grid_of, label_and_move
from lloydia.backends.cuda.low_dim.means import (
    conclude,
    low_means,
    read_tally,
    ready_tally,
    tally_of,
)
from lloydia.backends.cuda.low_dim.moves import move_rows
from lloydia.backends.cuda.low_dim.scan import label_rows, rows_of
from lloydia.backends.cuda.low_dim.stored import lists_of
from lloydia.backends.cuda.low_dim.summed import label_and_sum
from lloydia.backends.cuda.low_dim.sums import RESERVE, clear
from lloydia.backends.cuda.update.shared_table import own_table

__all__ = ["low_kernel"]


@triton.jit(
    do_not_specialize=[
        "n", "k", "n_limbs", "bits", "n_slots", "settles", "room", "sides", "n_iterations",
        "assigns",
    ]
)  # fmt: skip
def low_kernel(
    X, n, k, weights, numbers, bounds, labels, sums, n_limbs, bits,
    current, history, n_slots, report, run_state, settles, limit,
    listed, doubts, room, table, cells, sides, arrivals, n_iterations, assigns,
    own_memory, stored,
    d: tl.constexpr, WEIGHTED: tl.constexpr, RECOVER: tl.constexpr, EACH: tl.constexpr,
    COLUMNS: tl.constexpr, CENTERS: tl.constexpr, GROUP: tl.constexpr,
    KEPT: tl.constexpr, REPLICAS: tl.constexpr, BLOCK_K: tl.constexpr,
    HELD: tl.constexpr, ENTRIES: tl.constexpr, COPIES: tl.constexpr, SUMMED: tl.constexpr,
    ALONE: tl.constexpr,
):  # fmt: skip
    """Run iterations.

    Parameters beside those of :class:`lloydia.backends.cuda.low_dim.run.LowRun`:

    n_limbs : int
        Of the sums; 0: as many as were found to be needed.
    listed, doubts : torch.Tensor
        The lists of all programs: of rows that change, and of rows in doubt.
    room : int
        Of a program in a list: its rows.  Lists of :mod:`lists` have less.
    n_iterations : int
        Or -1: an assignment and its sums, but no means.
    assigns : int
        1: an assignment to the last centres follows; or 0.  Also where the limit ends iterations.
    own_memory : int32 (low_sums.WORDS,), or None
        What a program's own table is in where there is no shared memory.
    stored : float32 (...), or None
        Where float64 rows are stored in the frame, if they are SUMMED.
    COLUMNS, GROUP, KEPT, BLOCK_K, REPLICAS : int
        `columns`, `group`, `kept`, `tile` and `n_replicas` of :class:`shape.LowShape`.
    EACH, CENTERS : int
        Rows of a thread in a block, and centres that are tabulated together.
    HELD, ENTRIES, COPIES : int
        The table of own sums (:func:`sums.table_of`); COPIES is 0 where there is none.
    SUMMED : bool
        Whether rows are added up as :mod:`summed` does.
    ALONE : bool
        Whether one program looks at all rows together.
    """
    program, n_programs = tl.program_id(0), tl.num_programs(0)
    if n_limbs == 0:
        n_limbs = tl.load(bounds + 2 * d).to(tl.int32)
    fixed_point_grid = numbers.to(tl.pointer_type(tl.float64))
    exponents = numbers + 4 * (d + 1)
    kind: tl.constexpr = tl.float64 if X.dtype.element_ty == tl.float64 else tl.float32
    frame = ()
    for f in tl.static_range(d + 1):
        frame = frame + (tl.load(fixed_point_grid + 3 * (d + 1) + f).to(kind),)
    limb_size = k.to(tl.int64) * (d + 1)
    own = sums + (program % REPLICAS) * n_limbs * limb_size
    own_sums = own_memory
    if COPIES > 0:
        own_sums = own_table(own_memory, RESERVE)
        clear(own_sums, k, ENTRIES, COPIES)
    tallies = (arrivals + 4).to(tl.pointer_type(tl.int64))
    iteration = tl.load(run_state + ITERATION)
    running = tl.load(run_state + STOPPED) == 0
    done = 0
    passed = 0
    if ALONE:
        x = rows_of(X, 0, n, d, EACH)
        columns = fixed_point_grid_of(fixed_point_grid, d)
    while running:
        moves = (done < n_iterations) | (n_iterations < 0)
        # Before the first assignment there are no labels.
        labelled = tl.minimum(iteration, 1)
        if ALONE:
            n_changed, n_doubts = label_and_move(
                x, columns, X, n, k, weights, labels, labelled, current, frame, table,
                fixed_point_grid, own, bits, n_limbs, limb_size, moves,
                d, WEIGHTED, RECOVER, EACH, CENTERS, GROUP, KEPT, COLUMNS,
            )  # fmt: skip
            counted = n_changed.to(tl.int64) + (n_doubts.to(tl.int64) << 32)
        elif SUMMED:
            # This program's lists: rows that change, and rows in doubt.
            own_lists = lists_of(listed, room, stored, kind, d)
            own_doubts = doubts + program.to(tl.int64) * (room // EACH + room)
            n_changed, n_doubts = label_and_sum(
                X, n, k, labels, stored, labelled, current, frame, table, own_lists,
                own_doubts, own_doubts + room // EACH, own, own_sums, fixed_point_grid, bits,
                n_limbs, limb_size, moves,
                d, EACH, CENTERS, GROUP, KEPT, COLUMNS, HELD, ENTRIES, COPIES,
            )  # fmt: skip
            counted = n_changed.to(tl.int64) + (n_doubts.to(tl.int64) << 32)
            if moves & (n_iterations >= 0):
                tl.atomic_add(tally_of(tallies, iteration), counted, sem="relaxed")
        else:
            # This program's lists: rows that change, what they were, and rows in doubt.
            listed_rows = listed + 2 * program.to(tl.int64) * room
            listed_old = listed_rows + room
            n_changed, n_doubts = label_rows(
                X, n, k, labels, labelled, current, frame, table, listed_rows, listed_old,
                doubts + program * room, cells, sides, arrivals, passed,
                d, EACH, CENTERS, GROUP, KEPT, COLUMNS,
            )  # fmt: skip
            if cells is not None:
                passed += 1
            counted = tl.zeros((), tl.int64)
            if moves:
                counted = tl.sum(n_changed.to(tl.int64) + (n_doubts.to(tl.int64) << 32), 0)
                if n_iterations >= 0:
                    tl.atomic_add(tally_of(tallies, iteration), counted, sem="relaxed")
                move_rows(
                    X, n, k, labels, labelled, listed_rows, listed_old, doubts + program * room,
                    n_changed, weights, fixed_point_grid, own, own_sums, bits, n_limbs, limb_size,
                    d, WEIGHTED, RECOVER, EACH, HELD, ENTRIES, COPIES,
                )  # fmt: skip
        if n_iterations < 0:
            tl.atomic_add(run_state + N_CHANGED, (counted & 0xFFFFFFFF).to(tl.int32), sem="relaxed")
            tl.atomic_add(run_state + N_RECHECKED, (counted >> 32).to(tl.int32), sem="relaxed")
        running = done + 1 < n_iterations + assigns
        if done < n_iterations:
            wait_for_all(arrivals, n_programs, passed)
            n_empty, moved = low_means(
                program, n_programs, iteration, sums, n_limbs, bits, exponents, k, d,
                current, history, n_slots, report,
                None if ALONE else tally_of(tallies, iteration), limit,
                REPLICAS, BLOCK_K, COLUMNS,
            )  # fmt: skip
            wait_for_all(arrivals, n_programs, passed + 1)
            passed += 2
            if not ALONE:
                counted, n_empty, moved = read_tally(tallies, iteration, limit)
                ready_tally(program, tallies, iteration)
            stops = conclude(
                program, iteration, counted, n_empty, moved, k, n_slots, report, run_state, settles,
                limit,
            )  # fmt: skip
            running = (running & (stops == 0)) | (stops == ASSIGNED)
            # What follows then is an assignment alone.
            n_iterations = tl.where(stops == ASSIGNED, done + 1, n_iterations)
            assigns = tl.where(stops == ASSIGNED, 1, assigns)
            iteration += 1
        done += 1
    leave(arrivals, n_programs)
