"""Rung 62: rung 60 with sums by atomic additions, as D tried (`omp atomic`).

What changed from rung 60: the loop that adds the points up is parallel too, and every addition to a
sum or a count is atomic.

Why it should help: the sums were all that one thread still did alone.  But an atomic addition takes
the cache line from the core that had it, and with few clusters all threads want the same few lines.

D tried it, and it was so much slower that it left the sums on one thread.  No figure is printed.
"""

from __future__ import annotations

import numpy as np
from numba import prange
from numpy.typing import NDArray

from lloydia.ladder.atomics import atomic_add
from lloydia.ladder.compiled import kernel
from lloydia.ladder.descent import descend
from lloydia.ladder.openmp import openmp
from lloydia.ladder.r04_threaded_lloyd import assign
from lloydia.ladder.rung import About, Outcome
from lloydia.stopping import Rule

ABOUT = About("OpenMP, atomic sums", "D", "cpu", uses=frozenset({"threads"}), stop=None)


def fit(
    X: NDArray,
    centers: NDArray,
    *,
    rule: Rule | None,
    max_iter: int,
    threads: int = 1,
    block: int = 256,
) -> Outcome:
    """Run Lloyd's method with atomic additions of all threads."""
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
    k, d = centers.shape
    sums, counts = np.zeros(k * d), np.zeros(k, np.int64)
    for i in prange(len(X)):
        atomic_add(counts, labels[i], 1)
        for f in range(d):
            atomic_add(sums, labels[i] * d + f, X[i, f])
    new = centers.copy()
    for j in prange(k):
        if counts[j] > 0:
            for f in range(d):
                new[j, f] = sums[j * d + f] / counts[j]
    return new
