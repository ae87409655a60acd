"""Cluster sums of the rows that changed, after sorting.

The list of sorted updates (:mod:`sorted_updates`) is cut into equal segments, one for each *lane*
of threads.  A lane adds its segment in registers and needs one atomic for each column where the
cluster changes; unsorted rows would need one each.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.device_functions.lane_sums import (
    add_first_limbs,
    add_products,
    at_limb,
    flush,
    flush_weights,
    in_first,
    shifts_of,
    with_totals,
    zeros,
)
from lloydia.backends.cuda.device_functions.run_state import (
    STOPPED,
    first_row,
    item_state,
    programs_each,
    wait_for_previous_kernel,
)
from lloydia.backends.cuda.rows.fixed_point_grid import FixedPointGrid
from lloydia.backends.cuda.runtime.launching import EXACT, ceil_div, launch, next_power, processors
from lloydia.backends.cuda.update.sorted_updates import SortedUpdates, update_at

__all__ = ["queue_sorted_sums"]

# Updates of a lane whose rows are loaded at once.
PREFETCH_DEPTH = tl.constexpr(8)
# Columns of all lanes of a program, which is one warp, so that there are no barriers: usually, and
# for weights, float64 or more limbs, which need more registers for each column.
LIGHT_COLUMNS, HEAVY_COLUMNS = 128, 64
# Resident programs on a multiprocessor, and the registers of a thread that this allows.
RESIDENT, REGISTERS = 16, 128
# Limbs that are added in one pass.
LIMBS_PER_PASS = 4


@triton.jit(do_not_specialize=["n", "bits", "n_limbs", "skip", "limb_size"])
def add_kernel(
    X, n, d, weights, fixed_point_grid, updates, totals, run_state,
    sums, bits, n_limbs, skip, limb_size,
    LIMBS: tl.constexpr, SKIPS: tl.constexpr, WEIGHTED: tl.constexpr, RECOVER: tl.constexpr,
    LANES: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Add the updates to the sums; programs of the first column block also add the weights."""
    batch_item = tl.program_id(2).to(tl.int64)
    # All limbs together may have more numbers than 32 bits count.
    limb_size = limb_size.to(tl.int64)
    # These loads are in flight at once, before the updates are needed.
    wait_for_previous_kernel()
    stopped, count = tl.load(item_state(run_state) + STOPPED), tl.load(totals + batch_item)
    segment = tl.cdiv(tl.cdiv(count, tl.num_programs(0) * LANES), PREFETCH_DEPTH) * PREFETCH_DEPTH
    first = tl.program_id(0) * LANES * segment
    if (stopped != 0) | (first >= count):
        return
    fixed_point_grid += batch_item * 3 * (d + 1)
    updates += first_row(2 * n)
    sums += batch_item * n_limbs * limb_size
    # The error of weighted products is one more addition for each limb.
    TERMS: tl.constexpr = 2 if RECOVER else 1
    double: tl.constexpr = X.dtype.element_ty == tl.float64
    kind: tl.constexpr = tl.float64 if double else tl.float32
    # No float32 number is so small that its limbs would underflow.
    SCALED: tl.constexpr = double or WEIGHTED
    LIGHT: tl.constexpr = (not SCALED) and (not SKIPS)
    m = d + 1
    f = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    column = (f < d)[None, :]
    scale = tl.load(fixed_point_grid + f, mask=f < d, other=1.0)[None, :]
    quantum = tl.load(fixed_point_grid + m + f, mask=f < d, other=1.0)[None, :]
    if not SCALED:
        quantum = quantum / scale
        scale = tl.full(scale.shape, 1.0, tl.float64)
    shifts = shifts_of(at_limb(quantum, bits, skip), bits, LIMBS)
    weight_scale = tl.load(fixed_point_grid + d)
    weight_quantum = tl.load(fixed_point_grid + m + d)
    weight_shifts = shifts_of(at_limb(weight_quantum, bits, skip), bits, LIMBS)
    if LIGHT:
        # Numbers of this magnitude are multiples of the quantum: they have 24 bits.
        least = (quantum * 8388608.0).to(tl.float32)
    first_block = tl.zeros((LANES,), tl.int32) + tl.program_id(1) == 0
    sums += skip * limb_size
    begin = first + tl.arange(0, LANES) * segment
    _, _, current = update_at(updates, begin, count)
    own = zeros((LANES, COLUMNS), LIMBS)
    own_weight = zeros((LANES,), LIMBS)
    ones = tl.zeros((LANES,), tl.int32)
    added = tl.zeros((LANES,), tl.int32)
    step = tl.arange(0, PREFETCH_DEPTH)[None, :]
    for offset in range(0, tl.minimum(segment, count - first), PREFETCH_DEPTH):
        # One tensor of all steps of a lane, of shape (lanes, steps, columns).
        sign, row, cluster = update_at(updates, begin[:, None] + (offset + step), count)
        features = X + row[:, :, None] * d + f[None, None, :]
        value = tl.load(features, mask=column[None, :, :], other=0.0).to(kind)
        weight = tl.load(weights + row) if WEIGHTED else sign
        busy = tl.max((cluster != current[:, None]).to(tl.int32))
        if LIGHT and LIMBS > 1:
            small = (tl.abs(value) < least) & (value != 0.0)
            busy |= tl.max(small.to(tl.int32))
        if busy == 0:
            x = value * sign.to(kind)[:, :, None]
            if LIGHT:
                own = add_first_limbs(own, x, shifts, LIMBS)
            else:
                terms = add_products(
                    zeros((LANES, PREFETCH_DEPTH, COLUMNS), LIMBS), x, weight[:, :, None],
                    scale, quantum, shifts, bits, skip, LIMBS, SKIPS, WEIGHTED, RECOVER,
                )  # fmt: skip
                own = with_totals(own, terms, LIMBS)
            if WEIGHTED:
                terms = add_products(
                    zeros((LANES, PREFETCH_DEPTH), LIMBS), sign.to(tl.float64), weight,
                    weight_scale, weight_quantum, weight_shifts, bits, skip,
                    LIMBS, SKIPS, WEIGHTED, RECOVER,
                )  # fmt: skip
                own_weight = with_totals(own_weight, terms, LIMBS)
            else:
                ones += tl.sum(sign, 1)
            added += PREFETCH_DEPTH * TERMS
        else:
            for further in range(PREFETCH_DEPTH):
                its_sign, its_row, its_cluster = update_at(
                    updates, begin + (offset + further), count
                )  # fmt: skip
                its_x = tl.load(X + its_row[:, None] * d + f[None, :], mask=column, other=0.0)
                factor = tl.load(weights + its_row) if WEIGHTED else its_sign
                leaves = its_cluster != current
                if tl.max(leaves.to(tl.int32), 0) > 0:
                    at = sums + current.to(tl.int64) * m
                    own = flush(
                        own, added[:, None], shifts, at[:, None] + f[None, :], limb_size,
                        n_limbs - skip, leaves[:, None] & column, LIMBS,
                    )  # fmt: skip
                    own_weight, ones = flush_weights(
                        own_weight, ones, added, weight_shifts, at + d, limb_size, n_limbs - skip,
                        leaves & first_block, bits, skip, LIMBS, WEIGHTED,
                    )  # fmt: skip
                    added = tl.where(leaves, 0, added)
                    current = its_cluster
                own = add_products(
                    own, its_x.to(kind) * its_sign.to(kind)[:, None], factor[:, None],
                    scale, quantum, shifts, bits, skip, LIMBS, SKIPS, WEIGHTED, RECOVER,
                )  # fmt: skip
                if WEIGHTED:
                    own_weight = add_products(
                        own_weight, its_sign.to(tl.float64), factor,
                        weight_scale, weight_quantum, weight_shifts, bits, skip,
                        LIMBS, SKIPS, WEIGHTED, RECOVER,
                    )  # fmt: skip
                else:
                    ones += its_sign
                added += TERMS
    # Usually all lanes end at the same cluster: past the end of the list are updates times 0.  Then
    # the first lane adds the sums of all.
    if LANES > 1 and tl.min(current, 0) == tl.max(current, 0):
        first_lane = tl.arange(0, LANES) == 0
        own = in_first(own, first_lane[:, None], LIMBS)
        if WEIGHTED:
            own_weight = in_first(own_weight, first_lane, LIMBS)
        else:
            ones = tl.where(first_lane, tl.sum(ones, 0), 0)
        added = tl.where(first_lane, tl.sum(added, 0), 0)
    at = sums + current.to(tl.int64) * m
    there = begin < count
    flush(
        own, added[:, None], shifts, at[:, None] + f[None, :], limb_size, n_limbs - skip,
        there[:, None] & column, LIMBS,
    )  # fmt: skip
    flush_weights(
        own_weight, ones, added, weight_shifts, at + d, limb_size, n_limbs - skip,
        there & first_block, bits, skip, LIMBS, WEIGHTED,
    )  # fmt: skip


