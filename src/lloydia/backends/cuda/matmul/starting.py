"""The start of a run: its centres, which the host need not have read."""

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.runtime.launching import ceil_div, launch

__all__ = ["Start", "queue_start"]

BLOCK = tl.constexpr(1024)
# The bits of infinity in float32, and in float64.
INFINITY, INFINITY_DOUBLE = tl.constexpr(0x7F800000), tl.constexpr(0x7FF0000000000000)


class Start(NamedTuple):
    """The start of a run, on the device.

    Attributes
    ----------
    centers : torch.Tensor of shape (k, d)
    bounds : torch.Tensor, or None
        The bounds of the rows, for centres that the host has not checked.
    """

    centers: torch.Tensor
    bounds: torch.Tensor | None


@triton.jit(do_not_specialize=["size", "d", "n", "n_zeros", "most"])
def start_kernel(start, current, before, bounds, size, d, most, labels, n, zeros, n_zeros):
    """Copy starts; the parameters are those of :func:`queue_start`, with ``size = k d``."""
    batch_item = tl.program_id(2).to(tl.int64)
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < size
    place = batch_item * size + at
    x = tl.load(start + place, mask=inside, other=0.0)
    if bounds is not None:
        infinite: tl.constexpr = INFINITY_DOUBLE if x.dtype == tl.float64 else INFINITY
        ordinary = tl.abs(x.to(tl.float64)).to(tl.int64, bitcast=True) < most
        # Kernels need finite numbers, even if the run is refused later.
        x = tl.where(ordinary, x, 0.0)
        if tl.min(ordinary.to(tl.int32), 0) == 0:
            tl.atomic_max(
                bounds + batch_item * 2 * d, tl.full((), infinite, tl.int64), sem="relaxed"
            )
    tl.store(current + place, x, mask=inside)
    tl.store(before + place, x, mask=inside)
    if labels is not None:
        tl.store(labels + at, tl.full((BLOCK,), -1, tl.int32), mask=at < n)
        tl.store(zeros + at, tl.zeros((BLOCK,), tl.int64), mask=at < n_zeros)


def queue_start(
    start: torch.Tensor,
    current: torch.Tensor,
    before: torch.Tensor,
    bounds: torch.Tensor | None,
    labels: torch.Tensor | None = None,
    zeros: torch.Tensor | None = None,
    most: int = INFINITY_DOUBLE.value,
) -> None:
    """Queue a copy of starts; a start that is not finite, or too large, makes bounds infinite.

    Parameters
    ----------
    start : tensor of shape (k, d), or (batch_size, k, d) for a batch
    current, before : tensors
        The copies: 0 where the start is not finite.  They may be the start itself.
    bounds : int64 tensor of shape (batch_size, 2, d), or None
        See :func:`lloydia.backends.cuda.rows.magnitudes.new_bounds`.  None where starts are known
        to be ordinary.
    labels, zeros : int32 tensor of shape (n,), int64 tensor of shape (m,), optional
        For a single data set: they become -1 and 0.
    most : int
        The bits of the float64 number that bounds all starts from above.
    """
    k, d = start.shape[-2:]
    n, n_zeros = (0 if x is None else len(x) for x in (labels, zeros))
    launch(
        start_kernel, (ceil_div(max(k * d, n, n_zeros), BLOCK.value), 1, start.numel() // (k * d)),
        start, current, before, bounds, k * d, d, most, labels, n, zeros, n_zeros,
    )  # fmt: skip
