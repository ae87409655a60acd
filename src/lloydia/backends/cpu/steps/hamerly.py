"""Hamerly: rows whose two bounds settle them are not scanned."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cpu.accelerated.hamerly import renew, tighten, unsettled
from lloydia.backends.cpu.rows.features import EVERY
from lloydia.backends.cpu.scan.scanners import scanner
from lloydia.backends.cpu.steps import AssignedRows, Step, Tally
from lloydia.backends.cpu.steps.lloyd import lloyd
from lloydia.backends.cpu.steps.moves import half_nearest, moves

__all__ = ["Tests", "hamerly", "hamerly_step"]

# A distance that is taken alone costs what about this many of a scan's do.  Those to the rows' own
# centres are taken of a part of the rows first, and of the rest if they settle enough.
ALONE = 20

# Rows scanned at a time where bounds follow: what the scan writes stays in the cache.
PIECE = 8192


class Tests:
    """The tests of Hamerly in one assignment, once the centres' move is accounted for."""

    def __init__(self, engine: AssignedRows, half: NDArray, tally: Tally) -> None:
        b = engine.bounds
        self.engine, self.tally, self.k = engine, tally, len(engine.used)
        self.tests, self.padding = b.tests(half), b.padding.as_tuple()
        self.bounds, self.totals = (b.upper, b.lower), (b.moved, b.passed)
        self.scaled = engine.used * engine.dtype.type(b.padding.unit)
        self.scan = scanner(engine)
        # Whether every row must be scanned, after which its bounds are known.
        self.first, b.known = not b.known, True

    def failing(self, t: int, start: int, stop: int, rows: NDArray) -> int:
        """List the rows of a block that no test settles; return how many."""
        labels = self.engine.assigned
        n = unsettled(start, stop, labels, *self.bounds, *self.tests[:2], rows)
        fixed = (labels, self.scaled, self.bounds, self.tests, self.padding)
        part = n // 16
        m = tighten(self.engine.X, rows, 0, part, *fixed, 0)
        if (part - m) * self.k > part * ALONE:
            part, m = n, tighten(self.engine.X, rows, part, n, *fixed, m)
        rows[m : m + n - part] = rows[part:n]
        self.tally.evaluated[t] += part
        return m + n - part

    def renewed(self, t: int, rows: NDArray, start: int, stop: int, fresh: NDArray) -> None:
        """Scan a range of a list of rows, and set their bounds."""
        best, second = np.empty((2, PIECE))
        for at in range(start, stop, PIECE):
            end = min(at + PIECE, stop)
            out = (fresh[at - start :], best, second)
            self.tally.rechecked[t] += self.scan(rows, at, end, *out)
            renew(rows, at, end, *out, self.bounds, self.totals, self.padding)
        self.tally.evaluated[t] += (stop - start) * self.k


def hamerly(engine: AssignedRows, before: NDArray, tally: Tally) -> Step:
    """Scan the rows whose two bounds do not settle them."""
    half = half_nearest(engine)
    if not engine.bounds.move(moves(engine, before), half, engine.assigned):
        return lloyd(engine, before, tally)
    return hamerly_step(engine, Tests(engine, half, tally), tally)


def hamerly_step(engine: AssignedRows, tests: Tests, tally: Tally) -> Step:
    """Return the step that scans whatever fails."""
    listed = np.empty(tally.fresh.shape, dtype=np.int64)

    def step(t: int, start: int, stop: int) -> int:
        rows = EVERY if tests.first else listed[t]
        if not tests.first:
            start, stop = 0, tests.failing(t, start, stop, rows)
        tests.renewed(t, rows, start, stop, tally.fresh[t])
        return engine.move(t, rows, start, stop, tally.fresh[t])

    return step
