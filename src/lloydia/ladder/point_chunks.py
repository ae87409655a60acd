"""Means from chunks of points in shared memory, as T has them.

A chunk has as many points as a block has threads.  The grid has a block for every chunk of points
and every block of clusters: its threads bring the chunk and its labels into shared memory, and
each adds up the points that belong to its own cluster.  A second kernel, with a block for every
cluster, folds the chunks' sums in shared memory (:mod:`folds`); the last fold divides, and measures
how far the centre moved.  No additions compete for an address, and the (cluster x point) array of
:mod:`trees` becomes one of clusters x chunks; but every label is compared with every cluster.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from lloydia.ladder.device import SHARED_BYTES, Placed, ceil_div, cuda, zeros
from lloydia.ladder.folds import Gathering, in_block, rounds
from lloydia.ladder.staging import room, stage

__all__ = ["PointChunks"]


class PointChunks:
    """The means of all clusters, and how far they moved.

    Parameters
    ----------
    on : Placed

    Attributes
    ----------
    moved : device array of shape (k,)
        How far each centre moved when the last means were queued.
    """

    def __init__(self, on: Placed) -> None:
        n, (k, d) = len(on.labels), on.centers.shape
        self.on = on
        self.held = min(on.block, room(d, on.X.dtype, taken=4 * 1024))
        self.count = ceil_div(n, self.held)
        self.counts = cuda.device_array((1, k, self.count), np.int32)
        self.sums = cuda.device_array((d, k, self.count), on.X.dtype)
        self.moved = zeros(k, on.X.dtype)
        self.gathering = Gathering(self.counts, self.sums, block=on.block)
        # Features that are folded together: all, unless they take too much shared memory.
        of_one = 2 * on.block * on.X.dtype.itemsize
        self.together = min(d, (SHARED_BYTES - 2048 * 4) // of_one)
        self.shared = self.together * of_one

    def means(self) -> None:
        """Queue what makes the centres means; those of empty clusters stay."""
        on, (k, d) = self.on, self.on.centers.shape
        grid: Any = self.count, ceil_div(k, on.block)
        _add[grid, on.block, 0, self.held * d * on.X.dtype.itemsize](
            on.X, on.labels, self.held, self.sums, self.counts
        )
        for m, parts in rounds(self.count, on.block):
            grid = k, parts
            _fold[grid, on.block, 0, self.shared](
                self.sums, self.counts, m, self.together, on.centers, self.moved
            )
            if m > 1:
                self.gathering.queue(parts)


@cuda.jit
def _add(X, labels, held, sums, counts):
    """Add up the points of one chunk that belong to each cluster, a thread a cluster."""
    staged = cuda.shared.array(0, X.dtype)
    owners = cuda.shared.array(1024, np.int32)
    p, j = cuda.blockIdx.x, cuda.blockIdx.y * cuda.blockDim.x + cuda.threadIdx.x
    first, d = p * held, X.shape[1]
    count = min(held, X.shape[0] - first)
    for e in range(cuda.threadIdx.x, count, cuda.blockDim.x):
        owners[e] = labels[first + e]
    stage(X, first, count, staged)
    if j >= sums.shape[1]:
        return
    for f in range(0, d, 2):
        g = min(f + 1, d - 1)  # f itself, if it is the last of an odd number of features
        members, x, y = 0, X.dtype.type(0), X.dtype.type(0)
        for e in range(count):
            if owners[e] == j:
                members += 1
                x += staged[e * d + f]
                y += staged[e * d + g]
        counts[0, j, p], sums[f, j, p], sums[g, j, p] = members, x, y


@cuda.jit
def _fold(sums, counts, m, together, centers, moved):
    """Fold the sums that this block has of its cluster; the last fold makes the centre."""
    numbers = cuda.shared.array(0, sums.dtype)
    members = cuda.shared.array(2048, np.int32)
    j, t, width = cuda.blockIdx.x, cuda.threadIdx.x, 2 * cuda.blockDim.x
    begin, size = in_block(m)
    step = sums.dtype.type(0)
    for first in range(0, sums.shape[0], together):
        features = min(together, sums.shape[0] - first)
        for e in range(t, size, cuda.blockDim.x):
            members[e] = counts[0, j, begin + e]
            for f in range(features):
                numbers[f * width + e] = sums[first + f, j, begin + e]
        cuda.syncthreads()
        left = size
        while left > 1:
            if t < left // 2:
                other = left - 1 - t
                members[t] += members[other]
                for f in range(features):
                    numbers[f * width + t] += numbers[f * width + other]
            left = (left + 1) // 2
            cuda.syncthreads()
        if t == 0:
            for f in range(features):
                total = numbers[f * width]
                sums[first + f, j, begin] = total
                if cuda.gridDim.y == 1 and members[0] > 0:
                    mean = total / members[0]
                    difference = mean - centers[j, first + f]
                    step += difference * difference
                    centers[j, first + f] = mean
        cuda.syncthreads()  # The threads have read `members` and `numbers` before the next group.
    if t == 0:
        counts[0, j, begin] = members[0]
        if cuda.gridDim.y == 1:
            moved[j] = sqrt(step)
