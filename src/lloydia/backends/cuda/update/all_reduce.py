"""The message of an iteration by which several devices add up their sums and counts.

A message is an int64 tensor: the sums of the clusters (replicas added), then how many rows changed
and how many were rechecked.  Messages of several devices are added elementwise.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.device_functions.run_state import N_CHANGED, N_RECHECKED, STOPPED
from lloydia.backends.cuda.runtime.launching import ceil_div, launch

__all__ = ["COUNTS", "queue_read_message", "queue_write_message"]

# The number of counts that follow the sums in a message.
COUNTS = 2

BLOCK = tl.constexpr(1024)


@triton.jit(do_not_specialize=["size", "replicas"])
def write_message_kernel(sums, size, replicas, run_state, message):
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
def read_message_kernel(message, size, run_state):
    if tl.load(run_state + STOPPED) != 0:
        return
    tl.store(run_state + N_CHANGED, tl.load(message + size).to(tl.int32))
    tl.store(run_state + N_RECHECKED, tl.load(message + size + 1).to(tl.int32))


def queue_write_message(sums: torch.Tensor, run_state: torch.Tensor, message: torch.Tensor) -> None:
    """Queue the writing of a message.

    Parameters
    ----------
    sums : int64 tensor of shape (n_replicas, n_limbs, k, d + 1), IN
    run_state : int32 tensor, IN
        A stopped run leaves the message as it was.
    message : int64 tensor of shape (n_limbs k (d + 1) + COUNTS,), OUT
    """
    size = len(message) - COUNTS
    launch(
        write_message_kernel,
        (ceil_div(size, BLOCK.value),),
        sums,
        size,
        len(sums),
        run_state,
        message,
    )


def queue_read_message(message: torch.Tensor, run_state: torch.Tensor) -> None:
    """Queue that the run state takes its counts from a message, the sum of all messages."""
    launch(read_message_kernel, (1,), message, len(message) - COUNTS, run_state)
