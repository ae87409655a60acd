"""What the seedings ask of rows on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cpu import seeding
from lloydia.backends.cpu.placed import NONE, Placed
from lloydia.exact import sums as exact

__all__ = ["Picks"]


class Picks(Placed):
    """Rows, and each one's D to the nearest centre picked so far."""

    def seed_start(self) -> None:
        self.nearest = np.ones(self.n_samples)
        self.n_seeds = 0
        self.largest_term = 1.0 if self.weights is NONE else float(self.weights.max())

    # -- as a part: on the grid of the whole data set ------------------------------------------

    def seed_totals(self, grid: tuple[int, int]) -> NDArray[np.int64]:
        """Return the integer sums of weight times D of consecutive blocks of rows."""
        block = self.block(2.0)
        totals = np.zeros(-(-self.n_samples // block), dtype=np.int64)

        def task(thread: int, start: int, stop: int) -> None:
            totals[start // block] = self._find(start, stop, grid, 1 << 62)[1]

        self.each_block(task, 2.0)
        return totals

    def seed_find(self, totals: NDArray[np.int64], grid: tuple[int, int], target: int) -> int:
        """Return the first row whose running sum exceeds `target`."""
        cumulative = np.cumsum(totals)
        number = int(np.searchsorted(cumulative, target, side="right"))
        before = int(cumulative[number] - totals[number])
        start = number * self.block(2.0)
        stop = min(start + self.block(2.0), self.n_samples)
        return self._find(start, stop, grid, target - before)[0]

    def _find(self, start: int, stop: int, grid: tuple[int, int], target: int) -> tuple[int, int]:
        low, high = exact.two_factors(grid[0] - grid[1])
        return seeding.draw(self.nearest, self.weights, start, stop, low, high, target)

    def seed_values(self, rows: NDArray[np.int64]) -> Any:
        """Return rows in the form that other parts take as candidates."""
        if not self.sparse:
            return self.X[rows].astype(np.float64)
        chosen = self.source[rows]
        return chosen.data, chosen.indices, chosen.indptr

    def seed_weigh(self, values: Any, count: int, grid: tuple[int, int]) -> NDArray[np.int64]:
        """Return what the total would be with each of `count` candidates as a centre."""
        totals = np.zeros((self.n_threads, count), dtype=np.int64)
        kernel = seeding.sparse_potentials if self.sparse else seeding.potentials
        low, high = exact.two_factors(grid[0] - grid[1])

        def task(thread: int, start: int, stop: int) -> None:
            kernel(
                self.X, start, stop, values, self.nearest, self.weights, low, high, totals[thread]
            )

        self.each_block(task, (1.0 + 0.5 * self.width) * count)
        return totals.sum(axis=0)

    def seed_adopt(self, values: Any) -> float:
        """Make a candidate a centre; return the largest weight times D."""
        largest = np.zeros(self.n_threads)
        kernel = seeding.sparse_add_seed if self.sparse else seeding.add_seed
        first = self.n_seeds == 0

        def task(thread: int, start: int, stop: int) -> None:
            term = kernel(self.X, start, stop, values, first, self.nearest, self.weights)
            largest[thread] = max(largest[thread], term)

        self.each_block(task, 2.0 + self.width)
        self.largest_term = float(largest.max())
        self.n_seeds += 1
        return self.largest_term

    # -- as an engine: the rows are all there is -----------------------------------------------

    def _seed_grid(self) -> tuple[int, int]:
        return exact.total_grid(self.n_samples, self.largest_term)

    def seed_draw(self, fractions: NDArray[np.float64]) -> NDArray[np.int64]:
        grid = self._seed_grid()
        totals = self.seed_totals(grid)
        total = int(totals.sum())
        if total == 0:
            return np.full(len(fractions), -1, dtype=np.int64)
        targets = [exact.fraction_of(u, total) for u in fractions.tolist()]
        return np.array([self.seed_find(totals, grid, t) for t in targets], dtype=np.int64)

    def seed_farthest(self) -> int:
        D = self.nearest if self.weights is NONE else self.nearest * (self.weights > 0)
        row = int(D.argmax())
        return row if D[row] > 0 else -1

    def seed_distance(self, row: int) -> float:
        """Return a row's D to the nearest centre so far."""
        return float(self.nearest[row])

    def seed_potentials(self, candidates: NDArray[np.int64]) -> list[int]:
        values = self.seed_values(candidates)
        return self.seed_weigh(values, len(candidates), self._seed_grid()).tolist()

    def seed_add(self, row: int) -> None:
        self.seed_adopt(self.seed_values(np.array([row], dtype=np.int64)))
