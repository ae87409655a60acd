"""The centres that moved most in an iteration, and a bound of how far the others moved.

Usually a few centres move much farther than all others and would make every row's lower bound
loose: so rows are scored for these few.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.device_functions.iteration_report import HEAD
from lloydia.backends.cuda.device_functions.run_state import (
    ITERATION,
    STOPPED,
    item_state,
    wait_for_previous_kernel,
)
from lloydia.backends.cuda.dispatch import MAX_PRUNED_CENTERS
from lloydia.backends.cuda.matmul.pruning.bounds import moved
from lloydia.backends.cuda.runtime.launching import EXACT, launch

__all__ = ["N_LARGEST", "queue_largest_moves"]

# The most centres that are listed: a multiple of what matrix units take.
N_LARGEST = 64


@triton.jit(do_not_specialize=["k", "d", "n_slots"])
def largest_moves_kernel(
    report, n_slots, k, d, numbers, movements, largest, run_state, ALL: tl.constexpr,
    COUNT: tl.constexpr
):  # fmt: skip
    """Write each centre's move, and the numbers of the centres that moved most, then -1.

    ``movements[k]`` becomes the largest move of the other centres.  ALL is at least k, and the same
    for any k, so that one kernel is compiled.
    """
    wait_for_previous_kernel()
    run_state = item_state(run_state)
    if tl.load(run_state + STOPPED) != 0:
        return
    slot_report = report + (tl.load(run_state + ITERATION) % n_slots).to(tl.int64) * (HEAD + k)
    j = tl.arange(0, ALL)
    square = tl.load(slot_report + HEAD + j, mask=j < k, other=0).to(tl.float64, bitcast=True)
    move = moved(square, tl.load(numbers), d)
    # Bits of non-negative floats are ordered as the floats; those of NaN are above all.
    bits = tl.where(j < k, move.to(tl.int32, bitcast=True), 0)
    # The largest number that at least COUNT moves reach, bit by bit.
    least = tl.zeros((), tl.int32)
    for i in range(31):
        more = least | (1 << (30 - i))
        least = tl.where(tl.sum((bits >= more).to(tl.int32), 0) >= COUNT, more, least)
    # These are fewer than COUNT.
    chosen = bits > least
    place = tl.cumsum(chosen.to(tl.int32), 0) - 1
    slot = tl.arange(0, COUNT)
    tl.store(largest + slot, tl.full((COUNT,), -1, tl.int32))
    # Other threads have stored there.
    tl.debug_barrier()
    tl.store(largest + place, j, mask=chosen)
    tl.store(movements + j, move, mask=j < k)
    tl.store(movements + k, tl.max(tl.where(chosen, 0.0, move), 0))


def queue_largest_moves(
    report: torch.Tensor, d: int, numbers: torch.Tensor, movements: torch.Tensor,
    largest: torch.Tensor, run_state: torch.Tensor,
) -> None:  # fmt: skip
    """Queue it for the iteration that was completed last.

    Parameters
    ----------
    report : int64 tensor of shape (n_slots, HEAD + k)
        k is at most :data:`dispatch.MAX_PRUNED_CENTERS`.
    d : int
    numbers : float64 tensor
        Of :class:`~lloydia.backends.cuda.rows.fp16_rows.Fp16Rows`.
    movements : float32 tensor of shape (k + 1,)
    largest : int32 tensor of shape (N_LARGEST,)
    run_state : int32 tensor
    """
    n_slots, k = report.shape[0], report.shape[1] - HEAD.value
    launch(
        largest_moves_kernel, (1, 1, 1), report, n_slots, k, d, numbers, movements, largest,
        run_state, ALL=MAX_PRUNED_CENTERS, COUNT=N_LARGEST, num_warps=32, **EXACT,
    )  # fmt: skip
