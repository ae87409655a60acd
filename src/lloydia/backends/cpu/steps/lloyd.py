"""Lloyd's method: every distance."""

from __future__ import annotations

from numpy.typing import NDArray

from lloydia.backends.cpu.rows.dataset import NONE
from lloydia.backends.cpu.rows.features import EVERY
from lloydia.backends.cpu.scan.scanners import scanner
from lloydia.backends.cpu.steps import AssignedRun, Step, Tally

__all__ = ["lloyd"]


def lloyd(run: AssignedRun, before: NDArray, tally: Tally) -> Step:
    """Scan every row."""
    scan_rows, k = scanner(run), len(run.used)

    def step(t: int, start: int, stop: int) -> int:
        tally.rechecked[t] += scan_rows(EVERY, start, stop, tally.fresh[t], NONE, NONE)
        tally.evaluated[t] += (stop - start) * k
        return run.move(t, EVERY, start, stop, tally.fresh[t])

    return step
