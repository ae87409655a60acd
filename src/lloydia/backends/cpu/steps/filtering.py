"""Filtering: boxes of neighbouring rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lloydia.algorithms.filtering import FAN, TILE
from lloydia.backends.cpu.accelerated.filtering import labels_by_place, scratch_for, search
from lloydia.backends.cpu.steps import AssignedRun, Step, Tally

__all__ = ["filtering"]


def filtering(run: AssignedRun, before: NDArray, tally: Tally) -> Step:
    """Search from the roots whose first row, in the order of the curve, lies in the block."""
    tiles, b = run.tiles, run.bounds
    if not b.known:
        b.known = True
        labels_by_place(
            tiles.levels, tiles.firsts, tiles.order, run.assigned, b.owner, b.tile_labels
        )
    centers, axes = run.used.astype(np.float64), tuple(range(run.dataset.n_features))
    rows = TILE * FAN ** (len(tiles.levels) - 1)

    def step(t: int, start: int, stop: int) -> int:
        changed, evaluated = search(
            axes, -(-start // rows), -(-stop // rows), tiles.levels,
            tiles.firsts, tiles.low, tiles.high, tiles.x,
            tiles.weights, tiles.sums, run.dataset.n_samples, centers, b.owner, b.tile_labels,
            run.dataset.fixed_point_grid, run.clusters.sums[t], run.clusters.touched[t], run.last,
            scratch_for(*centers.shape, run.dataset.dtype, len(tiles.levels)),
        )  # fmt: skip
        tally.evaluated[t] += evaluated
        return changed

    run.labels_in_tiles = True
    return step
