"""How far the centres moved, and how far apart they are: what the bounds need."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cpu.rows.features import EVERY
from lloydia.backends.cpu.scan.scanners import dense_scanner
from lloydia.backends.cpu.steps import AssignedRun

__all__ = ["center_drift", "half_gap_to_nearest"]


def center_drift(run: AssignedRun, before: NDArray) -> NDArray[np.float64]:
    """Return upper bounds on how far the centres moved, in the unit of the bounds."""
    padding = run.bounds.padding
    squares = np.square(run.used.astype(np.float64) - before)
    # Added in the order of the features, as in a canonical D.
    D = squares.cumsum(axis=1)[:, -1]
    return padding.upper_bound(np.sqrt(D) * padding.unit)


def half_gap_to_nearest(run: AssignedRun) -> NDArray[np.float64]:
    """Return lower bounds on half the distance from each centre to its nearest other.

    The centres are scanned as rows: the second nearest of a centre is its nearest other.
    """
    k, padding = len(run.used), run.bounds.padding
    scan = dense_scanner(run, run.used)
    fresh, best, second = np.empty(k, dtype=np.int32), np.empty(k), np.empty(k)
    run.dataset.each_block(
        lambda t, a, b: scan(EVERY, a, b, fresh[a:b], best[a:b], second[a:b]),
        run.used.size / 40.0, k,
    )  # fmt: skip
    # A single centre has no other: the value that the scan then writes may become infinite.
    with np.errstate(over="ignore"):
        return 0.5 * padding.lower_bound(np.sqrt(second) * padding.unit)
