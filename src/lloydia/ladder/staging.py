"""Centres in shared memory: as many at a time as fit, brought in by all threads of the block.

A centre that is read from global memory costs every warp a trip to the cache; shared memory is as
near as registers, and all threads of a warp get the number that they ask for at once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lloydia.ladder.device import SHARED_BYTES, cuda

__all__ = ["capacity", "distance_to_staged", "nearest_staged", "room", "stage"]


def capacity(centers: NDArray, most: int | None = None) -> int:
    """Return how many centres are staged at a time: at most k, and at most `most`."""
    k, d = centers.shape
    return min(k, room(d, centers.dtype), most or k)


def room(d: int, dtype: np.dtype, taken: int = 0) -> int:
    """Return how many rows of d features shared memory holds beside the bytes `taken`.

    Raises
    ------
    ValueError
        If not even one fits.
    """
    fit = (SHARED_BYTES - taken) // (d * dtype.itemsize)
    if fit <= 0:
        raise ValueError(
            f"A centre of {d} features in {dtype} takes more than the {SHARED_BYTES} bytes of "
            "shared memory: take a rung that leaves centres in global memory."
        )
    return fit


@cuda.jit(device=True)
def stage(centers, first, count, staged):
    """Copy `count` centres from the first on; all threads of the block come here."""
    d = centers.shape[1]
    cuda.syncthreads()  # What was staged before is read no longer.
    for e in range(cuda.threadIdx.x, count * d, cuda.blockDim.x):
        j = e // d
        staged[e] = centers[first + j, e - j * d]
    cuda.syncthreads()


@cuda.jit(device=True)
def distance_to_staged(X, i, staged, j):
    """Return D of a point to the staged centre in place j."""
    d = X.shape[1]
    difference = X[i, 0] - staged[j * d]
    D = difference * difference
    for f in range(1, d):
        difference = X[i, f] - staged[j * d + f]
        D += difference * difference
    return D


@cuda.jit(device=True)
def nearest_staged(X, i, centers, staged, held):
    """Return the nearest centre of a point, `held` staged at a time.

    All threads of the block come here; one whose i is no point gets 0.
    """
    k = centers.shape[0]
    best, least = 0, X.dtype.type(np.inf)
    for first in range(0, k, held):
        count = min(held, k - first)
        stage(centers, first, count, staged)
        if i < X.shape[0]:
            for j in range(count):
                D = distance_to_staged(X, i, staged, j)
                if D < least:
                    best, least = first + j, D
    return best
