"""Device functions of the rungs on a GPU: D of a point to a centre, and the nearest centre.

D is the sum over f of (x_f - c_jf)^2 in the type of X; of equal D the lowest j is nearest.
"""

from __future__ import annotations

import numpy as np

from lloydia.ladder.device import cuda

__all__ = ["nearest", "squared_distance", "tally", "two_nearest"]


@cuda.jit(device=True)
def squared_distance(X, i, centers, j):
    """Return D of a point to a centre."""
    difference = X[i, 0] - centers[j, 0]
    D = difference * difference
    for f in range(1, X.shape[1]):
        difference = X[i, f] - centers[j, f]
        D += difference * difference
    return D


@cuda.jit(device=True)
def nearest(X, i, centers):
    """Return the nearest centre of a point."""
    best, least = 0, squared_distance(X, i, centers, 0)
    for j in range(1, centers.shape[0]):
        D = squared_distance(X, i, centers, j)
        if D < least:
            best, least = j, D
    return best


@cuda.jit(device=True)
def two_nearest(X, i, centers):
    """Return the nearest centre, D to it, and D to the second nearest (infinity with k = 1)."""
    best, least = 0, squared_distance(X, i, centers, 0)
    second = X.dtype.type(np.inf)
    for j in range(1, centers.shape[0]):
        D = squared_distance(X, i, centers, j)
        if D < least:
            best, least, second = j, D, least
        elif D < second:
            second = D
    return best, least, second


@cuda.jit(device=True)
def tally(moved, changed):
    """Add to `changed` the threads of this block that moved; all of its threads come here."""
    total = cuda.syncthreads_count(np.int32(moved))
    if cuda.threadIdx.x == 0 and total > 0:
        cuda.atomic.add(changed, 0, total)
