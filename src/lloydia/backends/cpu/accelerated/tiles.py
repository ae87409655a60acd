"""The rows in the order of the curve, in tiles, with the box and the sums of each tile and node.

They are made once for a data set, and all its runs use them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lloydia.algorithms.filtering import FAN, TILE, sizes
from lloydia.backends.cpu.rows.curve import curve_order
from lloydia.backends.cpu.rows.dataset import NONE, Dataset
from lloydia.backends.cpu.rows.features import EVERY
from lloydia.backends.cpu.runtime.compiled import LEAN, kernel, minimum, subroutine
from lloydia.backends.cpu.simd.frames import prefetch
from lloydia.backends.cpu.update.sums import accumulate

__all__ = ["Tiles"]


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
        In the order of the curve, scaled as the sums want them; empty where all are 1.
    levels : ndarray of int64
        Nodes a level, tiles first.
    firsts : ndarray of int64
        The number of each level's first node.
    low, high : ndarray of shape (n_nodes, d), X's type
        The boxes.
    sums : ndarray of shape (n_nodes, n_limbs, d + 1), int64
        What the rows of a node add to a cluster.
    """

    order: NDArray[np.int32]
    x: NDArray
    weights: NDArray[np.float64]
    levels: NDArray[np.int64]
    firsts: NDArray[np.int64]
    low: NDArray
    high: NDArray
    sums: NDArray[np.int64]

    @classmethod
    def of(cls, dataset: Dataset) -> Tiles:
        """Order the rows of a data set and measure the tiles."""
        n, d = dataset.n_samples, dataset.n_features
        order = curve_order(dataset.X, dataset.each_block)
        levels = sizes(n)
        x = np.empty((levels[0], d, TILE), dataset.dtype)
        weights = dataset.scaled_weights if dataset.scaled_weights is NONE else np.empty(n)
        low, high = np.empty((2, levels.sum(), d), dataset.dtype)
        sums = np.zeros((levels.sum(), dataset.grid.n_limbs, d + 1), dtype=np.int64)

        def task(thread: int, start: int, stop: int) -> None:
            fill(
                dataset.X, order, -(-start // TILE), -(-stop // TILE), dataset.scaled_weights,
                dataset.fixed_point_grid, x, weights, low, high, sums, EVERY,
                scratch_for(x, dataset.scaled_weights, dataset.fixed_point_grid, sums),
            )  # fmt: skip

        dataset.each_block(task, 10.0 + 4.0 * d)
        gather(levels, low, high, sums)
        return cls(order, x, weights, levels, np.cumsum(levels) - levels, low, high, sums)


def scratch_for(x: NDArray, weights: NDArray, grid: tuple[Any, ...], sums: NDArray) -> tuple:
    """Return the scratch of :func:`fill`: rows, weights, labels, sums and flags of a tile."""
    labels = np.zeros(TILE, np.int32), np.empty(TILE, np.int32)
    total = np.empty((sums.shape[1], 1, len(grid[0])), np.int64)
    row_weights = np.empty(min(TILE, len(weights)))
    return np.empty((TILE, x.shape[1]), x.dtype), row_weights, *labels, total, np.empty(1, np.bool_)


@kernel(**LEAN)
def fill(X, order, start, stop, weights_in, grid, x, weights, low, high, sums, every, scratch):
    """Copy the rows of tiles `start` to `stop`, and write their boxes and sums.

    `every` is EVERY, and `scratch` from :func:`scratch_for`.
    """
    n, d = X.shape
    # Bytes to prefetch of each row of the next tile.
    size = d * X.itemsize if X.strides[1] == X.itemsize else 0
    rows, row_weights, fresh, none, total, touched = scratch
    for tile in range(start, stop):
        m = minimum(TILE, n - tile * TILE)
        for place in range((tile + 1) * TILE, minimum((tile + 2) * TILE, n)):
            prefetch(X.ctypes.data + order[place] * X.strides[0], size)
        for p in range(TILE):
            i = order[tile * TILE + minimum(p, m - 1)]
            for f in range(d):
                rows[p, f] = X[i, f]
            if p < len(row_weights) and p < m:
                row_weights[p] = weights[tile * TILE + p] = weights_in[i]
        transpose_tile(rows, x, tile, low, high)
        for p in range(TILE):
            none[p] = -1
        for limb in range(len(total)):
            for f in range(total.shape[2]):
                total[limb, 0, f] = 0
        accumulate(rows, every, 0, m, row_weights, grid, fresh, none, total, touched)
        for limb in range(len(total)):
            for f in range(d + 1):
                sums[tile, limb, f] = total[limb, 0, f]


@subroutine(**LEAN)
def transpose_tile(rows, x, tile, low, high):
    """Write the rows of a tile (TILE, d) feature-major, and their box."""
    for f in range(rows.shape[1]):
        lowest = highest = rows[0, f]
        for p in range(TILE):
            value = rows[p, f]
            x[tile, f, p] = value
            lowest = value if value < lowest else lowest
            highest = value if value > highest else highest
        low[tile, f] = lowest
        high[tile, f] = highest


@kernel(**LEAN)
def gather(levels, low, high, sums):
    """Write the boxes and sums of the nodes above the tiles."""
    below = 0
    for level in range(1, len(levels)):
        first = below + levels[level - 1]
        for child in range(levels[level - 1]):
            node = first + child // FAN
            for f in range(low.shape[1]):
                a, b = low[below + child, f], high[below + child, f]
                anew = child % FAN == 0
                low[node, f] = a if anew else min(a, low[node, f])
                high[node, f] = b if anew else max(b, high[node, f])
            for limb in range(sums.shape[1]):
                for f in range(sums.shape[2]):
                    sums[node, limb, f] += sums[below + child, limb, f]
        below = first
