"""What a part tells the others of an iteration, and what it hears of them: sums and counts.

A message is a tensor of int64: the sums of the clusters, whatever replicas the part keeps added,
and then how many of its rows changed and how many were checked again.  Messages add up.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.device_functions.run_state import N_CHANGED, N_RECHECKED, STOPPED
from lloydia.backends.cuda.runtime.launching import ceil_div, launch

__all__ = ["COUNTS", "queue_hear", "queue_tell"]

# What follows the sums in a message.
COUNTS = 2

BLOCK = tl.constexpr(1024)


@triton.jit(do_not_specialize=["size", "replicas"])
def tell_kernel(sums, size, replicas, run_state, message):
    if tl.load(run_state + STOPPED) != 0:
        return
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < size
    total = tl.zeros([BLOCK], tl.int64)
    for _ in range(replicas):
        total += tl.load(sums + at, mask=inside, other=0)
        sums += size
    tl.store(message + at, total, mask=inside)
    if tl.program_id(0) == 0:
        tl.store(message + size, tl.load(run_state + N_CHANGED).to(tl.int64))
        tl.store(message + size + 1, tl.load(run_state + N_RECHECKED).to(tl.int64))


@triton.jit(do_not_specialize=["size"])
def hear_kernel(message, size, run_state):
    if tl.load(run_state + STOPPED) != 0:
        return
    tl.store(run_state + N_CHANGED, tl.load(message + size).to(tl.int32))
    tl.store(run_state + N_RECHECKED, tl.load(message + size + 1).to(tl.int32))


def queue_tell(sums: torch.Tensor, run_state: torch.Tensor, message: torch.Tensor) -> None:
    """Queue the writing of a message.

    Parameters
    ----------
    sums : int64 tensor of shape (n_replicas, n_limbs, k, d + 1)
    run_state : int32 tensor
        Of this iteration; where it has stopped, the last message stays.
    message : int64 tensor of shape (n_limbs k (d + 1) + COUNTS,)
    """
    size = len(message) - COUNTS
    launch(tell_kernel, (ceil_div(size, BLOCK.value),), sums, size, len(sums), run_state, message)


def queue_hear(message: torch.Tensor, run_state: torch.Tensor) -> None:
    """Queue that this iteration's counts become those of a message, the sum of all."""
    launch(hear_kernel, (1,), message, len(message) - COUNTS, run_state)
