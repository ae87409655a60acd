"""Rung 4: Lloyd's method on several threads, as T and D describe it, but for the means.

T and D put a parallel loop around the assignment; for the means T loops over clusters (rung 43),
and D leaves them to one thread.  It bought T more than its sequential solvers at any number of
threads, and more than scikit-learn with 8 and 12.

What changed from rung 1: the loop over points is parallel.  OpenMP gives each thread one equal
range of points (a static schedule) and adds up the threads' counters of changed labels (a
reduction).  For the means each thread adds its points to sums of its own, and a parallel loop over
the clusters adds those up and divides.

Why it should help: points do not depend on one another, so p threads could take a p-th of the time.
An iteration starts threads three times, some microseconds each: little beside a million points, and
all of the time with a hundred.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import prange
from numpy.typing import NDArray

from lloydia.ladder.compiled import kernel
from lloydia.ladder.descent import descend
from lloydia.ladder.openmp import openmp
from lloydia.ladder.r01_lloyd import add, nearest
from lloydia.ladder.rung import About, Outcome
from lloydia.stopping import Rule

ABOUT = About("Lloyd, OpenMP", "TD", "cpu", uses=frozenset({"threads"}))


def fit(
    X: NDArray,
    centers: NDArray,
    *,
    rule: Rule | None,
    max_iter: int,
    threads: int = 1,
    block: int = 256,
    update: Callable[..., NDArray] | None = None,
) -> Outcome:
    """Run Lloyd's method with parallel loops; `update` replaces the means."""
    with openmp(threads):
        return descend(
            X,
            centers,
            lambda centers, labels: assign(X, centers, labels),
            lambda labels, old: (update or means)(X, labels, old, threads),
            rule,
            max_iter,
        )


@kernel(parallel=True)
def assign(X, centers, labels):
    """Give every point its nearest centre, and return how many labels changed."""
    n_changed = 0
    for i in prange(len(X)):
        best = nearest(X, i, centers)
        n_changed += best != labels[i]
        labels[i] = best
    return n_changed


@kernel(parallel=True)
def means(X, labels, centers, threads):
    """Return the mean of every cluster, the old centre where it is empty."""
    (n, d), k = X.shape, len(centers)
    sums, counts = np.empty((threads, k, d)), np.empty((threads, k), np.int64)
    for t in prange(threads):
        # Not in `sums` itself: threads that write side by side wait for one another's cache lines.
        own, members = np.zeros((k, d)), np.zeros(k, np.int64)
        add(X, t * n // threads, (t + 1) * n // threads, labels, own, members)
        sums[t], counts[t] = own, members
    new = centers.copy()
    for j in prange(k):
        count = counts[:, j].sum()
        if count > 0:
            for f in range(d):
                new[j, f] = sums[:, j, f].sum() / count
    return new
