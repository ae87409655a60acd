"""Rung 5: Elkan's method on several threads, as T describes it.

T puts a parallel loop around its sequential solver, over points for labels and over clusters for
means (rung 44).  It bought what more threads bring: faster than scikit-learn with 8 and 12 threads,
slower with 4.

What changed from rung 2: the loop over points, with their bounds, is parallel: each thread visits
one equal range of them.  The means are those of rung 4.

Why it should help: as in rung 4.  Here each thread also streams its part of the n k lower bounds
through memory, which all threads share: it scales worse than Lloyd's method.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import prange
from numpy.typing import NDArray

from lloydia.ladder.compiled import kernel
from lloydia.ladder.descent import descend
from lloydia.ladder.openmp import openmp
from lloydia.ladder.r02_elkan import moves, visit
from lloydia.ladder.r04_threaded_lloyd import means
from lloydia.ladder.rung import About, Outcome
from lloydia.stopping import Rule

ABOUT = About("Elkan, OpenMP", "T", "cpu", solves="elkan", uses=frozenset({"threads"}))


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
    """Run Elkan's method with parallel loops; `update` replaces the means."""
    upper, lower = np.empty(len(X), X.dtype), np.empty((len(X), len(centers)), X.dtype)
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
