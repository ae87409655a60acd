"""Rung 3: Hamerly's method on one thread, as T describes it (Hamerly 2010).

T keeps two bounds a point, and lowers the second by the largest movement of any centre.  It bought
the fastest of T's sequential solvers in both precisions, though still slower than scikit-learn.

What changed from rung 2: instead of k lower bounds a point keeps one, l, on the distance to its
second closest centre.  It falls by the largest movement of any centre.  While u < l the point stays
where it is; else all its k distances are measured again.

Why it should help: two numbers a point are read and written where Elkan's method has k + 1, and the
test is one comparison.  The bound is weaker: one centre that moves far spoils it for all points.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from lloydia.ladder.compiled import kernel, subroutine
from lloydia.ladder.descent import descend
from lloydia.ladder.r01_lloyd import means, squared_distance
from lloydia.ladder.r02_elkan import moves
from lloydia.ladder.rung import About, Outcome
from lloydia.stopping import Rule

ABOUT = About("Hamerly, one thread", "T", "cpu", solves="hamerly")


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
    """Run Hamerly's method on one thread; `update` replaces the means."""
    upper, lower = np.empty((2, len(X)), X.dtype)
    seen = centers.copy()
    return descend(
        X,
        centers,
        lambda centers, labels: assign(X, centers, seen, labels, upper, lower),
        lambda labels, old: (update or means)(X, labels, old),
        rule,
        max_iter,
    )


@subroutine
def two_nearest(X, i, centers):
    """Return the nearest centre of a point, and D to it and to the second nearest."""
    best, least = 0, squared_distance(X, i, centers, 0)
    second = X.dtype.type(np.inf)
    for j in range(1, len(centers)):
        D = squared_distance(X, i, centers, j)
        if D < least:
            best, least, second = j, D, least
        elif D < second:
            second = D
    return best, least, second


@subroutine
def visit(X, start, stop, centers, moved, labels, upper, lower):
    """Give some points their nearest centres, and return how many labels changed."""
    farthest = moved.max()
    n_changed = 0
    for i in range(start, stop):
        a = labels[i]
        if a >= 0:
            upper[i] += moved[a]
            lower[i] -= farthest
            # A tie is no safety: a lower number might be as near.
            if upper[i] < lower[i]:
                continue
        best, least, second = two_nearest(X, i, centers)
        upper[i], lower[i], labels[i] = np.sqrt(least), np.sqrt(second), best
        n_changed += best != a
    return n_changed


@kernel
def assign(X, centers, seen, labels, upper, lower):
    """Visit every point, and return how many labels changed; `seen` becomes the centres."""
    moved = moves(seen, centers)
    n_changed = visit(X, 0, len(X), centers, moved, labels, upper, lower)
    seen[:] = centers
    return n_changed
