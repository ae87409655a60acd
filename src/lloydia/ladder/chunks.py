"""Assignment by chunks of centres, as T has it in shared memory.

The grid has a block for every block of points and every chunk of centres.  The threads of a block
bring one centre each into shared memory, and each finds (nearest, D, second D) of its point among
them.  A second kernel reduces the triples of a point over the chunks, in shared memory too: the
lower of two D wins, of equal ones the lower centre, and of what is left the least D is the second.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lloydia.ladder.device import Placed, ceil_div, cuda
from lloydia.ladder.staging import capacity, distance_to_staged

__all__ = ["Chunks", "merge", "mine", "two_nearest_staged"]


class Chunks:
    """Triples of every point and chunk of centres, and the shapes of the grids for them.

    Parameters
    ----------
    on : Placed

    Attributes
    ----------
    held : int
        Centres in a chunk.
    triples : device arrays of shape (chunks, n)
        The nearest centre (int32), D to it and D to the second nearest.
    lanes : int
        Threads that reduce the triples of a point: a power of two.
    scan, merge : tuple
        The launch of a thread for every point and chunk with room for a chunk, and of `lanes`
        threads a point with room for two numbers each.
    """

    def __init__(self, on: Placed) -> None:
        n, centers = len(on.labels), on.centers
        d, bytes_each = centers.shape[1], on.X.dtype.itemsize
        self.held = capacity(centers, on.block)
        chunks = ceil_div(len(centers), self.held)
        self.triples = tuple(
            cuda.device_array((chunks, n), dtype) for dtype in (np.int32, on.X.dtype, on.X.dtype)
        )
        self.lanes = min(on.block, 1 << (chunks - 1).bit_length())
        self.scan: Any = (on.blocks, chunks), on.block, 0, self.held * d * bytes_each
        groups = ceil_div(n, on.block // self.lanes)
        self.merge: Any = groups, on.block, 0, 2 * on.block * bytes_each


@cuda.jit(device=True)
def two_nearest_staged(X, i, staged, first, count):
    """Return (nearest, D, second D) of a point among the staged centres `first` and on."""
    best, least = first, distance_to_staged(X, i, staged, 0)
    second = X.dtype.type(np.inf)
    for j in range(1, count):
        D = distance_to_staged(X, i, staged, j)
        if D < least:
            best, least, second = first + j, D, least
        elif D < second:
            second = D
    return best, least, second


@cuda.jit(device=True)
def mine(lanes):
    """Return the point that this thread reduces triples of, and its place among their `lanes`."""
    points = cuda.blockDim.x // lanes
    lane = cuda.threadIdx.x // points
    return cuda.blockIdx.x * points + cuda.threadIdx.x - lane * points, lane


@cuda.jit(device=True)
def merge(nearest, least, second, i, lane, lanes, numbers):
    """Return the triple of a point over all chunks, right in lane 0; all threads come here.

    `numbers` is shared memory for two a thread.
    """
    bests = cuda.shared.array(1024, np.int32)
    t, block = cuda.threadIdx.x, cuda.blockDim.x
    best, D, rival = np.int32(0), numbers.dtype.type(np.inf), numbers.dtype.type(np.inf)
    if i < nearest.shape[1]:
        for c in range(lane, nearest.shape[0], lanes):
            best, D, rival = _better(best, D, rival, nearest[c, i], least[c, i], second[c, i])
    m = lanes
    while m > 1:
        bests[t], numbers[t], numbers[block + t] = best, D, rival
        cuda.syncthreads()
        if lane < m // 2:
            other = t + (m - 1 - 2 * lane) * (block // lanes)
            best, D, rival = _better(
                best, D, rival, bests[other], numbers[other], numbers[block + other]
            )
        m //= 2
        cuda.syncthreads()
    return best, D, rival


@cuda.jit(device=True)
def _better(best, D, rival, other_best, other_D, other_rival):
    """Return the triple of two together."""
    if other_D < D or (other_D == D and other_best < best):
        return other_best, other_D, min(D, other_rival)
    return best, D, min(rival, other_D)
