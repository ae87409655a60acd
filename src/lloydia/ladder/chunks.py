"""Assignment by chunks of centres, as T has it in shared memory.

The grid has a block for every block of points and every chunk of centres, and a chunk has as many
centres as a block has threads.  Each thread brings one centre into shared memory, and finds
(nearest, D, second D) of its point among them.  A second kernel, with a block for every point,
folds the point's triples over the chunks in shared memory (:mod:`folds`): the lower of two D wins,
of equal ones the lower centre, and of what is left the least D is the second.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lloydia.ladder.device import Placed, ceil_div, cuda
from lloydia.ladder.folds import Gathering, in_block, rounds
from lloydia.ladder.staging import capacity, distance_to_staged

__all__ = ["Chunks", "fold_triples", "two_nearest_staged"]


class Chunks:
    """Triples of every point and chunk of centres, and the launches that make and fold them.

    Parameters
    ----------
    on : Placed

    Attributes
    ----------
    held, count : int
        Centres in a chunk, and chunks.
    nearest : device array of shape (1, n, chunks), int32
    distances : device array of shape (2, n, chunks)
        D to the nearest and to the second nearest.
    scan : tuple
        The launch of a thread for every point and chunk, with room for a chunk.
    """

    def __init__(self, on: Placed) -> None:
        n, (k, d) = len(on.labels), on.centers.shape
        self.block, self.held = on.block, capacity(on.centers, on.block)
        self.count = ceil_div(k, self.held)
        self.nearest = cuda.device_array((1, n, self.count), np.int32)
        self.distances = cuda.device_array((2, n, self.count), on.X.dtype)
        self.scan: Any = (on.blocks, self.count), on.block, 0, self.held * d * on.X.dtype.itemsize
        self.gathering = Gathering(self.nearest, self.distances, block=on.block)

    def fold(self, settle: Any, *arrays: Any) -> None:
        """Queue `settle`, a rung's kernel that folds triples and uses the last, in all rounds.

        It gets `nearest`, `distances`, the number of triples of a point, and `arrays`.
        """
        n = self.nearest.shape[1]
        shared = 4 * self.block * self.distances.dtype.itemsize
        for m, parts in rounds(self.count, self.block):
            grid: Any = n, parts
            settle[grid, self.block, 0, shared](self.nearest, self.distances, m, *arrays)
            if m > 1:
                self.gathering.queue(parts)


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
def fold_triples(nearest, distances, m, numbers):
    """Fold the triples that this block has of its point, and return what is left of them.

    `numbers` is shared memory for four a thread.
    """
    bests = cuda.shared.array(2048, np.int32)
    i, t, width = cuda.blockIdx.x, cuda.threadIdx.x, 2 * cuda.blockDim.x
    begin, left = in_block(m)
    for e in range(t, left, cuda.blockDim.x):
        bests[e] = nearest[0, i, begin + e]
        numbers[e] = distances[0, i, begin + e]
        numbers[width + e] = distances[1, i, begin + e]
    cuda.syncthreads()
    while left > 1:
        if t < left // 2:
            other = left - 1 - t
            bests[t], numbers[t], numbers[width + t] = _better(
                *(bests[t], numbers[t], numbers[width + t]),
                *(bests[other], numbers[other], numbers[width + other]),
            )
        left = (left + 1) // 2
        cuda.syncthreads()
    if t == 0:
        nearest[0, i, begin] = bests[0]
        distances[0, i, begin] = numbers[0]
        distances[1, i, begin] = numbers[width]
    return bests[0], numbers[0], numbers[width]


@cuda.jit(device=True)
def _better(best, D, rival, other_best, other_D, other_rival):
    """Return the triple of two together."""
    if other_D < D or (other_D == D and other_best < best):
        return other_best, other_D, min(D, other_rival)
    return best, D, min(rival, other_D)
