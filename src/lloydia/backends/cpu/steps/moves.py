"""How far centres moved, and how far they are from each other: what bounds live on."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cpu.rows.distances import own_distances
from lloydia.backends.cpu.rows.features import EVERY
from lloydia.backends.cpu.scan.scanners import dense_scanner
from lloydia.backends.cpu.steps import AssignedRows

__all__ = ["half_nearest", "moves"]


def moves(engine: AssignedRows, before: NDArray) -> NDArray[np.float64]:
    """Return upper bounds on how far the centres moved, in the unit of the bounds."""
    k, padding = len(before), engine.bounds.padding
    D = np.empty(k)
    own_distances(engine.used, 0, k, np.arange(k, dtype=np.int32), before.astype(np.float64), D)
    return padding.raised(np.sqrt(D) * padding.unit)


def half_nearest(engine: AssignedRows) -> NDArray[np.float64]:
    """Return lower bounds on half the distance from each centre to its nearest other.

    The scan of the centres themselves: whatever is not the label is a centre's second nearest.
    """
    k, padding = len(engine.used), engine.bounds.padding
    scan = dense_scanner(engine, engine.used)
    fresh, best, second = np.empty(k, dtype=np.int32), np.empty(k), np.empty(k)
    engine.each_block(
        lambda t, a, b: scan(EVERY, a, b, fresh[a:b], best[a:b], second[a:b]),
        engine.used.size / 40.0, k,
    )  # fmt: skip
    # A single centre has no other, and what the scan says instead may become infinite.
    with np.errstate(over="ignore"):
        return 0.5 * padding.lowered(np.sqrt(second) * padding.unit)