def queue_sorted_sums(
    X: torch.Tensor,
    fixed_point_grid: FixedPointGrid,
    updates: SortedUpdates,
    run_state: torch.Tensor,
    sums: torch.Tensor,
) -> None:
    """Queue the addition of sorted updates to the sums.

    Parameters
    ----------
    X : tensor of shape (n, d), or (batch_size, n, d) for a batch, IN
    fixed_point_grid : FixedPointGrid
    updates : SortedUpdates
    run_state : int32 tensor, IN
    sums : int64 tensor of shape (batch_size, n_limbs, k, d + 1), IN and OUT
    """
    batch_size, n_limbs, k, m = sums.shape
    limbs = min(n_limbs, LIMBS_PER_PASS)
    light = fixed_point_grid.weights is None and X.dtype != torch.float64 and limbs <= 2
    most = LIGHT_COLUMNS if light else HEAVY_COLUMNS
    columns = min(most, next_power(m - 1))
    programs = programs_each(RESIDENT * processors(X.device), batch_size)
    for skip in range(0, n_limbs, limbs):
        launch(
            add_kernel, (programs, ceil_div(m - 1, columns), batch_size),
            X, updates.n, m - 1, fixed_point_grid.weights, fixed_point_grid.columns, updates.sorted,
            updates.totals, run_state, sums, fixed_point_grid.grid.bits, n_limbs, skip, k * m,
            LIMBS=limbs, SKIPS=skip > 0, WEIGHTED=fixed_point_grid.weights is not None,
            RECOVER=fixed_point_grid.grid.recover, LANES=most // columns, COLUMNS=columns,
            num_warps=1, maxnreg=REGISTERS, **EXACT,
        )  # fmt: skip
