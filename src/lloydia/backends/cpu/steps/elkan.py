"""Elkan: a bound for each centre."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cpu.accelerated.elkan import bound_rows
from lloydia.backends.cpu.accelerated.elkan import elkan as elkan_rows
from lloydia.backends.cpu.scan.grouped import Grouped, arrange
from lloydia.backends.cpu.simd.micro import LANES
from lloydia.backends.cpu.steps import AssignedRows, Step, Tally
from lloydia.backends.cpu.steps.moves import moves

__all__ = ["elkan"]


def half_gaps(engine: AssignedRows, centers: Grouped) -> NDArray[np.float32]:
    """Return lower bounds on half the distances between centres: shape (k, k or more).

    Infinite on the diagonal and where there is no centre.
    """
    k, width = len(centers.rows), len(centers.halves)
    gaps, padding = np.empty((k, width), dtype=np.float32), engine.bounds.padding.as_tuple()
    upper, nearest = np.empty((2, k), dtype=np.float32)
    still, none = np.zeros(width, dtype=np.float32), np.float32(0.0)
    rows, labels = np.arange(k), np.empty(k, dtype=np.int32)

    def task(t: int, start: int, stop: int) -> None:
        bound_rows(
            engine.used, rows[start:stop], stop - start, centers, still, none, upper, nearest,
            gaps, padding, labels,
        )  # fmt: skip

    engine.each_block(task, engine.used.size / 40.0, k)
    gaps *= np.float32(0.5)
    gaps[rows, rows] = np.inf
    gaps[:, k:] = np.inf
    return gaps


def elkan(engine: AssignedRows, before: NDArray, tally: Tally) -> Step:
    """Evaluate the distances that the k bounds of a row do not settle."""
    b, k = engine.bounds, len(engine.used)
    wide = engine.used.astype(np.float64)
    moved = moves(engine, before)
    b.move(moved)
    centers, padding = arrange(wide, np.arange(k), LANES), b.padding.as_tuple()
    gaps, scaled = half_gaps(engine, centers), engine.used * engine.dtype.type(b.padding.unit)
    rows, drifts = np.empty(tally.fresh.shape, dtype=np.int64), (b.drift, b.passed)
    fixed = (centers, wide, scaled, *drifts, moved.astype(np.float32), gaps, gaps.min(axis=1))
    tally.evaluated[0] += k * (k - 1) // 2

    def step(t: int, start: int, stop: int) -> int:
        n_rows, evaluated, rechecked = elkan_rows(
            engine.X, start, stop, engine.assigned, *fixed, b.upper, b.nearest, b.lower, padding,
            rows[t], tally.fresh[t],
        )  # fmt: skip
        tally.evaluated[t] += evaluated
        tally.rechecked[t] += rechecked
        return engine.move(t, rows[t], 0, n_rows, tally.fresh[t])

    return step
