"""The end of an iteration: centres from integer sums, and the report.

Centres equal those of :func:`lloydia.exact.means.means` bit for bit.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.device_functions.exact_numbers import divide, ldexp
from lloydia.backends.cuda.device_functions.iteration_report import (
    CHANGED,
    EMPTY,
    HEAD,
    MOVE,
    PRUNED,
    RECHECKED,
    STATUS,
)
from lloydia.backends.cuda.device_functions.run_state import (
    ITERATION,
    N_CHANGED,
    N_EMPTY,
    N_PRUNED,
    N_RECHECKED,
    STOPPED,
    SUM_SQUARED_MOVES,
    TICKETS,
    item_state,
    wait_for_previous_kernel,
)
from lloydia.backends.cuda.device_functions.significands import UNROLLED_LIMBS, significand
from lloydia.backends.cuda.dispatch import MAX_PACKED_CENTERS
from lloydia.backends.cuda.protocols import IterationState
from lloydia.backends.cuda.rows.distances import add_in_order
from lloydia.backends.cuda.rows.fixed_point_grid import FixedPointGrid
from lloydia.backends.cuda.rows.fp16_frame import RADIUS
from lloydia.backends.cuda.rows.packing import begin_scores, of_frame, store_bounds, store_fp16
from lloydia.backends.cuda.runtime.launching import EXACT, launch, next_power, processors

__all__ = [
    "MAX_CENTERS_WITH_LIMIT",
    "NOT_PACKED",
    "conclude",
    "finish_kernel",
    "mean_of",
    "queue_finish",
    "within",
]

# Programs on a multiprocessor; each takes up to 2**MAX_LEVELS features of a cluster at once.
RESIDENT, MAX_LEVELS = 16, 7
# The most centres whose movements may stop a run.
MAX_CENTERS_WITH_LIMIT = 1_000_000
# The packing arguments of finish_kernel where it packs no centres.
NOT_PACKED = (*[None] * 7, 0, 0, None, 0.0, *[None] * 4)


@triton.jit
def mean_of(a, a_low, a_place, b, b_low, b_place, e, bits, old):
    """Return the new centre, and whether its cluster is empty, so that the old centre stays.

    `a` and `b` are significands of sums and weights (:mod:`device_functions.significands`); `e` are
    the exponents of the sums.
    """
    empty = b == 0.0
    b = tl.where(empty, 1.0, b)
    if old.dtype == tl.float64:
        q = divide(a, a_low, b, b_low)
    else:
        q = a / b
    mean = ldexp(q, e - bits * (a_place - b_place))
    return tl.where(empty, old, mean.to(old.dtype)), empty


@triton.jit
def within(shift, limit):
    """Return whether the sum of squared movements is certainly at most a limit, in any order.

    For at most a million terms no order changes the sum by as much as the margin.  Where a product
    may have underflowed or overflowed, only 0 is accepted.  Nothing is within a limit of 0.
    """
    most = tl.load(limit)
    ordinary = (most > 1e-290) & (most < 1e290)
    near = (shift == 0.0) | (ordinary & (shift <= most * (1.0 - 2.0**-30)))
    return near & (most > 0.0)


@triton.jit
def conclude(
    n_programs, k, iteration, slot_report, n_slots, report, run_state, empty_stops, limited, limit,
    AT_LIMIT,
):  # fmt: skip
    """Write the report, in the last program that arrives, and begin the next iteration.

    If `limited`, squared movements within `limit` stop the run: STOPPED becomes AT_LIMIT.
    Return whether this program is the last: it reads what all have stored, past the L1 cache.
    """
    tl.debug_barrier()
    ticket = tl.zeros((), tl.int32)
    if n_programs > 1:
        ticket = tl.atomic_add(run_state + TICKETS, 1, sem="acq_rel")
    if ticket == n_programs - 1:
        # These loads are in flight at once: nothing is stored in between.
        n_changed, n_rechecked = tl.load(run_state + N_CHANGED), tl.load(run_state + N_RECHECKED)
        n_pruned = tl.load(run_state + N_PRUNED)
        # Volatile, because other programs of this launch have counted there.
        n_empty = tl.load(run_state + N_EMPTY, volatile=True)
        stops = (((n_empty > 0) & (empty_stops != 0)) | (n_changed == 0)).to(tl.int32)
        if limited != 0:
            moved = (run_state + SUM_SQUARED_MOVES).to(tl.pointer_type(tl.float64))
            near = within(tl.load(moved, volatile=True), limit)
            stops = tl.where((stops == 0) & near, AT_LIMIT, stops)
            tl.store(moved, 0.0)
        tl.store(slot_report + CHANGED, n_changed.to(tl.int64))
        tl.store(slot_report + EMPTY, n_empty.to(tl.int64))
        tl.store(slot_report + RECHECKED, n_rechecked.to(tl.int64))
        tl.store(slot_report + STATUS, stops.to(tl.int64))
        tl.store(slot_report + PRUNED, n_pruned.to(tl.int64))
        # The maximum of the next iteration starts at 0.
        following = ((iteration + 2) % n_slots).to(tl.int64) * tl.num_programs(2) * (HEAD + k)
        tl.store(report + following + MOVE, tl.zeros((), tl.int64))
        tl.store(run_state + STOPPED, stops)
        tl.store(run_state + ITERATION, iteration + 1)
        for counter in tl.static_range(N_CHANGED, N_PRUNED + 1):
            tl.store(run_state + counter, 0)
    return ticket == n_programs - 1


@triton.jit
def finish(
    program, n_programs, sums, n_limbs, bits, exponents, k, d,
    current, history, iteration, n_slots, report, run_state, empty_stops, limited, limit,
    origin, numbers, high_ptr, square_ptr, norm_ptr, residual_ptr, columns, width, pitch,
    FEW: tl.constexpr, LEVELS: tl.constexpr,
):  # fmt: skip
    """Turn the sums of this program's clusters into centres; the last program writes the report.

    Return whether this program is the last.

    Parameters
    ----------
    sums : int64 (n_limbs, k, d + 1), IN
    exponents : int64 (d + 1,), IN
    current : (k, d), IN and OUT
        The centres of the assignment, overwritten by the new ones except for empty clusters.
    history : (n_slots, k, d), OUT
        The centres after iteration i go to slot i modulo n_slots.
    iteration : int
        The number of completed iterations.
    report : int64 (n_slots, HEAD + k), OUT
    empty_stops : int
        Whether empty clusters stop the run.
    limited : int
        1: squared movements with at most the sum `limit` stop the run; k is at most
        MAX_CENTERS_WITH_LIMIT.  0: the limit is not read.
    limit : float64 (1,), IN
    origin : (d,), or None, IN
        If given, centres are packed in this frame; the arguments after it say where.  `width` is a
        multiple of 2**LEVELS less than d + 2**LEVELS, and `pitch` is the stride of `columns`.
    FEW : bool
        Whether `n_limbs` is at most UNROLLED_LIMBS.
    """
    COLUMNS: tl.constexpr = 2**LEVELS
    PACKS: tl.constexpr = origin is not None
    if PACKS:
        scale, radius = tl.load(numbers), tl.load(numbers + RADIUS)
    # 64 bits: n_slots k d may pass 2**31.
    size = k.to(tl.int64) * d * tl.num_programs(2)
    new_slot = ((iteration + 1) % n_slots) * size
    slot_report = report + ((iteration + 1) % n_slots).to(tl.int64) * tl.num_programs(2) * (
        HEAD + k
    )
    limb_size = k.to(tl.int64) * (d + 1)
    for cluster in range(program, k, n_programs):
        # A vector of one, which functions for several centres take.
        j = (cluster + tl.arange(0, 1)).to(tl.int64)
        one = j < k
        row = j[:, None] * (d + 1)
        empty = tl.zeros((1, 1), tl.int1)
        move = tl.zeros((1,), tl.float64)
        square = tl.zeros((1,), tl.float64)
        reach = tl.zeros((1,), tl.float64)
        squares = tl.zeros((1,), tl.float64)
        errors = tl.zeros((1,), tl.float64)
        for first in range(0, d, COLUMNS):
            f = first + tl.arange(0, COLUMNS)
            mask = one[:, None] & (f < d)[None, :]
            at = j[:, None] * d + f[None, :]
            # All loads are in flight at once, the weight again for each of several tiles: no load
            # moves over a division, which branches.
            e = tl.load(exponents + f, mask=f < d, other=0)[None, :]
            old = tl.load(current + at, mask=mask, other=0.0)
            if PACKS:
                m = tl.load(origin + f, mask=f < d, other=0.0)
            # All threads that hold the same old centre have loaded it before one overwrites it.
            tl.debug_barrier()
            a, a_low, a_place = significand(
                sums, row + f[None, :], mask, n_limbs, FEW, bits, limb_size, 0, 1
            )
            b, b_low, b_place = significand(
                sums, row + d, one[:, None], n_limbs, FEW, bits, limb_size, 0, 1
            )
            new, empty = mean_of(a, a_low, a_place, b, b_low, b_place, e, bits, old)
            tl.store(current + at, new, mask=mask)
            tl.store(history + new_slot + at, new, mask=mask)
            gap = tl.where(mask, new.to(tl.float64) - old.to(tl.float64), 0.0)
            move = tl.maximum(move, tl.max(tl.abs(gap), 1))
            square = add_in_order(square, gap * gap, LEVELS)
            if PACKS:
                tl.store(columns + f[None, :] * pitch + j[:, None], new, mask=mask)
                high_at = high_ptr + j[:, None] * width + f[None, :]
                reach, squares, errors = store_fp16(
                    new, m, scale, mask, high_at, reach, squares, errors
                )
        if PACKS:
            store_bounds(
                j, one, reach, squares, errors, radius, high_ptr, width,
                square_ptr, norm_ptr, residual_ptr, COLUMNS,
            )  # fmt: skip
        tl.store(slot_report + HEAD + j, square.to(tl.int64, bitcast=True))
        tl.atomic_max(slot_report + MOVE, tl.max(move, 0).to(tl.int64, bitcast=True), sem="relaxed")
        if limited != 0:
            moved = (run_state + SUM_SQUARED_MOVES).to(tl.pointer_type(tl.float64))
            tl.atomic_add(moved, tl.sum(square, 0), sem="relaxed")
        n_empty = tl.sum(tl.sum(empty.to(tl.int32), 1), 0)
        tl.atomic_add(run_state + N_EMPTY, n_empty, mask=n_empty > 0, sem="relaxed")
    return conclude(
        n_programs, k, iteration, slot_report, n_slots, report, run_state, empty_stops, limited,
        limit, 1,
    )  # fmt: skip


@triton.jit(
    do_not_specialize=[
        "n_limbs", "bits", "k", "d", "n_slots", "empty_stops", "limited", "width", "pitch",
    ]
)  # fmt: skip
def finish_kernel(
    sums, n_limbs, bits, exponents, k, d, current, history, n_slots, report, run_state,
    empty_stops, limited, limit,
    origin, numbers, high_ptr, square_ptr, norm_ptr, residual_ptr, columns, width, pitch,
    typical, summed, bias_ptr, half_norm_ptr, half_norm_f32_ptr, coefficients_ptr,
    FEW: tl.constexpr, LEVELS: tl.constexpr, ALL: tl.constexpr,
):  # fmt: skip
    """Run :func:`finish` for each item of a batch.

    With an `origin` centres are packed as well, at most ALL of a single data set: the next scan
    finds what :meth:`~lloydia.backends.cuda.matmul.fp16_centers.Fp16Centers.pack` would write.
    """
    wait_for_previous_kernel()
    run_state = item_state(run_state)
    stopped, iteration = tl.load(run_state + STOPPED), tl.load(run_state + ITERATION)
    if stopped == 0:
        batch_item = tl.program_id(2).to(tl.int64)
        if origin is not None:
            # Loaded here, so that the last program does not wait for it.
            frame = of_frame(numbers)
        last = finish(
            tl.program_id(0), tl.num_programs(0),
            sums + batch_item * n_limbs * k * (d + 1), n_limbs, bits,
            exponents + batch_item * (d + 1), k, d, current + batch_item * k * d,
            history + batch_item * k * d, iteration, n_slots, report + batch_item * (HEAD + k),
            run_state, empty_stops, limited, limit,
            origin, numbers, high_ptr, square_ptr, norm_ptr, residual_ptr, columns, width, pitch,
            FEW, LEVELS,
        )  # fmt: skip
        if origin is not None and last:
            begin_scores(
                k, frame, square_ptr, norm_ptr, residual_ptr, typical, summed,
                bias_ptr, half_norm_ptr, half_norm_f32_ptr, coefficients_ptr, ALL,
            )  # fmt: skip


def queue_finish(
    sums: torch.Tensor,
    fixed_point_grid: FixedPointGrid,
    run: IterationState,
    batch_size: int,
    packing: tuple = NOT_PACKED,
    limit: torch.Tensor | None = None,
) -> None:
    """Queue the end of an iteration: centres from sums.

    Parameters
    ----------
    sums : int64 tensor of shape (batch_size, n_limbs, k, d + 1)
    fixed_point_grid : FixedPointGrid
    run : IterationState
        Receives the centres and the report.
    batch_size : int
    packing : tuple, optional
        For a single data set whose centres are packed: what `Fp16Centers.arguments` returns.
    limit : float64 tensor of shape (1,), optional
        For a single data set: squared movements with at most this sum stop the run.
    """
    _, n_limbs, k, m = sums.shape
    # One warp for each cluster, several on a multiprocessor: they hide each other's latencies, and
    # few threads repeat the work where squares are added in order.
    # Without a limit there is other memory of the same type: a kernel has one form for both.
    limited, limit = (0, fixed_point_grid.columns) if limit is None else (1, limit)
    launch(
        finish_kernel, (min(k, RESIDENT * processors(sums.device)), 1, batch_size),
        sums, n_limbs, fixed_point_grid.grid.bits, fixed_point_grid.exponents, k, m - 1,
        run.current, run.history, len(run.history), run.report, run.run_state,
        run.empty_stops, limited, limit,
        *packing,
        FEW=n_limbs <= UNROLLED_LIMBS.value,
        LEVELS=min(MAX_LEVELS, next_power(m - 1).bit_length() - 1),
        ALL=1 if packing is NOT_PACKED else MAX_PACKED_CENTERS, num_warps=1, **EXACT,
    )  # fmt: skip
