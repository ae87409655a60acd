"""Elkan's method: a bound for each centre."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cpu.accelerated.elkan import bound_rows
from lloydia.backends.cpu.accelerated.elkan import elkan as elkan_rows
from lloydia.backends.cpu.scan.grouped import Grouped, arrange
from lloydia.backends.cpu.simd.microkernel_centers_in_lanes import LANES
from lloydia.backends.cpu.steps import AssignedRun, Step, Tally
from lloydia.backends.cpu.steps.drift import center_drift

__all__ = ["elkan"]


def half_gaps(run: AssignedRun, centers: Grouped) -> NDArray[np.float32]:
    """Return lower bounds on half the distances between centres: shape (k, k or more).

    Infinite on the diagonal and where there is no centre.
    """
    k, width = len(centers.rows), len(centers.half_squares)
    gaps, padding = np.empty((k, width), dtype=np.float32), run.bounds.padding.as_tuple()
    upper, nearest = np.empty((2, k), dtype=np.float32)
    still, none = np.zeros(width, dtype=np.float32), np.float32(0.0)
    rows, labels = np.arange(k), np.empty(k, dtype=np.int32)

    def task(t: int, start: int, stop: int) -> None:
        bound_rows(
            run.used, rows[start:stop], stop - start, centers, still, none, upper, nearest,
            gaps, padding, labels,
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
    gaps, scaled = half_gaps(run, centers), run.used * run.dataset.dtype.type(b.padding.unit)
    rows, drifts = np.empty(tally.fresh.shape, dtype=np.int64), (b.drift, b.total_drift)
    fixed = (centers, wide, scaled, *drifts, moved.astype(np.float32), gaps, gaps.min(axis=1))
    tally.evaluated[0] += k * (k - 1) // 2

    def step(t: int, start: int, stop: int) -> int:
        n_rows, evaluated, rechecked = elkan_rows(
            run.dataset.X, start, stop, run.assigned, *fixed, b.upper, b.nearest, b.lower, padding,
            rows[t], tally.fresh[t],
        )  # fmt: skip
        tally.evaluated[t] += evaluated
        tally.rechecked[t] += rechecked
        return run.move(t, rows[t], 0, n_rows, tally.fresh[t])

    return step
