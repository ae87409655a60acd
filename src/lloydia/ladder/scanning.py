"""Means as T computes them on the processor: for each cluster a scan of all labels.

A cluster's sum and count stay in registers, and no array of sums is written; but n k labels are
read and compared where one pass over the points reads n.  The loop over clusters can be parallel as
it stands, since no two threads add to one sum.
"""

from __future__ import annotations

import numpy as np
from numba import prange

from lloydia.ladder.compiled import kernel, subroutine

__all__ = ["means", "threaded_means"]


@subroutine
def move(X, labels, j, centers):
    """Make a centre the mean of its points; that of an empty cluster stays."""
    count, total = 0, np.zeros(X.shape[1])
    for i in range(len(X)):
        if labels[i] == j:
            count += 1
            for f in range(X.shape[1]):
                total[f] += X[i, f]
    if count > 0:
        for f in range(X.shape[1]):
            centers[j, f] = total[f] / count


@kernel
def means(X, labels, centers):
    """Return the mean of every cluster, the old centre where it is empty."""
    new = centers.copy()
    for j in range(len(centers)):
        move(X, labels, j, new)
    return new


@kernel(parallel=True)
def threaded_means(X, labels, centers, threads):
    """Return the same by a parallel loop over the clusters."""
    new = centers.copy()
    for j in prange(len(centers)):
        move(X, labels, j, new)
    return new
