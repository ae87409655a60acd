"""Rows from the host to a GPU, in pieces.

The driver copies at full speed only from pinned (page-locked) memory, and only then without the
host waiting.  Two pinned buffers take turns: while one is on its way the host fills the other, with
several threads, since one alone writes slower than the bus carries.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray

__all__ = ["THREADS", "fill", "to_device"]

PIECE = 1 << 26  # bytes of a pinned buffer
DIRECT = 1 << 20  # bytes up to which pinning costs more than it gains
THREADS = 8


def to_device(array: NDArray, device: torch.device) -> torch.Tensor:
    """Copy an array of any strides, in the type it has: the tensor is row-major.

    Parameters
    ----------
    array : ndarray of shape (n, ...), of a type that torch has
    device : torch.device

    Returns
    -------
    torch.Tensor
        Ready for whatever is queued on the current stream.
    """
    dtype = getattr(torch, array.dtype.name)
    if device.type == "cpu" or array.nbytes <= DIRECT:
        host = torch.empty(array.shape, dtype=dtype)
        np.copyto(host.numpy(), array)
        return host.to(device)
    out = torch.empty(array.shape, dtype=dtype, device=device)
    rows = max(1, PIECE * len(array) // array.nbytes)
    buffers = [torch.empty((rows, *array.shape[1:]), dtype=dtype, pin_memory=True) for _ in "ab"]
    sent = [torch.cuda.Event() for _ in buffers]
    edges = [*range(0, len(array), rows), len(array)]
    with ThreadPoolExecutor(min(THREADS, os.cpu_count() or 1)) as threads:
        for i, (start, stop) in enumerate(pairwise(edges)):
            buffer, event = buffers[i % 2], sent[i % 2]
            event.synchronize()  # returns at once where nothing was recorded
            fill(buffer.numpy(), array[start:stop], threads)
            out[start:stop].copy_(buffer[: stop - start], non_blocking=True)
            event.record(torch.cuda.current_stream(device))
    return out  # the buffers' memory is not used again before it was read: torch sees to that


def fill(buffer: NDArray, piece: NDArray, threads: ThreadPoolExecutor) -> None:
    """Copy rows into a buffer of as many, each thread some of them."""

    def some(start: int, stop: int) -> None:
        np.copyto(buffer[start:stop], piece[start:stop])

    edges = np.linspace(0, len(piece), THREADS + 1).astype(int).tolist()
    jobs = [threads.submit(some, start, stop) for start, stop in pairwise(edges) if start < stop]
    for job in jobs:
        job.result()
