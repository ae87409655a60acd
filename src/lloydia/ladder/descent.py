"""The alternation of assignments and means, as every rung on the CPU goes through it.

Neither step can raise the objective J, the sum of squared distances of the points to the centres of
their clusters: an assignment takes the nearest centre, and of all places the mean has the least sum
of squared distances to its points (Lloyd 1982).
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from lloydia.ladder.rung import Outcome, Watch
from lloydia.stopping import Rule

__all__ = ["descend"]


def descend(
    X: NDArray,
    centers: NDArray,
    assign: Callable[[NDArray, NDArray[np.int32]], int],
    means: Callable[[NDArray[np.int32], NDArray], NDArray],
    rule: Rule | None,
    max_iter: int,
) -> Outcome:
    """Alternate assignments and means until the rule stops, and take the time.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    centers : ndarray of shape (k, d)
        The start, which is left as it is.
    assign : callable
        ``assign(centers, labels)`` updates the labels, -1 before the first iteration, and returns
        how many changed.
    means : callable
        ``means(labels, centers)`` returns new centres, with those of empty clusters as they were.
    rule : Rule or None
    max_iter : int

    Returns
    -------
    Outcome
    """
    labels = np.full(len(X), -1, dtype=np.int32)
    watch = Watch(rule, max_iter, len(X))
    began = time.perf_counter()
    while True:
        n_changed = assign(centers, labels)
        old, centers = centers, means(labels, centers)
        move = float(np.abs(centers - old).max()) if watch.needs_move else None
        inertia = objective(X, labels, old) if watch.needs_inertia else None
        if watch.over(n_changed, move, inertia):
            return Outcome(labels, centers, watch.n_iter, time.perf_counter() - began)


def objective(X: NDArray, labels: NDArray[np.int32], centers: NDArray) -> float:
    """Return J, summed in float64."""
    return float(np.square(X - centers[labels]).sum(dtype=np.float64))
