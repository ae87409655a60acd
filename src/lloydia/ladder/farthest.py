"""Farthest-first seeding on one thread and on several, as T has it; T calls it k-means++.

The first centre is a given point, and each next one is the point farthest from its nearest centre
(Gonzalez 1985).  T assigns all points anew for every centre that it adds; here a point keeps D to
its nearest centre, which only the newest centre can lessen.  Of equal D the lowest point is taken.
"""

from __future__ import annotations

import numpy as np
from numba import prange

from lloydia.ladder.compiled import kernel, subroutine
from lloydia.ladder.r01_lloyd import squared_distance

__all__ = ["farthest_first", "threaded_farthest_first"]


@subroutine
def follow(X, start, stop, newest, nearest):
    """Let some points' least D follow the newest centre; return the point whose D is largest."""
    farthest = start
    for i in range(start, stop):
        D = squared_distance(X, i, X, newest)
        if D < nearest[i]:
            nearest[i] = D
        if nearest[i] > nearest[farthest]:
            farthest = i
    return farthest


@kernel
def farthest_first(X, first, k):
    """Return k rows of X, the first of which is given."""
    rows, nearest = np.empty(k, np.int64), np.full(len(X), np.inf, X.dtype)
    rows[0] = first
    for j in range(1, k):
        rows[j] = follow(X, 0, len(X), rows[j - 1], nearest)
    return rows


@kernel(parallel=True)
def threaded_farthest_first(X, first, k, threads):
    """Return the same, with a range of points for each thread."""
    n = len(X)
    rows, nearest = np.empty(k, np.int64), np.full(n, np.inf, X.dtype)
    farthest = np.empty(threads, np.int64)
    rows[0] = first
    for j in range(1, k):
        for t in prange(threads):
            start, stop = t * n // threads, (t + 1) * n // threads
            farthest[t] = follow(X, start, stop, rows[j - 1], nearest)
        rows[j] = farthest[0]
        for t in range(1, threads):
            if nearest[farthest[t]] > nearest[rows[j]]:
                rows[j] = farthest[t]
    return rows
