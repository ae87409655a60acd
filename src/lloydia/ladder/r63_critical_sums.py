"""Rung 63: rung 60 with sums in a critical section, as D tried (`omp critical`).

What changed from rung 60: the loop that adds the points up is parallel too, and a thread holds a
lock while it adds a point.  All threads have the one lock.

Why it should help: it should not, since the lock lets one thread add at a time, as rung 60 does,
and is taken and released for every point.

D tried it, and it was so much slower that it left the sums on one thread.  No figure is printed.
The lock here spins; OpenMP's sleeps after a while, which costs it more.
"""

from __future__ import annotations

import numpy as np
from numba import prange
from numpy.typing import NDArray

from lloydia.ladder.atomics import exchange
from lloydia.ladder.compiled import kernel
from lloydia.ladder.descent import descend
from lloydia.ladder.openmp import openmp
from lloydia.ladder.r01_lloyd import add
from lloydia.ladder.r04_threaded_lloyd import assign
from lloydia.ladder.rung import About, Outcome
from lloydia.stopping import Rule

ABOUT = About(
    "OpenMP, sums in a critical section", "D", "cpu", uses=frozenset({"threads"}), stop=None
)


def fit(
    X: NDArray,
    centers: NDArray,
    *,
    rule: Rule | None,
    max_iter: int,
    threads: int = 1,
    block: int = 256,
) -> Outcome:
    """Run Lloyd's method with one lock for all sums."""
    with openmp(threads):
        return descend(
            X,
            centers,
            lambda centers, labels: assign(X, centers, labels),
            lambda labels, old: means(X, labels, old),
            rule,
            max_iter,
        )


@kernel(parallel=True)
def means(X, labels, centers):
    """Return the mean of every cluster, the old centre where it is empty."""
    sums, counts = np.zeros(centers.shape), np.zeros(len(centers), np.int64)
    lock = np.zeros(1, np.int64)
    for i in prange(len(X)):
        while exchange(lock, 0, 1) == 1:
            pass
        add(X, i, i + 1, labels, sums, counts)
        exchange(lock, 0, 0)
    new = centers.copy()
    for j in prange(len(centers)):
        if counts[j] > 0:
            for f in range(X.shape[1]):
                new[j, f] = sums[j, f] / counts[j]
    return new
