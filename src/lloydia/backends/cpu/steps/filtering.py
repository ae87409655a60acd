"""Filtering: boxes of neighbouring rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lloydia.algorithms.filtering import FAN, TILE
from lloydia.backends.cpu.accelerated.filtering import labels_by_place, scratch_for, search
from lloydia.backends.cpu.rows.features import EVERY
from lloydia.backends.cpu.steps import AssignedRun, Step, Tally

__all__ = ["filtering"]


def filtering(run: AssignedRun, before: NDArray, tally: Tally) -> Step:
    """Search from the roots whose first row, in the order of the curve, lies in the block."""
    tiles, b = run.tiles, run.bounds
    if not b.known:
        b.known = True
        # Before the first assignment there are no labels, and the nodes have no owner.
        if run.assigned[0] >= 0:
            labels_by_place(tiles, run.assigned, b)
    centers, axes = run.used.astype(np.float64), tuple(range(run.dataset.n_features))
    n_levels, weighted = len(tiles.levels), len(tiles.weights) > 0
    rows_of_root = TILE * FAN ** (n_levels - 1)
    measured = tiles.firsts, tiles.boxes, tiles.x, tiles.weights, tiles.sums
    fixed = *measured, run.dataset.n_samples, b.owner, b.tile_labels, EVERY

    def step(t: int, start: int, stop: int) -> int:
        changed, evaluated = search(
            axes, len(centers), -(-start // rows_of_root), -(-stop // rows_of_root), *fixed,
            run.dataset.fixed_point_grid, run.clusters.sums[t], run.clusters.touched[t], run.last,
            scratch_for(centers, run.dataset.dtype, n_levels, weighted),
        )  # fmt: skip
        tally.evaluated[t] += evaluated
        return changed

    run.labels_in_tiles = True
    return step
