"""Copies rows from the host to a GPU, through pinned buffers.

The driver copies at full speed only from pinned (page-locked) memory, and only then without
blocking the host.  Two pinned buffers alternate: while one is copied, the host fills the other,
with torch's threads, since a single thread writes slower than the bus transfers.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray

__all__ = ["pinned_view", "put", "to_device"]

PIECE = 1 << 26  # bytes of a pinned buffer
DIRECT = 1 << 20  # bytes up to which pinning costs more than it gains
FIRST = 1 << 16  # bytes that the driver takes without blocking


class PinnedView:
    """An array's memory, declared writable for torch, which only reads it."""

    def __init__(self, array: NDArray) -> None:
        self.array = array
        self.__array_interface__ = array.__array_interface__ | {"data": (array.ctypes.data, False)}


def pinned_view(array: NDArray) -> torch.Tensor:
    """Return a tensor that shares an array's memory for reading, or a copy if torch cannot use it.

    torch needs native byte order, alignment, and no negative strides.
    """
    flags = array.flags
    suits = array.dtype.isnative and flags.aligned
    if suits and flags.writeable and flags.c_contiguous:
        return torch.from_numpy(array)
    if not suits or any(pitch < 0 or pitch % array.itemsize for pitch in array.strides):
        array = np.array(array, dtype=array.dtype.newbyteorder("="), order="C")
    return torch.from_numpy(np.asarray(PinnedView(array)))


def put(array: NDArray, out: torch.Tensor) -> None:
    """Queue a copy of some numbers to a tensor, without waiting for earlier work.

    The driver reads the first bytes of unpinned memory at once, and the others when the copy runs.
    """
    there = pinned_view(array)
    if array.nbytes > FIRST:
        pinned = torch.empty(out.shape, dtype=out.dtype, pin_memory=out.is_cuda, device="cpu")
        there = pinned.copy_(there)
    out.copy_(there, non_blocking=True)


def to_device(array: NDArray, device: torch.device) -> torch.Tensor:
    """Copy an array of any strides, in the type it has: the tensor is row-major.

    Parameters
    ----------
    array : ndarray of shape (n, ...), of a type that torch has
    device : torch.device

    Returns
    -------
    torch.Tensor
        Valid for work that is queued on the current stream.
    """
    dtype = getattr(torch, array.dtype.name)
    if device.type == "cpu" or array.nbytes <= DIRECT:
        return (
            torch.empty(array.shape, dtype=dtype, device="cpu").copy_(pinned_view(array)).to(device)
        )
    out = torch.empty(array.shape, dtype=dtype, device=device)
    rows = max(1, PIECE * len(array) // array.nbytes)
    buffers = [
        torch.empty((rows, *array.shape[1:]), dtype=dtype, pin_memory=True, device="cpu")
        for _ in "ab"
    ]
    sent = [torch.cuda.Event() for _ in buffers]
    edges = [*range(0, len(array), rows), len(array)]
    for i, (start, stop) in enumerate(pairwise(edges)):
        buffer, event = buffers[i % 2][: stop - start], sent[i % 2]
        event.synchronize()  # returns at once where nothing was recorded
        buffer.copy_(pinned_view(array[start:stop]))
        out[start:stop].copy_(buffer, non_blocking=True)
        event.record(torch.cuda.current_stream(device))
    # torch does not reuse the memory of the buffers before the copies have read it.
    return out
