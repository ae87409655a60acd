"""Yinyang: a bound for each group of centres."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cpu.accelerated.yinyang import yinyang as yinyang_rows
from lloydia.backends.cpu.scan.grouped import arrange, vectors
from lloydia.backends.cpu.simd.micro import LANES
from lloydia.backends.cpu.steps import AssignedRows, Step, Tally
from lloydia.backends.cpu.steps.moves import moves

__all__ = ["yinyang"]


def yinyang(engine: AssignedRows, before: NDArray, tally: Tally) -> Step:
    """Evaluate the groups of centres that the bounds of a row do not settle."""
    b, k = engine.bounds, len(engine.used)
    wide = engine.used.astype(np.float64)
    width = vectors(k) * LANES
    if len(b.lower) == 0:
        b.divide(wide, width, engine.width * engine.dtype.itemsize)
    moved = moves(engine, before)
    b.move(moved)
    centers, padding = arrange(wide, b.order, width), b.padding.as_tuple()
    rows = np.empty(tally.fresh.shape, dtype=np.int64)

    def step(t: int, start: int, stop: int) -> int:
        n_rows, evaluated, rechecked = yinyang_rows(
            engine.X, start, stop, engine.assigned, centers, moved.astype(np.float32), b.drift,
            b.size, b.upper, b.lower, padding, rows[t], tally.fresh[t],
        )  # fmt: skip
        tally.evaluated[t] += evaluated
        tally.rechecked[t] += rechecked
        return engine.move(t, rows[t], 0, n_rows, tally.fresh[t])

    return step
