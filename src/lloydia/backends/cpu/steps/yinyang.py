"""Yinyang: a bound for each group of centres."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cpu.accelerated.yinyang import scratch_for
from lloydia.backends.cpu.accelerated.yinyang import yinyang as yinyang_rows
from lloydia.backends.cpu.scan.grouped import arrange, vectors
from lloydia.backends.cpu.simd.microkernel_centers_in_lanes import LANES
from lloydia.backends.cpu.steps import AssignedRun, Step, Tally
from lloydia.backends.cpu.steps.drift import center_drift

__all__ = ["yinyang"]


def yinyang(run: AssignedRun, before: NDArray, tally: Tally) -> Step:
    """Evaluate the groups of centres that the bounds of a row do not rule out."""
    b, k = run.bounds, len(run.used)
    wide = run.used.astype(np.float64)
    width = vectors(k) * LANES
    if len(b.lower) == 0:
        b.divide(wide, width, run.dataset.width * run.dataset.dtype.itemsize)
    moved = center_drift(run, before)
    b.move(moved)
    centers, padding = arrange(wide, b.order, width), b.padding.as_tuple()
    rows = np.empty(tally.fresh.shape, dtype=np.int64)

    def step(t: int, start: int, stop: int) -> int:
        n_rows, evaluated, rechecked = yinyang_rows(
            run.dataset.X, start, stop, run.assigned, centers, moved.astype(np.float32), b.drift,
            b.size, b.upper, b.lower, padding, rows[t], tally.fresh[t],
            scratch_for(wide.shape[1], k),
        )  # fmt: skip
        tally.evaluated[t] += evaluated
        tally.rechecked[t] += rechecked
        return run.move(t, rows[t], 0, n_rows, tally.fresh[t])

    return step
