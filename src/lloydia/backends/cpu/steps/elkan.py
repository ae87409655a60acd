"""Elkan's method: a bound for each centre."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cpu.accelerated.elkan import (
    bound_rows,
    scratch_for_bounds,
    scratch_for_distances,
)
from lloydia.backends.cpu.accelerated.elkan import elkan as elkan_rows
from lloydia.backends.cpu.scan.grouped import Grouped, arrange
from lloydia.backends.cpu.simd.microkernel_centers_in_lanes import LANES
from lloydia.backends.cpu.steps import AssignedRun, Step, Tally
from lloydia.backends.cpu.steps.drift import center_drift

__all__ = ["elkan"]


def half_gaps(run: AssignedRun, centers: Grouped, wide: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return lower bounds on half the distances between centres: shape (k, k or more).

    They are infinite on the diagonal, and in columns without a centre.
    """
    k, width = len(centers.rows), len(centers.half_squares)
    gaps, padding = np.empty((k, width), dtype=np.float32), run.bounds.padding.as_tuple()
    upper, nearest = np.empty((2, k), dtype=np.float32)
    # The centres are rows here, whose bounds are new, so no centre has drifted.
    drift, total_drift = np.zeros(width, dtype=np.float32), np.float32(0.0)
    rows, labels = np.arange(k), np.empty(k, dtype=np.int32)

    def task(t: int, start: int, stop: int) -> None:
        bound_rows(
            run.used, rows[start:stop], stop - start, centers, wide, drift, total_drift, upper,
            nearest, gaps, padding, labels, scratch_for_bounds(run.used.shape[1], width),
        )  # fmt: skip

    run.dataset.each_block(task, run.used.size / 40.0, k)
    gaps *= np.float32(0.5)
    gaps[rows, rows] = np.inf
    gaps[:, k:] = np.inf
    return gaps


def elkan(run: AssignedRun, before: NDArray, tally: Tally) -> Step:
    """Evaluate the distances that the k bounds of a row do not rule out."""
    b, k = run.bounds, len(run.used)
    wide = run.used.astype(np.float64)
    moved = center_drift(run, before)
    b.move(moved)
    centers, padding = arrange(wide, np.arange(k), LANES), b.padding.as_tuple()
    gaps, scaled = half_gaps(run, centers, wide), run.used * run.dataset.dtype.type(b.padding.unit)
    rows, drifts = np.empty(tally.fresh.shape, dtype=np.int64), (b.drift, b.total_drift)
    fixed = (wide, scaled, *drifts, moved.astype(np.float32), gaps, gaps.min(axis=1))
    bounds, d, width = (b.upper, b.nearest, b.lower, padding), wide.shape[1], len(gaps[0])
    tally.evaluated[0] += k * (k - 1) // 2

    def step(t: int, start: int, stop: int) -> int:
        X, many, fresh = run.dataset.X, np.empty(stop - start, dtype=np.int64), tally.fresh[t]
        n_rows, n_many, evaluated, rechecked = elkan_rows(
            X, start, stop, run.assigned, *fixed, *bounds, rows[t], fresh, many,
            scratch_for_distances(d, width),
        )  # fmt: skip
        tally.evaluated[t] += evaluated + n_many * k
        tally.rechecked[t] += rechecked
        if n_many:
            tally.rechecked[t] += bound_rows(
                X, many, n_many, centers, wide, *drifts, *bounds, fresh[n_rows:],
                scratch_for_bounds(d, width),
            )  # fmt: skip
            rows[t, n_rows : n_rows + n_many] = many[:n_many]
        return run.move(t, rows[t], 0, n_rows + n_many, fresh)

    return step
