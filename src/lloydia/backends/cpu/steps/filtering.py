"""Filtering: boxes of neighbouring rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lloydia.algorithms.filtering import FAN, TILE
from lloydia.backends.cpu.accelerated.filtering import labels_by_place, search
from lloydia.backends.cpu.steps import AssignedRows, Step, Tally

__all__ = ["filtering"]


def filtering(engine: AssignedRows, before: NDArray, tally: Tally) -> Step:
    """Search from the roots whose first row, in the order of the curve, lies in the block."""
    tiles, b = engine.tiles, engine.bounds
    if not b.known:
        b.known = True
        labels_by_place(tiles.levels, tiles.order, engine.assigned, b.owner, b.held)
    centers, axes = engine.used.astype(np.float64), tuple(range(engine.n_features))
    rows = TILE * FAN ** (len(tiles.levels) - 1)

    def step(t: int, start: int, stop: int) -> int:
        changed, evaluated = search(
            axes, -(-start // rows), -(-stop // rows), tiles.levels,
            tiles.firsts, tiles.low, tiles.high, tiles.x,
            tiles.weights, tiles.sums, engine.n_samples, centers, b.owner, b.held,
            engine.lattice, engine.sums[t], engine.touched[t], engine.last,
        )  # fmt: skip
        tally.evaluated[t] += evaluated
        return changed

    engine.behind = True
    return step
