"""Farthest-first seeding on a GPU, as T has it beside its solvers: two kernels a centre.

A thread a point lets its D follow the newest centre, and a tree in global memory, one launch a
level as in :mod:`trees`, finds the point whose D is largest.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lloydia.ladder.device import ceil_div, cuda
from lloydia.ladder.nearest import squared_distance

__all__ = ["cuda_farthest_first"]


def cuda_farthest_first(X: NDArray, first: int, k: int, block: int) -> NDArray[np.int64]:
    """Return k rows of X, the first of which is given."""
    n = len(X)
    points, rows = cuda.to_device(X), cuda.to_device(np.full(k, first, np.int64))
    nearest = cuda.to_device(np.full(n, np.inf, X.dtype))
    D, places = cuda.device_array(n, X.dtype), cuda.device_array(n, np.int64)
    for j in range(1, k):
        _follow[ceil_div(n, block), block](points, rows, j, nearest, D, places)
        m = n
        while True:
            _fold[ceil_div(ceil_div(m, 2), block), block](D, places, m, rows, j)
            if m <= 2:
                break
            m = ceil_div(m, 2)
    return rows.copy_to_host()


@cuda.jit
def _follow(X, rows, j, nearest, D, places):
    """Let every point's least D follow the centre before the j-th."""
    i = cuda.grid(1)
    if i < X.shape[0]:
        nearest[i] = min(nearest[i], squared_distance(X, i, X, rows[j - 1]))
        D[i], places[i] = nearest[i], i


@cuda.jit
def _fold(D, places, m, rows, j):
    """Fold the first m points in the middle, the farther one stays; the last fold gives row j."""
    i = cuda.grid(1)
    if i < m // 2:
        other = m - 1 - i
        if D[other] > D[i] or (D[other] == D[i] and places[other] < places[i]):
            D[i], places[i] = D[other], places[other]
    if i == 0 and m <= 2:
        rows[j] = places[0]
