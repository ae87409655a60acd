"""Where mini batches start: the best of several starts, each from a sample of the rows."""

from __future__ import annotations

import math
from typing import Any

from numpy.random import RandomState
from numpy.typing import NDArray

from lloydia.backends import choose
from lloydia.backends.magnitudes import check_range
from lloydia.backends.weighted import WeightedRows
from lloydia.caller import warn_caller
from lloydia.estimators.given import Given
from lloydia.estimators.starts import seed
from lloydia.loop.minibatch_step import sample

__all__ = ["best_start", "drawn_start", "init_rows"]


def init_rows(estimator: Any, n: int) -> int:
    """Return the number of rows from which a start is chosen."""
    size = estimator.init_size
    if size is None:
        size = 3 * min(estimator.batch_size, n)
        size = 3 * estimator.n_clusters if size < estimator.n_clusters else size
    elif size < estimator.n_clusters:
        warn_caller(
            f"init_size={size} should be larger than n_clusters={estimator.n_clusters}. Setting it "
            "to min(3*n_clusters, n_samples)",
            RuntimeWarning,
        )
        size = 3 * estimator.n_clusters
    return min(size, n)


def best_start(estimator: Any, given: Given, random_state: RandomState) -> NDArray:
    """Return the start with the lowest inertia on a sample of the rows."""
    rows, estimator._n_init = given.rows, given.n_init
    estimator._init_size = init_rows(estimator, rows.n_samples)
    validation = _sampled(rows, estimator._init_size, random_state)
    apart = choose(estimator.device, validation.X, validation.weights, estimator.n_threads)
    best, least = None, math.inf
    for number in range(1, estimator._n_init + 1):
        centers = drawn_start(estimator, rows, given.init, random_state)
        apart.classify(centers)
        inertia = float(apart.inertia())
        if estimator.verbose:
            print(f"Inertia for init {number}/{estimator._n_init}: {inertia}")
        if best is None or inertia < least:
            best, least = centers, inertia
    assert best is not None
    return best


def drawn_start(
    estimator: Any, rows: WeightedRows, init: Any, random_state: RandomState
) -> NDArray:
    """Return initial centres chosen from a sample of the rows."""
    if estimator._init_size < rows.n_samples:
        rows = _sampled(rows, estimator._init_size, random_state)
    engine = choose(estimator.device, rows.X, rows.weights, estimator.n_threads)
    centers = seed(estimator, engine, rows.X, rows.weights, init, random_state)
    check_range(engine, rows.weights, centers)
    return centers


def _sampled(rows: WeightedRows, size: int, random_state: RandomState) -> WeightedRows:
    """Return rows of positive weight, drawn with replacement."""
    return WeightedRows(*sample(rows.X, rows.weights, size, random_state), None)
