"""The rows in the order of the curve, in tiles, with the box and the sums of each tile and node.

A data set makes them once for all its runs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lloydia.algorithms.filtering import FAN, TILE, sizes
from lloydia.backends.cpu.rows.curve import curve_order
from lloydia.backends.cpu.rows.dataset import NONE, Dataset
from lloydia.backends.cpu.rows.features import EVERY
from lloydia.backends.cpu.update.sums import accumulate

__all__ = ["Tiles"]

# The rows of so many tiles are still in the cache when they are summed.
TILES_AT_ONCE = 64


@dataclass(frozen=True)
class Tiles:
    """Rows by tile; the nodes are numbered as in :mod:`lloydia.algorithms.filtering`.

    Attributes
    ----------
    order : ndarray of shape (n,), int32
        The number of the row at each place of the curve.
    x : ndarray of shape (n_tiles, d, TILE), X's type
        The rows; the last tile is filled up with the last row.
    weights : ndarray of shape (n,), float64
        In the order of the curve, scaled for the fixed-point sums; empty if all are 1.
    levels : ndarray of int64
        Nodes a level, tiles first.
    firsts : ndarray of int64
        The number of each level's first node.
    boxes : ndarray of shape (2, n_nodes, d), X's type
        The lower and the upper bound of each node in each feature.
    sums : ndarray of shape (n_nodes, n_limbs, d + 1), int64
        What the rows of a node add to a cluster.
    """

    order: NDArray[np.int32]
    x: NDArray
    weights: NDArray[np.float64]
    levels: NDArray[np.int64]
    firsts: NDArray[np.int64]
    boxes: NDArray
    sums: NDArray[np.int64]

    @classmethod
    def of(cls, dataset: Dataset) -> Tiles:
        """Order the rows of a data set and measure the tiles."""
        n, d = dataset.n_samples, dataset.n_features
        order = curve_order(dataset.X, dataset.each_block)
        levels = sizes(n)
        x = np.empty((levels[0], d, TILE), dataset.dtype)
        weights = dataset.scaled_weights if dataset.scaled_weights is NONE else np.empty(n)
        boxes = np.empty((2, levels.sum(), d), dataset.dtype)
        sums = np.empty((levels.sum(), dataset.grid.n_limbs, d + 1), dtype=np.int64)
        tiles = cls(order, x, weights, levels, np.cumsum(levels) - levels, boxes, sums)

        def task(thread: int, start: int, stop: int) -> None:
            end = -(-stop // TILE)
            for first in range(-(-start // TILE), end, TILES_AT_ONCE):
                tiles._fill(dataset, first, min(first + TILES_AT_ONCE, end))

        dataset.each_block(task, 10.0 + 4.0 * d)
        tiles._gather()
        return tiles

    def _fill(self, dataset: Dataset, first: int, last: int) -> None:
        """Copy the rows of tiles `first` to `last`, and compute their boxes and sums."""
        n, d = dataset.n_samples, dataset.n_features
        start, stop = first * TILE, min(last * TILE, n)
        places = self.order[np.minimum(np.arange(start, last * TILE), n - 1)]
        rows = dataset.X.take(places, axis=0)
        self.x[first:last] = rows.reshape(-1, TILE, d).transpose(0, 2, 1)
        for side, extreme in zip(self.boxes, (np.minimum, np.maximum)):
            extreme.reduce(self.x[first:last], axis=2, out=side[first:last])
        weights = NONE
        if len(self.weights):
            weights = self.weights[start:stop] = dataset.scaled_weights[places[: stop - start]]
        # The sums are computed as if each tile were a cluster.
        fresh = (np.arange(len(places)) // TILE).astype(np.int32)
        grid, labels = dataset.fixed_point_grid, np.full_like(fresh, -1)
        sums = np.zeros((self.sums.shape[1], last - first, len(grid[0])), dtype=np.int64)
        touched = np.empty(last - first, dtype=np.bool_)
        accumulate(rows, EVERY, 0, stop - start, weights, grid, fresh, labels, sums, touched)
        self.sums[first:last] = sums.transpose(1, 0, 2)[:, :, : d + 1]

    def _gather(self) -> None:
        """Write the boxes and sums of the nodes above the tiles."""
        for n_children, first, n_nodes in zip(self.levels, self.firsts[1:], self.levels[1:]):
            first_children = np.arange(0, n_children, FAN)
            children, nodes = slice(first - n_children, first), slice(first, first + n_nodes)
            low, high = self.boxes
            for values, fold in ((low, np.minimum), (high, np.maximum), (self.sums, np.add)):
                fold.reduceat(values[children], first_children, out=values[nodes])
