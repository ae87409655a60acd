"""Rung 6: Hamerly's method on several threads, as T describes it.

T puts the same parallel loops around this solver (rung 45).  It bought the fastest of T's solvers
on OpenMP; it too needed 8 threads to pass scikit-learn.

What changed from rung 3: the loop over points, with their two bounds, is parallel: each thread
visits one equal range of them.  The means are those of rung 4.

Why it should help: as in rung 4.  Once most points are skipped, the means are most of the work, and
all of it is bound by memory.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import prange
from numpy.typing import NDArray

from lloydia.ladder.compiled import kernel
from lloydia.ladder.descent import descend
from lloydia.ladder.openmp import openmp
from lloydia.ladder.r02_elkan import moves
from lloydia.ladder.r03_hamerly import visit
from lloydia.ladder.r04_threaded_lloyd import means
from lloydia.ladder.rung import About, Outcome
from lloydia.stopping import Rule

ABOUT = About("Hamerly, OpenMP", "T", "cpu", solves="hamerly", uses=frozenset({"threads"}))


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
    """Run Hamerly's method with parallel loops; `update` replaces the means."""
    upper, lower = np.empty((2, len(X)), X.dtype)
    seen = centers.copy()
    with openmp(threads):
        return descend(
            X,
            centers,
            lambda centers, labels: assign(X, centers, seen, labels, upper, lower, threads),
            lambda labels, old: (update or means)(X, labels, old, threads),
            rule,
            max_iter,
        )


@kernel(parallel=True)
def assign(X, centers, seen, labels, upper, lower, threads):
    """Visit every point, and return how many labels changed; `seen` becomes the centres."""
    n, moved = len(X), moves(seen, centers)
    n_changed = 0
    for t in prange(threads):
        start, stop = t * n // threads, (t + 1) * n // threads
        n_changed += visit(X, start, stop, centers, moved, labels, upper, lower)
    seen[:] = centers
    return n_changed
