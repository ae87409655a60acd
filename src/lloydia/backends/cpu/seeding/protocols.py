"""What the parts of a seeding want of the rows that are seeded; see :class:`picks.Picks`."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cpu.protocols import Rows
from lloydia.backends.cpu.runtime.pool import Task
from lloydia.exact import sums as exact

__all__ = ["Oversampled", "Seeding"]


class Seeding(Rows, Protocol):
    """Rows, and each one's D to the nearest seed.

    Attributes
    ----------
    source : ndarray of shape (n, d), or CSR matrix
        The rows as they were given.
    weights : ndarray of shape (n,), float64
        Empty without weights.
    n_threads, n_tiles : int
        Tiles are the rows that an integer sum is kept of.
    nearest, totals, tops, totals_grid
        See :class:`picks.Picks`.
    terms : ndarray of shape (n_threads, rows of a tile), float64
        Scratch of each thread.
    """

    source: Any
    weights: NDArray[np.float64]
    n_threads: int
    n_tiles: int
    nearest: NDArray[np.float64]
    totals: NDArray[np.int64]
    tops: NDArray[np.float64]
    terms: NDArray[np.float64]
    totals_grid: tuple[int, int] | None

    def each_tile(self, task: Task, cost: float) -> None:
        """Run a task over blocks of tiles; `cost` is a guess at the nanoseconds a row takes."""

    def stale(self) -> None:
        """Note that totals and tops are not those of `nearest`."""


class Oversampled(Seeding, Protocol):
    """Rows that k-means|| seeds by assigning them to several seeds at once.

    Attributes
    ----------
    n_seeds : int
    owners : ndarray of shape (n,), int32
        Each row's nearest seed.
    """

    n_seeds: int
    owners: NDArray[np.int32]

    def classify(self, centers: NDArray) -> None:
        """Assign every row to the nearest of these centres."""

    def labels(self) -> NDArray[np.int32]:
        """Return the labels of that."""

    def own_distances(self, labels: NDArray[np.int32], centers: NDArray) -> NDArray[np.float64]:
        """Return D of each row to the centre of its label."""

    def magnitudes(self) -> exact.Magnitudes:
        """Return the largest magnitudes of rows and weights."""
