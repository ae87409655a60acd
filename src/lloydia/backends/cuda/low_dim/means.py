"""The end of an iteration over rows of few features: centres, the report, the next table.

As :mod:`lloydia.backends.cuda.update.means`, for replicas of the sums, and with less waiting:
weights are a column of the sums, so that one read is for several clusters and all that is theirs.
"""

from __future__ import annotations

import triton
import triton.language as tl

from lloydia.backends.cuda.device_functions.iteration_report import HEAD, MOVE
from lloydia.backends.cuda.device_functions.run_state import (
    ASSIGNED,
    ITERATION,
    N_EMPTY,
    STOPPED,
    SUM_SQUARED_MOVES,
    wait_for_previous_kernel,
)
from lloydia.backends.cuda.device_functions.significands import UNROLLED_LIMBS, significand
from lloydia.backends.cuda.low_dim.center_table import frame_at, tabulate
from lloydia.backends.cuda.update.means import conclude, mean_of

__all__ = ["PAIRS", "means_kernel"]

# Clusters times columns of a tile, whose means a program computes at once.
PAIRS = 128


@triton.jit(
    do_not_specialize=["n_limbs", "bits", "k", "n_replicas", "n_slots", "empty_stops"],
    do_not_specialize_on_alignment=[
        "sums", "bounds", "numbers", "current", "history", "report", "run_state", "limit", "table",
    ],
)  # fmt: skip
def means_kernel(
    sums, n_limbs, bits, bounds, numbers, k, n_replicas, current, history, n_slots, report,
    run_state, empty_stops, limit, table,
    d: tl.constexpr, COLUMNS: tl.constexpr, CLUSTERS: tl.constexpr,
):  # fmt: skip
    """Turn sums into centres; the last program writes the report and the next table of centres.

    Parameters
    ----------
    sums : IN, int64 (n_replicas, n_limbs, k, d + 1)
    bits : int
        Of a limb.
    bounds : IN, int64 (2 d + 1,)
        The last is the number of limbs, if `n_limbs` is 0.
    numbers : IN, int64 (5 (d + 1),)
        Those of the fixed-point grid, with the frame.
    current : IN, OUT, float32 or float64 (k, d)
        The centres of the assignment; overwritten by the new ones, but for empty clusters.
    history : OUT, float32 or float64 (n_slots, k, d)
        The new centres, in the slot of this iteration; in the first one also those before.
    report : OUT, int64 (n_slots, HEAD + k)
    run_state : IN, OUT, int32
    empty_stops : int
        1: an iteration with empty clusters stops the run; or 0.
    limit : IN, float64 (1,)
        The run stops where the squares of the movements have at most this sum; 0: it does not.
    table : OUT, float32 (table_size(k, d),)
    COLUMNS, CLUSTERS : int
        Columns, at least d + 1, and clusters of a tile.
    """
    wait_for_previous_kernel()
    # All of these loads are in flight at once.
    stopped, iteration = tl.load(run_state + STOPPED), tl.load(run_state + ITERATION)
    needed = tl.load(bounds + 2 * d).to(tl.int32)
    frame = frame_at(numbers, current.dtype.element_ty, d)
    f = tl.arange(0, COLUMNS)
    e = tl.load(numbers + 4 * (d + 1) + f, mask=f < d, other=0)[None, :]
    if stopped == 0:
        program, n_programs = tl.program_id(0), tl.num_programs(0)
        n_limbs = tl.where(n_limbs == 0, needed, n_limbs)
        # 64 bits: n_slots k d may pass 2**31.
        new_slot = ((iteration + 1) % n_slots) * (k.to(tl.int64) * d)
        slot_report = report + ((iteration + 1) % n_slots).to(tl.int64) * (HEAD + k)
        limb_size = k.to(tl.int64) * (d + 1)
        all_empty = tl.zeros((), tl.int32)
        all_moved = tl.zeros((), tl.float64)
        for first in range(program * CLUSTERS, k, n_programs * CLUSTERS):
            j = first + tl.arange(0, CLUSTERS)
            real = j < k
            there = real[:, None] & (f <= d)[None, :]
            mask = real[:, None] & (f < d)[None, :]
            at = j.to(tl.int64)[:, None] * d + f[None, :]
            old = tl.load(current + at, mask=mask, other=0.0)
            offset = j.to(tl.int64)[:, None] * (d + 1) + f[None, :]
            a, a_low, a_place = significand(
                sums, offset, there, n_limbs, n_limbs <= UNROLLED_LIMBS, bits, limb_size,
                limb_size * n_limbs, n_replicas,
            )  # fmt: skip
            # Threads that hold the same have all read it, so that all find the same movement.
            tl.debug_barrier()
            # Column d is the weight; the other terms of these sums are 0.
            weight = (f == d)[None, :]
            b = tl.sum(tl.where(weight, a, 0.0), 1)[:, None]
            b_low = tl.sum(tl.where(weight, a_low, 0.0), 1)[:, None]
            b_place = tl.sum(tl.where(weight, a_place, 0), 1)[:, None]
            new, empty = mean_of(a, a_low, a_place, b, b_low, b_place, e, bits, old)
            tl.store(current + at, new, mask=mask)
            tl.store(history + new_slot + at, new, mask=mask)
            if iteration == 0:
                tl.store(history + at, old, mask=mask)
            difference = tl.where(mask, new.to(tl.float64) - old.to(tl.float64), 0.0)
            squares = difference * difference
            square = tl.zeros((CLUSTERS,), tl.float64)
            for s in tl.static_range(d):
                square += tl.sum(tl.where((f == s)[None, :], squares, 0.0), 1)
            tl.store(slot_report + HEAD + j, square.to(tl.int64, bitcast=True), mask=real)
            move = tl.max(tl.max(tl.abs(difference), 1), 0)
            tl.atomic_max(slot_report + MOVE, move.to(tl.int64, bitcast=True), sem="relaxed")
            all_empty += tl.sum(tl.max((empty & real[:, None]).to(tl.int32), 1), 0)
            all_moved += tl.sum(tl.where(real, square, 0.0), 0)
        tl.atomic_add(run_state + N_EMPTY, all_empty, mask=all_empty > 0, sem="relaxed")
        moved = (run_state + SUM_SQUARED_MOVES).to(tl.pointer_type(tl.float64))
        tl.atomic_add(moved, all_moved, sem="relaxed")
        last = conclude(
            n_programs, k, iteration, slot_report, n_slots, report, run_state, empty_stops, 1,
            limit, ASSIGNED,
        )  # fmt: skip
        if last:
            tabulate(current, frame, table, k, d)
