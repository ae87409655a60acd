"""Sums by trees in global memory, one launch a level, as T adds up flags and clusters.

A row of m numbers is folded in the middle: number i takes its mirror image m - 1 - i, for i below
m // 2, and ceil(m / 2) are left; after ceil(log2 n) launches number 0 is the sum.  No additions
compete for an address, the sum has the same bits in every run, and its rounding errors grow with
log n, not n.  The price is memory: a launch is the only barrier that all blocks share, so all that
one level finds must be written for the next.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from lloydia.ladder.device import Placed, ceil_div, cuda, zeros

__all__ = ["ClusterTrees", "FlagTree", "LargestTree", "divide", "raise_flag"]

# Of the (cluster x point) array; where it would be larger, a few clusters are done at a time.
MOST_BYTES = 2**33
MOST_ROWS = 65535  # of a grid


class FlagTree:
    """Counts flags of points.

    Parameters
    ----------
    on : Placed

    Attributes
    ----------
    flags : device array of shape (n,), int32
        0 or 1; a count leaves other numbers in it.
    """

    def __init__(self, on: Placed) -> None:
        self.block = on.block
        self.flags = cuda.device_array(len(on.labels), np.int32)
        self._root = self.flags[:1]

    def count(self) -> int:
        """Return how many flags are 1."""
        m = len(self.flags)
        while m > 1:
            _fold_flags[ceil_div(m // 2, self.block), self.block](self.flags, m)
            m = ceil_div(m, 2)
        return int(self._root.copy_to_host()[0])


class ClusterTrees:
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
        (n, d), k = on.X.shape, len(on.centers)
        self.on = on
        fit = min(MOST_BYTES // (n * (d * on.X.dtype.itemsize + 4)), MOST_ROWS)
        self.at_once = max(1, min(k, fit))
        self.sums = cuda.device_array((self.at_once * d, n), on.X.dtype)
        self.counts = cuda.device_array((self.at_once, n), np.int32)
        self.moved = zeros(k, on.X.dtype)

    def means(self) -> None:
        """Queue what makes the centres means; those of empty clusters stay."""
        on, k = self.on, len(self.on.centers)
        for first in range(0, k, self.at_once):
            clusters = min(self.at_once, k - first)
            _spread[(on.blocks, clusters), on.block](on.X, on.labels, first, self.sums, self.counts)
            self._fold(first, clusters)

    def _fold(self, first: int, clusters: int) -> None:
        on, m = self.on, len(self.on.labels)
        while True:
            grid: Any = max(1, ceil_div(m // 2, on.block)), clusters
            _fold[grid, on.block](self.sums, self.counts, m, first, on.centers, self.moved)
            if m <= 2:
                return
            m = ceil_div(m, 2)


class LargestTree:
    """The largest of some numbers.

    Parameters
    ----------
    numbers : device array of shape (m,)
    block : int

    Attributes
    ----------
    largest : device array of shape (1,)
    """

    def __init__(self, numbers: Any, block: int) -> None:
        self.numbers, self.block = numbers, block
        self.folded = cuda.device_array(len(numbers), numbers.dtype)
        self.largest = self.folded[:1]

    def find(self) -> None:
        """Queue what finds the largest."""
        self.folded.copy_to_device(self.numbers)
        m = len(self.folded)
        while m > 1:
            _fold_largest[ceil_div(m // 2, self.block), self.block](self.folded, m)
            m = ceil_div(m, 2)


@cuda.jit
def _fold_flags(flags, m):
    """Fold the first m flags."""
    i = cuda.grid(1)
    if i < m // 2:
        flags[i] += flags[m - 1 - i]


@cuda.jit
def _spread(X, labels, first, sums, counts):
    """Write every point into the rows of each cluster, as zeros where it is no member."""
    i, c = cuda.grid(1), cuda.blockIdx.y
    d = X.shape[1]
    if i < X.shape[0]:
        member = labels[i] == first + c
        counts[c, i] = 1 if member else 0
        for f in range(d):
            sums[c * d + f, i] = X[i, f] if member else X.dtype.type(0)


@cuda.jit
def _fold(sums, counts, m, first, centers, moved):
    """Fold the first m numbers of the rows of some clusters; the last fold makes the centres."""
    i, c = cuda.grid(1), cuda.blockIdx.y
    d = centers.shape[1]
    if i < m // 2:
        counts[c, i] += counts[c, m - 1 - i]
        for f in range(d):
            sums[c * d + f, i] += sums[c * d + f, m - 1 - i]
    if i == 0 and m <= 2:
        step = sums.dtype.type(0)
        if counts[c, 0] > 0:
            for f in range(d):
                mean = sums[c * d + f, 0] / counts[c, 0]
                difference = mean - centers[first + c, f]
                step += difference * difference
                centers[first + c, f] = mean
        moved[first + c] = sqrt(step)


@cuda.jit
def _fold_largest(numbers, m):
    """Fold the first m numbers."""
    i = cuda.grid(1)
    if i < m // 2:
        numbers[i] = max(numbers[i], numbers[m - 1 - i])


@cuda.jit
def divide(sums, counts, first, clusters, centers):
    """Make sums and counts in column 0 centres, a thread a cluster."""
    c = cuda.grid(1)
    d = centers.shape[1]
    if c < clusters and counts[c, 0] > 0:
        for f in range(d):
            centers[first + c, f] = sums[c * d + f, 0] / counts[c, 0]


@cuda.jit(device=True)
def raise_flag(flags, labels, i, best):
    """Give a point its label, and flag whether that changed it."""
    flags[i] = labels[i] != best
    labels[i] = best
