"""Repeated block reductions as D takes them from Harris (2007, "Optimizing parallel reduction").

A launch gives every block two numbers for each of its threads at a time, and as many times as the
row has them; the block adds the threads' sums in shared memory and writes one number.  The blocks'
numbers are reduced in the same way until one block is left.  The levels of the sum in shared memory
are written out, and those that a block size does not need are not compiled: what C++ does with a
template is here a function that makes the kernels for a block size.

D lets the lanes of the last warp add in shared memory without a barrier.  Lanes no longer run in
step since Volta, so that is a race; here a barrier of the warp stands between reading and writing.
D also reduces a level into the array that it reads, where a block may overwrite what another has
not read; here every level has an array of its own.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from lloydia.ladder.device import LARGE_BLOCKS, cuda

__all__ = ["Reduction", "fits"]

COUNT = np.dtype(np.int32)


def fits(clusters: int, d: int, n: int, dtype: np.dtype) -> None:
    """Refuse a copy of the points for each of some clusters that the GPU has no room for.

    Raises
    ------
    MemoryError
    """
    needed = clusters * n * (d * dtype.itemsize + COUNT.itemsize)
    free = cuda.current_context().get_memory_info().free
    if needed > free:
        raise MemoryError(
            f"A copy of {n} points for each of {clusters} clusters takes {needed / 2**30:.1f} GiB "
            f"and the GPU has {free / 2**30:.1f} GiB free: take a rung that does not store them."
        )


class Reduction:
    """The points as the clusters have them, and their sums.

    Parameters
    ----------
    clusters, d, n : int
    dtype : numpy.dtype
    block : int

    Attributes
    ----------
    values : device array of shape (clusters, d, n)
        A cluster's points, and zeros where a point belongs to another.
    members : device array of shape (clusters, n), int32
        1 where the point belongs to the cluster, else 0.
    sums, counts : device arrays of shapes (clusters, d, 1) and (clusters, 1)
        What :meth:`add` leaves.
    """

    def __init__(self, clusters: int, d: int, n: int, dtype: np.dtype, block: int) -> None:
        fits(clusters, d, n, dtype)
        self.block, widths = block, [n]
        while len(widths) == 1 or widths[-1] > block:
            widths.append(max(1, widths[-1] // block))
        widths.append(1)
        self._levels = [
            (cuda.device_array((clusters, d, m), dtype), cuda.device_array((clusters, m), COUNT))
            for m in widths
        ]
        self.values, self.members = self._levels[0]
        self.sums, self.counts = self._levels[-1]

    def add(self) -> None:
        """Launch the kernel of each level, and wait for it, as D does."""
        for (values, members), (sums, counts) in pairwise(self._levels):
            reducer(self.block)[counts.shape[1], self.block](values, members, sums, counts)
            cuda.synchronize()


@cache
def reducer(block: int) -> Any:
    """Return the kernel that reduces one level, compiled for a block size."""
    size = max(block, 64)
    options = LARGE_BLOCKS if block == 1024 else {}

    @cuda.jit(device=True)
    def block_sum(part, own):
        """Return the sum over the block, right in thread 0."""
        t = cuda.threadIdx.x
        part[t] = own
        if block < 64:
            part[t + 32] = 0  # Lanes whose sums nothing needs add these.
        cuda.syncthreads()
        if block >= 1024:
            if t < 512:
                part[t] += part[t + 512]
            cuda.syncthreads()
        if block >= 512:
            if t < 256:
                part[t] += part[t + 256]
            cuda.syncthreads()
        if block >= 256:
            if t < 128:
                part[t] += part[t + 128]
            cuda.syncthreads()
        if block >= 128:
            if t < 64:
                part[t] += part[t + 64]
            cuda.syncthreads()
        if t < 32:
            if block >= 64:
                warp_step(part, t, 32)
            warp_step(part, t, 16)
            warp_step(part, t, 8)
            warp_step(part, t, 4)
            warp_step(part, t, 2)
            warp_step(part, t, 1)
        total = part[0]
        cuda.syncthreads()  # No thread writes the next sum before thread 0 has read this one.
        return total

    @cuda.jit(**options)
    def reduce(values, members, sums, counts):
        """Add up what this block has of every row, cluster after cluster."""
        part = cuda.shared.array(size, values.dtype)
        whole = cuda.shared.array(size, np.int32)
        b, n = cuda.blockIdx.x, members.shape[1]
        begin = b * 2 * block + cuda.threadIdx.x
        step = 2 * block * cuda.gridDim.x
        for j in range(members.shape[0]):
            for f in range(values.shape[1]):
                own = values.dtype.type(0)
                for i in range(begin, n, step):
                    own += values[j, f, i]
                    if i + block < n:
                        own += values[j, f, i + block]
                own = block_sum(part, own)
                if cuda.threadIdx.x == 0:
                    sums[j, f, b] = own
            count = 0
            for i in range(begin, n, step):
                count += members[j, i]
                if i + block < n:
                    count += members[j, i + block]
            count = block_sum(whole, np.int32(count))
            if cuda.threadIdx.x == 0:
                counts[j, b] = count

    return reduce


@cuda.jit(device=True)
def warp_step(part, t, distance):
    """Add to a lane's number that of the lane `distance` further on."""
    own = part[t] + part[t + distance]
    cuda.syncwarp()
    part[t] = own
    cuda.syncwarp()
