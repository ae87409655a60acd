"""Rung 1: Lloyd's method on one thread, as T, A, C and D begin, and B and all compare with.

T, A, C and D wrote this loop in C++ as their first program, and B measures against one.  It bought
them what all their gains are over.  (T's means are not these, but those of rung 53.)

What changed: the loops over points, centres and features are compiled, and nothing is stored
between them but labels.  A point is read once and its k distances stay in registers, where NumPy
wrote and read n numbers for each centre and feature; so time goes into the 3 d k operations a
point, and no longer into memory.

C keeps sums in float32; here they are float64, as in all rungs on the CPU.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from lloydia.ladder.compiled import kernel, subroutine
from lloydia.ladder.descent import descend
from lloydia.ladder.rung import About, Outcome
from lloydia.stopping import Rule

ABOUT = About("Lloyd, one thread", "TABCD", "cpu")


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
    """Run Lloyd's method with compiled loops on one thread; `update` replaces the means."""
    return descend(
        X,
        centers,
        lambda centers, labels: assign(X, centers, labels),
        lambda labels, old: (update or means)(X, labels, old),
        rule,
        max_iter,
    )


@subroutine
def squared_distance(X, i, centers, j):
    """Return D of a point to a centre, in the type of X."""
    D = X.dtype.type(0)
    for f in range(X.shape[1]):
        difference = X[i, f] - centers[j, f]
        D += difference * difference
    return D


@subroutine
def nearest(X, i, centers):
    """Return the nearest centre of a point, the lowest of equals."""
    best, least = 0, squared_distance(X, i, centers, 0)
    for j in range(1, len(centers)):
        D = squared_distance(X, i, centers, j)
        if D < least:
            best, least = j, D
    return best


@kernel
def assign(X, centers, labels):
    """Give every point its nearest centre, and return how many labels changed."""
    n_changed = 0
    for i in range(len(X)):
        best = nearest(X, i, centers)
        n_changed += best != labels[i]
        labels[i] = best
    return n_changed


@subroutine
def add(X, start, stop, labels, sums, counts):
    """Add some points to the sums and counts of their clusters."""
    for i in range(start, stop):
        counts[labels[i]] += 1
        for f in range(X.shape[1]):
            sums[labels[i], f] += X[i, f]


@kernel
def means(X, labels, centers):
    """Return the mean of every cluster, the old centre where it is empty."""
    sums, counts = np.zeros(centers.shape), np.zeros(len(centers), np.int64)
    add(X, 0, len(X), labels, sums, counts)
    new = centers.copy()
    for j in range(len(centers)):
        if counts[j] > 0:
            for f in range(X.shape[1]):
                new[j, f] = sums[j, f] / counts[j]
    return new
