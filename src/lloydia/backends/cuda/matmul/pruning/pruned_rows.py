"""Prune rows: those keep their labels by their bounds; *active* rows are scored for all centres.

A row's bounds refer to the centres before the last update.  The scores of the centres that moved
most are computed anew; all other distances are smaller by at most the largest move of the other
centres.  Active rows get new bounds with their labels, in the same iteration
(:mod:`active_rows`).
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.device_functions.fp16_scores import CHUNK, error_of_sums
from lloydia.backends.cuda.device_functions.run_state import (
    N_ACTIVE,
    N_PRUNED,
    STOPPED,
    item_state,
    wait_for_previous_kernel,
)
from lloydia.backends.cuda.matmul.fp16_centers import Fp16Centers
from lloydia.backends.cuda.matmul.pruning.bounds import (
    below,
    keeps,
    lower_bound_shrunk,
    shortfall,
    upper_bound_grown,
)
from lloydia.backends.cuda.matmul.pruning.largest_moves import N_LARGEST
from lloydia.backends.cuda.matmul.row_lists import append
from lloydia.backends.cuda.rows.fp16_rows import SCORE_SHIFT, Fp16Rows
from lloydia.backends.cuda.runtime.launching import ceil_div, launch, processors

__all__ = ["queue_prune"]

# The most features of a row that are loaded at once; of wider rows CHUNK features are.
FEATURES_AT_ONCE = 128
# Rows of a program, its warps, and programs on a multiprocessor; blocks of rows, or chunks, that
# are prefetched.
ROWS, WARPS, PROGRAMS = 128, 8, 2
STAGES, CHUNK_STAGES = 3, 4


@triton.jit
def bring_up_to_date(
    rows, mask, scores, column, norm_ptr, residual_ptr, shift, typical_norm, typical_residual,
    summed, short, labels, movements, other_move, upper_ptr, lower_ptr, active_rows, run_state,
):  # fmt: skip
    """Update the bounds of a block of rows, list active rows, and return how many are pruned.

    `scores` are those of the centres in `column`; infinity where `column` is -1.
    """
    label = tl.load(labels + rows, mask=mask, other=0)
    # A row's own centre may be among them.
    score = tl.min(tl.where(column[None, :] == label[:, None], float("inf"), scores), 1)
    norm = tl.load(norm_ptr + rows, mask=mask, other=0.0)
    residual = tl.load(residual_ptr + rows, mask=mask, other=0.0)
    upper = upper_bound_grown(
        tl.load(upper_ptr + rows, mask=mask, other=0.0), tl.load(movements + label)
    )
    lower = lower_bound_shrunk(tl.load(lower_ptr + rows, mask=mask, other=0.0), other_move)
    some = score < float("inf")
    score = tl.where(some, score, 0.0)
    near = below(score, norm, short, residual, shift, typical_norm, typical_residual, summed)
    lower = tl.where(some, tl.minimum(lower, near), lower)
    pruned = mask & keeps(upper, lower)
    # Rows are fewer than threads, so several warps hold the same row.  The sum in `append` goes
    # over all warps: so all have loaded the bounds before one stores them below.  A barrier here
    # would do the same, but would keep Triton from pipelining the loads of the surrounding loop.
    append(rows, mask & ~pruned, active_rows, run_state + N_ACTIVE)
    tl.store(upper_ptr + rows, upper, mask=pruned)
    tl.store(lower_ptr + rows, lower, mask=pruned)
    return tl.sum(pruned.to(tl.int32), 0)


@triton.jit(do_not_specialize=["n", "k"])
def prune_kernel(
    y_ptr, n, width, high_ptr, half_norm_f32_ptr, k, numbers, norm_ptr, residual_ptr, typical,
    summed, short, labels, movements, largest, bounds, active_rows, run_state,
    WIDE: tl.constexpr, CHUNK: tl.constexpr, ROWS: tl.constexpr, COUNT: tl.constexpr,
    STAGES: tl.constexpr,
):  # fmt: skip
    """Update the bounds of all rows; list the active rows, and count the pruned ones.

    One loop goes through all chunks of all blocks of this program; a row that is not WIDE has one.
    """
    wait_for_previous_kernel()
    run_state = item_state(run_state)
    program, n_programs = tl.program_id(0), tl.num_programs(0)
    # No early return: no branch around the loop.
    n_blocks = tl.where(tl.load(run_state + STOPPED) != 0, 0, tl.cdiv(n, ROWS))
    f = tl.arange(0, CHUNK)
    column = tl.load(largest + tl.arange(0, COUNT))
    at = tl.maximum(column, 0).to(tl.int64)
    half_norm = tl.load(half_norm_f32_ptr + at)
    half_norm = tl.where(column >= 0, half_norm, float("inf"))
    b_block = high_ptr + at[None, :] * width + f[:, None]
    b = tl.load(b_block)
    shift = tl.load(numbers + SCORE_SHIFT).to(tl.float32)
    typical_norm, typical_residual = tl.load(typical), tl.load(typical + 1)
    other_move = tl.load(movements + k)
    n_chunks = width // CHUNK if WIDE else 1
    scores = tl.zeros((ROWS, COUNT), tl.float32)
    n_pruned = tl.zeros((), tl.int32)
    steps = tl.maximum(tl.cdiv(n_blocks - program, n_programs), 0) * n_chunks
    for i in tl.range(0, steps, num_stages=STAGES):
        block = program + i // n_chunks * n_programs
        skip = i % n_chunks * CHUNK
        rows = block * ROWS + tl.arange(0, ROWS)
        mask = rows < n
        y_block = y_ptr + rows.to(tl.int64)[:, None] * width + f[None, :]
        y = tl.load(y_block + skip, mask=mask[:, None], other=0.0)
        if WIDE:
            b = tl.load(b_block + skip)
        scores = tl.dot(y, b, scores)
        if skip + CHUNK == width:
            n_pruned += bring_up_to_date(
                rows, mask, scores + half_norm[None, :], column, norm_ptr, residual_ptr,
                shift, typical_norm, typical_residual, summed, short,
                labels, movements, other_move, bounds, bounds + n, active_rows, run_state,
            )  # fmt: skip
            scores = tl.zeros((ROWS, COUNT), tl.float32)
    if n_pruned > 0:
        tl.atomic_add(run_state + N_PRUNED, n_pruned, sem="relaxed")


def queue_prune(
    fp16_rows: Fp16Rows,
    centers: Fp16Centers,
    labels: torch.Tensor,
    movements: torch.Tensor,
    largest: torch.Tensor,
    bounds: torch.Tensor,
    active_rows: torch.Tensor,
    run_state: torch.Tensor,
) -> None:
    """Queue the update of bounds and the list of active rows.

    Parameters
    ----------
    fp16_rows : Fp16Rows
        Rows so narrow that their scores are not summed in groups.
    centers : Fp16Centers
        The packed centres to which rows are assigned.
    labels : int32 tensor of shape (n,), IN
    movements, largest : tensors, IN
        See :func:`~lloydia.backends.cuda.matmul.pruning.largest_moves.queue_largest_moves`.
    bounds : float32 tensor of shape (2, n), IN and OUT
        The upper bounds, then the lower bounds; those of active rows are not changed.
    active_rows : int32 tensor of shape (n,), OUT
        As many rows as ``run_state[N_ACTIVE]`` says afterwards.
    run_state : int32 tensor, IN and OUT
    """
    width, n = fp16_rows.width, fp16_rows.rows.n_samples
    wide = width > FEATURES_AT_ONCE
    programs = min(ceil_div(n, ROWS), PROGRAMS * processors(labels.device))
    launch(
        prune_kernel, (programs, 1, 1),
        fp16_rows.high, n, width, centers.high, centers.half_norm_f32, centers.k, fp16_rows.numbers,
        fp16_rows.norm, fp16_rows.residual, centers.typical, error_of_sums(width), shortfall(width),
        labels, movements, largest, bounds, active_rows, run_state,
        WIDE=wide, CHUNK=CHUNK if wide else width, ROWS=ROWS, COUNT=N_LARGEST,
        STAGES=CHUNK_STAGES if wide else STAGES, num_warps=WARPS,
    )  # fmt: skip
