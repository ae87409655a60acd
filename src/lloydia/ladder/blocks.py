"""Sums block by block in shared memory, as T adds up flags and clusters there.

The threads of a block put their numbers into shared memory and fold them in the middle, a level
after the other, with a barrier of the block between; one number a block is written.  The blocks'
numbers are added in the same way until there is one block: after the first launch a row of n
numbers has n / block left, and two more do for a million, where a tree in global memory takes
twenty launches and writes every level.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lloydia.ladder.device import Placed, ceil_div, cuda
from lloydia.ladder.trees import MOST_ROWS, divide

__all__ = ["BlockSums", "Rows", "block_sum"]


@cuda.jit(device=True)
def block_sum(part, number):
    """Return the sum over the block of every thread's number; `part` is shared, one a thread."""
    t, m = cuda.threadIdx.x, cuda.blockDim.x
    part[t] = number
    cuda.syncthreads()
    while m > 1:
        if t < m // 2:
            part[t] += part[m - 1 - t]
        m //= 2
        cuda.syncthreads()
    total = part[0]
    cuda.syncthreads()  # All have read it before anyone writes the next.
    return total


class Rows:
    """Rows of partial sums, one number a block, and what adds them up.

    Parameters
    ----------
    height, width : int
        Rows, and numbers in each at first.
    dtype : numpy.dtype
    block : int

    Attributes
    ----------
    first : device array of shape (height, width)
        Where partial sums are written.
    sums : device array of shape (height, ...)
        Column 0 holds the sums, once :meth:`add` was queued.
    """

    def __init__(self, height: int, width: int, dtype: Any, block: int) -> None:
        self.block = block
        self.levels = [cuda.device_array((height, width), dtype)]
        while width > 1:
            width = ceil_div(width, block)
            self.levels.append(cuda.device_array((height, width), dtype))
        self.first, self.sums = self.levels[0], self.levels[-1]

    def add(self) -> None:
        """Queue one launch a level."""
        shared = self.block * self.first.dtype.itemsize
        for numbers, sums in zip(self.levels, self.levels[1:]):
            height, width = sums.shape
            _add[(width, min(height, MOST_ROWS)), self.block, 0, shared](numbers, sums)


class BlockSums:
    """The means of all clusters, and the number of flags.

    Parameters
    ----------
    on : Placed

    Attributes
    ----------
    flags : device array of shape (n,), bool
    """

    def __init__(self, on: Placed) -> None:
        (n, d), k = on.X.shape, len(on.centers)
        self.on = on
        self.flags = cuda.device_array(n, np.bool_)
        self.sums = Rows(k * d, on.blocks, on.X.dtype, on.block)
        # A row for each cluster, and one for the flags.
        self.counts = Rows(k + 1, on.blocks, np.int32, on.block)
        self._n_flags = self.counts.sums[k, :1]

    def means(self) -> None:
        """Queue what makes the centres means, those of empty clusters stay, and counts flags."""
        on, k = self.on, len(self.on.centers)
        shared = on.block * on.X.dtype.itemsize
        _begin[(on.blocks, min(k + 1, MOST_ROWS)), on.block, 0, shared](
            on.X, on.labels, self.flags, self.sums.first, self.counts.first
        )
        self.sums.add()
        self.counts.add()
        divide[ceil_div(k, on.block), on.block](self.sums.sums, self.counts.sums, 0, k, on.centers)

    def n_flags(self) -> int:
        """Return how many flags there were when the means were queued."""
        return int(self._n_flags.copy_to_host()[0])


@cuda.jit
def _begin(X, labels, flags, sums, counts):
    """Add up the members of each cluster in this block of points, and the flags."""
    part = cuda.shared.array(0, X.dtype)
    i, b, d = cuda.grid(1), cuda.blockIdx.x, X.shape[1]
    k = counts.shape[0] - 1
    for j in range(cuda.blockIdx.y, k + 1, cuda.gridDim.y):
        member = i < X.shape[0] and (flags[i] if j == k else labels[i] == j)
        count = cuda.syncthreads_count(np.int32(member))
        if cuda.threadIdx.x == 0:
            counts[j, b] = count
        for f in range(d if j < k else 0):
            total = X.dtype.type(0)
            if count > 0:
                total = block_sum(part, X[i, f] if member else total)
            if cuda.threadIdx.x == 0:
                sums[j * d + f, b] = total


@cuda.jit
def _add(numbers, sums):
    """Add up what this block has of each row."""
    part = cuda.shared.array(0, numbers.dtype)
    i = cuda.grid(1)
    for r in range(cuda.blockIdx.y, numbers.shape[0], cuda.gridDim.y):
        inside = i < numbers.shape[1]
        total = block_sum(part, numbers[r, i] if inside else numbers.dtype.type(0))
        if cuda.threadIdx.x == 0:
            sums[r, cuda.blockIdx.x] = total
