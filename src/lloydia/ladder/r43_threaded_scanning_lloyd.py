"""Rung 43: Lloyd's method on several threads with T's means.

T puts one parallel loop around the points of the assignment, and one around the clusters of the
means, each in equal static ranges.  It bought a gain over rung 53 with 4, 8 and 12 threads, and
over scikit-learn with 8 and 12.

What changed from rung 53: both loops are parallel.  Each of k clusters is one
thread's, so no sums are shared; but all threads read all labels.
"""

from __future__ import annotations

import numpy as np
from numba import prange
from numpy.typing import NDArray

from lloydia.ladder import r04_threaded_lloyd
from lloydia.ladder.compiled import kernel, subroutine
from lloydia.ladder.rung import About, Outcome
from lloydia.stopping import Rule

ABOUT = About("Lloyd, OpenMP, means by scans", "T", "cpu", uses=frozenset({"threads"}))


def fit(
    X: NDArray,
    centers: NDArray,
    *,
    rule: Rule | None,
    max_iter: int,
    threads: int = 1,
    block: int = 256,
) -> Outcome:
    """Run Lloyd's method with parallel loops, over clusters for the means."""
    return r04_threaded_lloyd.fit(
        X, centers, rule=rule, max_iter=max_iter, threads=threads, update=means
    )


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


@kernel(parallel=True)
def means(X, labels, centers, threads):
    """Return the mean of every cluster, the old centre where it is empty."""
    new = centers.copy()
    for j in prange(len(centers)):
        move(X, labels, j, new)
    return new
