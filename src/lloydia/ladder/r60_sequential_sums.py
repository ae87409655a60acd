"""Rung 60: the assignment on OpenMP threads, the sums on one, as D has it ("OpenMP").

What changed from rung 1: the loop over points that finds the nearest centres is parallel, in one
equal range of points a thread (a static schedule), and so is the loop over clusters that divides.
The loop between them, which adds the points up, stays sequential.

Why it should help: with many clusters the distances are nearly all of the time.  The sums are the
same work whatever k is, and limit the gain with few (Amdahl 1967); rung 4 has them parallel.

D made the assignment parallel, and with 10 million pixels printed a gain of 1.8 times at k = 2 that
grows to 4.7 at k = 50.  It tried `critical` and `atomic` for the sums (rungs 63 and 62), which were
so much slower that it left them sequential.
"""

from __future__ import annotations

import numpy as np
from numba import prange
from numpy.typing import NDArray

from lloydia.ladder.compiled import kernel
from lloydia.ladder.descent import descend
from lloydia.ladder.openmp import openmp
from lloydia.ladder.r01_lloyd import add
from lloydia.ladder.r04_threaded_lloyd import assign
from lloydia.ladder.rung import About, Outcome
from lloydia.stopping import Rule

ABOUT = About("OpenMP, sums on one thread", "D", "cpu", uses=frozenset({"threads"}), stop=None)


def fit(
    X: NDArray,
    centers: NDArray,
    *,
    rule: Rule | None,
    max_iter: int,
    threads: int = 1,
    block: int = 256,
) -> Outcome:
    """Run Lloyd's method with a parallel assignment and sequential sums."""
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
    add(X, 0, len(X), labels, sums, counts)
    new = centers.copy()
    for j in prange(len(centers)):
        if counts[j] > 0:
            for f in range(X.shape[1]):
                new[j, f] = sums[j, f] / counts[j]
    return new
