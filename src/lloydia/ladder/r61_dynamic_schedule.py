"""Rung 61: rung 60 with a dynamic schedule, D's other choice.

What changed from rung 60: a thread takes the next point that none has taken, whenever it is free,
where it had one range of points from the start.  A counter of points is shared by all threads, and
each takes a number from it by an atomic addition.

Why it should help: threads that are slower, or interrupted, take fewer points.  But all points cost
the same here, and a point of few clusters costs less than taking its number.

D explains both schedules, with chunks of one iteration where no size is given, and does not say
what a dynamic one cost it.
"""

from __future__ import annotations

import numpy as np
from numba import prange
from numpy.typing import NDArray

from lloydia.ladder.atomics import atomic_add
from lloydia.ladder.compiled import kernel
from lloydia.ladder.descent import descend
from lloydia.ladder.openmp import openmp
from lloydia.ladder.r01_lloyd import nearest
from lloydia.ladder.r60_sequential_sums import means
from lloydia.ladder.rung import About, Outcome
from lloydia.stopping import Rule

ABOUT = About(
    "OpenMP, points handed out one by one", "D", "cpu", uses=frozenset({"threads"}), stop=None
)

CHUNK = 1  # points that a thread takes at a time


def fit(
    X: NDArray,
    centers: NDArray,
    *,
    rule: Rule | None,
    max_iter: int,
    threads: int = 1,
    block: int = 256,
) -> Outcome:
    """Run Lloyd's method with an assignment by a dynamic schedule."""
    with openmp(threads):
        return descend(
            X,
            centers,
            lambda centers, labels: assign(X, centers, labels, threads, CHUNK),
            lambda labels, old: means(X, labels, old),
            rule,
            max_iter,
        )


@kernel(parallel=True)
def assign(X, centers, labels, threads, chunk):
    """Give every point its nearest centre, and return how many labels changed."""
    n_changed = 0
    following = np.zeros(1, np.int64)
    for _ in prange(threads):
        n_changed += take(X, centers, labels, following, chunk)
    return n_changed


@kernel
def take(X, centers, labels, following, chunk):
    """Label chunk after chunk of points until there is none, and return how many changed."""
    n_changed = 0
    first = atomic_add(following, 0, chunk)
    while first < len(X):
        for i in range(first, min(first + chunk, len(X))):
            best = nearest(X, i, centers)
            n_changed += best != labels[i]
            labels[i] = best
        first = atomic_add(following, 0, chunk)
    return n_changed
