"""The counts of the blocks of a pass, added up on the device."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.device_functions.run_state import N_CHANGED, N_NINE, N_RECHECKED, SIZE
from lloydia.backends.cuda.runtime.launching import launch

__all__ = ["COUNTED", "queue_tally"]

# Counters from N_CHANGED to N_RECHECKED.
COUNTED = N_RECHECKED.value - N_CHANGED.value + 1


@triton.jit
def tally_kernel(run_state, counts, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    value = tl.load(run_state + at)
    counted = (at >= N_CHANGED) & (at <= N_RECHECKED)
    so_far = tl.load(counts + at - N_CHANGED, mask=counted, other=0)
    tl.store(counts + at - N_CHANGED, so_far + value, mask=counted)
    begins = (at >= N_CHANGED) & (at <= N_NINE)
    tl.store(run_state + at, tl.zeros((SIZE,), tl.int32), mask=begins)


def queue_tally(run_state: torch.Tensor, counts: torch.Tensor) -> None:
    """Queue the addition of a block's counts, which are then reset to 0.

    Parameters
    ----------
    run_state : int32 tensor, IN and OUT
    counts : int64 tensor of shape (COUNTED,), IN and OUT
        From N_CHANGED to N_RECHECKED.
    """
    launch(tally_kernel, (1,), run_state, counts, SIZE=SIZE, num_warps=1)
