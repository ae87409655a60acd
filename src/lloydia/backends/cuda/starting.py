"""The centres that runs begin with, where they are on the device: nobody waits to look at them."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.launching import ceil_div
from lloydia.backends.cuda.recording import launch

__all__ = ["queue_start"]

BLOCK = tl.constexpr(1024)
# The bits of infinity in float32.
INFINITY = tl.constexpr(0x7F800000)


@triton.jit(do_not_specialize=["size", "d"])
def start_kernel(start, current, before, bounds, size, d):
    member = tl.program_id(2).to(tl.int64)
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < size
    place = member * size + at
    x = tl.load(start + place, mask=inside, other=0.0)
    finite = tl.abs(x) < float("inf")
    # Kernels want numbers, also where the run is going to be refused.
    x = tl.where(finite, x, 0.0)
    tl.store(current + place, x, mask=inside)
    tl.store(before + place, x, mask=inside)
    if tl.min(finite.to(tl.int32), 0) == 0:
        tl.atomic_max(bounds + member * 3 * d, tl.full((), INFINITY, tl.int64), sem="relaxed")


def queue_start(
    start: torch.Tensor, current: torch.Tensor, before: torch.Tensor, bounds: torch.Tensor
) -> None:
    """Queue a copy of starts, and that rows have no bound where theirs is not finite.

    Parameters
    ----------
    start : float32 tensor of shape (k, d), or (members, k, d) for a batch
    current, before : float32 tensors
        Begin with room for it; 0 where the start is not finite.
    bounds : int64 tensor of shape (members, 3, d)
        Of float32 or half-precision rows: see :func:`lloydia.backends.cuda.extent.new_bounds`.
    """
    k, d = start.shape[-2:]
    launch(
        start_kernel, (ceil_div(k * d, BLOCK.value), 1, len(bounds)),
        start, current, before, bounds, k * d, d,
    )  # fmt: skip
