"""The state of a seeding as its parts see it, so that they need not import :mod:`seeder`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cpu.rows.dataset import Dataset
from lloydia.backends.cpu.runtime.pool import Task

if TYPE_CHECKING:
    from lloydia.backends.cpu.seeding.sketch import Sketch

__all__ = ["Oversampled", "SeedingState"]


class SeedingState(Protocol):
    """Rows, and each one's D to the nearest seed; see :class:`seeder.Seeder`.

    Attributes
    ----------
    dataset : Dataset
    n_tiles : int
        A tile is a number of consecutive rows with one integer sum.
    nearest : ndarray of shape (n,), float64
    totals : ndarray of shape (n_tiles,), int64
    tops : ndarray of shape (n_tiles,), float64
    terms : ndarray of shape (n_threads, rows of a tile), float64
    totals_grid : tuple or None
    n_expected : int
        Seeds that will follow, as far as the seeding knows.
    sketch_columns : int
        The most columns that sketches of the rows may have; 0: no sketches are allowed.
    """

    dataset: Dataset
    n_tiles: int
    nearest: NDArray[np.float64]
    totals: NDArray[np.int64]
    tops: NDArray[np.float64]
    terms: NDArray[np.float64]
    totals_grid: tuple[int, int] | None
    n_expected: int

    @property
    def sketch_columns(self) -> int: ...

    def each_tile(self, task: Task, cost: float) -> None:
        """Run a task over blocks of tiles; `cost` estimates the nanoseconds a row takes."""

    def stale(self) -> None:
        """Mark totals and tops as out of date with `nearest`."""


class Oversampled(SeedingState, Protocol):
    """The state of a seeding by k-means||, which adds several seeds at once.

    Attributes
    ----------
    n_seeds : int
    owners : ndarray of shape (n,), int32
        Each row's nearest seed.
    sketch : Sketch or None
        Those of the rows, once a round has made them.
    """

    n_seeds: int
    sketch: Sketch | None
    owners: NDArray[np.int32]

    def nearest_of(self, centers: NDArray) -> NDArray[np.int32]:
        """Return the label of every row's nearest centre."""
