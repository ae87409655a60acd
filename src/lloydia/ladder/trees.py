"""Sums by trees in global memory, one launch a level, as T adds up flags and clusters.

A row of m numbers is folded in the middle: number i takes its mirror image m - 1 - i, for i below
m // 2, and ceil(m / 2) are left; after ceil(log2 n) launches number 0 is the sum.  No additions
compete for an address, the sum has the same bits in every run, and its rounding errors grow with
log n, not n.  The price is memory: a launch is the only barrier that all blocks share, so all that
one level finds must be written for the next.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lloydia.ladder.device import Placed, ceil_div, cuda

__all__ = ["ClusterTrees", "FlagTree", "divide", "raise_flag"]

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
    """The means of all clusters.

    Parameters
    ----------
    on : Placed
    """

    def __init__(self, on: Placed) -> None:
        (n, d), k = on.X.shape, len(on.centers)
        self.on = on
        fit = min(MOST_BYTES // (n * (d * on.X.dtype.itemsize + 4)), MOST_ROWS // (d + 1))
        self.at_once = max(1, min(k, fit))
        self.sums = cuda.device_array((self.at_once * d, n), on.X.dtype)
        self.counts = cuda.device_array((self.at_once, n), np.int32)

    def means(self) -> None:
        """Queue what makes the centres means; those of empty clusters stay."""
        on, k = self.on, len(self.on.centers)
        for first in range(0, k, self.at_once):
            clusters = min(self.at_once, k - first)
            _spread[(on.blocks, clusters), on.block](on.X, on.labels, first, self.sums, self.counts)
            self._fold(clusters)
            divide[ceil_div(clusters, on.block), on.block](
                self.sums, self.counts, first, clusters, on.centers
            )

    def _fold(self, clusters: int) -> None:
        rows, m = clusters * (self.on.X.shape[1] + 1), self.on.X.shape[0]
        while m > 1:
            grid: Any = ceil_div(m // 2, self.on.block), rows
            _fold[grid, self.on.block](self.sums, self.counts, clusters, m)
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
def _fold(sums, counts, clusters, m):
    """Fold the first m numbers of the rows of some clusters, their counts and then their sums."""
    i, r = cuda.grid(1), cuda.blockIdx.y
    if i < m // 2:
        if r < clusters:
            counts[r, i] += counts[r, m - 1 - i]
        else:
            sums[r - clusters, i] += sums[r - clusters, m - 1 - i]


@cuda.jit
def divide(sums, counts, first, clusters, centers):
    """Make the roots centres, a thread a cluster."""
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
