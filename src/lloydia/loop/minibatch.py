"""The loop of mini-batch k-means: (draw a batch, step, stop?)*."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray

from lloydia.backends import choose
from lloydia.backends.engine import NEVER, Engine, ExpectedRun
from lloydia.backends.weighted import WeightedRows
from lloydia.data.device_arrays import rows_of
from lloydia.exact.distance import movement
from lloydia.loop.minibatch_step import Centers, Draw, Smoothed, reassigned, stepped

__all__ = ["do_step", "run_batches"]

# Rows per centre, on average, between two searches for centres with few rows.
PATIENCE = 10


def run_batches(
    estimator: Any, rows: WeightedRows, whole: Engine, values: NDArray, state: RandomState
) -> tuple[Centers, int, float]:
    """Return the centres after all batches, the number of batches, and the smoothed inertia.

    Parameters
    ----------
    estimator : MiniBatchKMeans
    rows : WeightedRows
    whole : Engine
        It holds the rows of positive weight.
    values : ndarray of shape (k, d)
        The centres to start from.
    state : RandomState
    """
    n, size = rows.n_samples, min(estimator.batch_size, rows.n_samples)
    n_steps = estimator.max_iter * n // size
    limit = float(estimator.tol) * whole.mean_variance() if estimator.tol > 0 else None
    draw, smoothed = Draw(n, rows.weights), Smoothed(size / (n + 1))
    centers = Centers(values, np.zeros(estimator.n_clusters))
    for step in range(1, n_steps + 1):
        batch, before = rows_of(rows.X, draw.rows(state.random_sample(size))), centers.values
        engine = choose(estimator.device, batch, None, estimator.n_threads)
        centers, inertia = do_step(estimator, engine, None, centers, state)
        inertia /= size
        if estimator.verbose:
            print(f"Minibatch step {step}/{n_steps}: mean batch inertia: {inertia}")
        if step == 1:  # its inertia is that of the start
            continue
        smoothed.add(inertia)
        if reason := _reason(estimator, smoothed, limit, before, centers.values):
            if estimator.verbose:
                print(f"Converged ({reason}) at step {step}/{n_steps}")
            break
    return centers, step, inertia if smoothed.value is None else smoothed.value


def _reason(
    estimator: Any, smoothed: Smoothed, limit: float | None, before: NDArray, after: NDArray
) -> str:
    """Return why the loop ends after a batch, or an empty string."""
    if limit is not None and movement(before, after)[0] <= limit:
        return "small centers change"
    patience = estimator.max_no_improvement
    if patience is not None and smoothed.since >= patience:
        return "lack of improvement in inertia"
    return ""


def do_step(
    estimator: Any,
    engine: Engine,
    weights: NDArray | None,
    centers: Centers,
    random_state: RandomState,
) -> tuple[Centers, float]:
    """Return the centres after a batch, and the inertia of the batch before the update."""
    unused, values = (centers.counts == 0).any(), centers.values
    with engine.expecting(ExpectedRun(lambda _: values, NEVER, True, False, 1)):
        centers, inertia = stepped(engine, weights, centers)
    if unused or centers.since >= PATIENCE * estimator.n_clusters:
        ratio = estimator.reassignment_ratio
        centers, n_moved = reassigned(engine, weights, centers, ratio, random_state)
        if estimator.verbose and n_moved:
            print(f"[MiniBatchKMeans] Reassigning {n_moved} cluster centers.")
        centers = replace(centers, since=0)
    return centers, inertia
