"""Rung 0: Lloyd's method in NumPy, the oracle of all others.

A point belongs to the centre j with the least D = sum over f of (x_f - c_jf)^2, computed in the
type of X, the lowest j on a tie; a centre becomes the mean of its points.  One array operation for
each centre and feature: the interpreter is out of the inner loop, and memory is not, since every
operation reads and writes n numbers.

Sums are added in float64 whatever the type of X: in float32, millions of numbers would lose more
than the 1e-4 that rungs must agree to.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lloydia.ladder.descent import descend
from lloydia.ladder.rung import About, Outcome
from lloydia.stopping import Rule

ABOUT = About("Lloyd in NumPy, the reference", "", "cpu")


def fit(
    X: NDArray,
    centers: NDArray,
    *,
    rule: Rule | None,
    max_iter: int,
    threads: int = 1,
    block: int = 256,
) -> Outcome:
    """Run Lloyd's method, one array operation for each centre and feature."""

    def assign(centers: NDArray, labels: NDArray[np.int32]) -> int:
        found = nearest(X, centers)
        n_changed = int(np.count_nonzero(found != labels))
        labels[:] = found
        return n_changed

    return descend(X, centers, assign, lambda labels, old: means(X, labels, old), rule, max_iter)


def nearest(X: NDArray, centers: NDArray) -> NDArray[np.int32]:
    """Return the nearest centre of every row, the lowest of equals."""
    labels = np.zeros(len(X), dtype=np.int32)
    least = squared_distances(X, centers[0])
    for j in range(1, len(centers)):
        D = squared_distances(X, centers[j])
        labels[D < least] = j
        np.minimum(least, D, out=least)
    return labels


def squared_distances(X: NDArray, center: NDArray) -> NDArray:
    """Return D of every row to one centre, added in the order of the features."""
    D = np.square(X[:, 0] - center[0])
    for f in range(1, X.shape[1]):
        D += np.square(X[:, f] - center[f])
    return D


def means(X: NDArray, labels: NDArray[np.int32], centers: NDArray) -> NDArray:
    """Return the mean of every cluster, the old centre where it is empty."""
    k = len(centers)
    counts = np.bincount(labels, minlength=k)[:, None]
    sums = np.stack([np.bincount(labels, column, minlength=k) for column in X.T], axis=1)
    return np.where(counts > 0, sums / np.maximum(counts, 1), centers).astype(X.dtype)
