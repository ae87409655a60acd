"""Hamerly's method: rows whose two bounds keep their label are not scanned."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cpu.accelerated.hamerly import list_failing, set_bounds, tighten
from lloydia.backends.cpu.rows.features import EVERY
from lloydia.backends.cpu.scan.scanners import scanner
from lloydia.backends.cpu.steps import AssignedRun, Step, Tally
from lloydia.backends.cpu.steps.drift import center_drift, half_gap_to_nearest
from lloydia.backends.cpu.steps.lloyd import lloyd

__all__ = ["Tests", "hamerly", "hamerly_step"]

# A single distance takes as long as about this many distances of a scan.  The distances of rows to
# their own centres are measured for a part of the rows first, and for the others if enough pass.
COST_OF_ONE_DISTANCE = 20

# The bounds of so many rows are set after their scan, whose results are then still in the cache.
ROWS_PER_SCAN = 8192


class Tests:
    """Hamerly's tests in one assignment, after the bounds were moved with the centres."""

    def __init__(self, run: AssignedRun, half: NDArray, tally: Tally) -> None:
        b = run.bounds
        self.run, self.tally, self.k = run, tally, len(run.used)
        self.tests, self.padding = b.tests(half), b.padding.as_tuple()
        self.bounds, self.totals = (b.upper, b.lower), (b.moved, b.total_drift)
        self.scaled = run.used * run.dataset.dtype.type(b.padding.unit)
        self.scan = scanner(run)
        # Whether no bounds are known yet, so that every row is scanned.
        self.first, b.known = not b.known, True

    def failing(self, t: int, start: int, stop: int, rows: NDArray) -> int:
        """List the rows of a block that fail all tests; return their number."""
        labels = self.run.assigned
        n = list_failing(start, stop, labels, *self.bounds, *self.tests[:2], rows)
        fixed = (labels, self.scaled, self.bounds, self.tests, self.padding)
        part = n // 16
        m = tighten(self.run.dataset.X, rows, 0, part, *fixed, 0)
        if (part - m) * self.k > part * COST_OF_ONE_DISTANCE:
            part, m = n, tighten(self.run.dataset.X, rows, part, n, *fixed, m)
        rows[m : m + n - part] = rows[part:n]
        self.tally.evaluated[t] += part
        return m + n - part

    def scan_and_bound(self, t: int, rows: NDArray, start: int, stop: int, fresh: NDArray) -> None:
        """Scan a range of a list of rows, and set their bounds."""
        best, second = np.empty((2, ROWS_PER_SCAN))
        for at in range(start, stop, ROWS_PER_SCAN):
            end = min(at + ROWS_PER_SCAN, stop)
            out = (fresh[at - start :], best, second)
            self.tally.rechecked[t] += self.scan(rows, at, end, *out)
            set_bounds(rows, at, end, *out, self.bounds, self.totals, self.padding)
        self.tally.evaluated[t] += (stop - start) * self.k


def hamerly(run: AssignedRun, before: NDArray, tally: Tally) -> Step:
    """Scan the rows whose two bounds do not keep their label."""
    half = half_gap_to_nearest(run)
    if not run.bounds.move(center_drift(run, before), half, run.assigned):
        return lloyd(run, before, tally)
    return hamerly_step(run, Tests(run, half, tally), tally)


def hamerly_step(run: AssignedRun, tests: Tests, tally: Tally) -> Step:
    """Return the step that scans the rows that fail."""
    listed = np.empty(tally.fresh.shape, dtype=np.int64)

    def step(t: int, start: int, stop: int) -> int:
        rows = EVERY if tests.first else listed[t]
        if not tests.first:
            start, stop = 0, tests.failing(t, start, stop, rows)
        tests.scan_and_bound(t, rows, start, stop, tally.fresh[t])
        return run.move(t, rows, start, stop, tally.fresh[t])

    return step
