"""What the seedings ask of rows on the CPU."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cpu.rows.placed import NONE, Placed
from lloydia.backends.cpu.seeding import weights as seeding
from lloydia.backends.cpu.seeding.greedy import AT_ONCE, FEW, greedy_of
from lloydia.backends.cpu.seeding.weights import LOW, MOST, TILE
from lloydia.exact import sums as exact
from lloydia.imports import load

if TYPE_CHECKING:
    from lloydia.backends.cpu.seeding.low_seeds import LowSeeds
    from lloydia.backends.cpu.seeding.sparse_seeds import SparseSeeds
    from lloydia.backends.cpu.seeding.wide_seeds import WideSeeds

__all__ = ["Picks"]


class Picks(Placed):
    """Rows, and each one's D to the nearest seed.

    Attributes
    ----------
    nearest : ndarray of shape (n,)
        The D; 1 before the first seed.
    totals : ndarray of shape (n_tiles,), int64
        Integer sums of weight times D, on the grid `totals_grid`; stale where that is None.
    tops : ndarray of shape (n_tiles,)
        Largest weight times D of each tile; NaN where it must be looked for.
    largest_term : float
        Largest weight times D.
    rivals : LowSeeds, WideSeeds or SparseSeeds
        How candidates are weighed.
    owners : ndarray of shape (n,), int32
        Each row's nearest seed, where several were added at once.
    """

    rivals: LowSeeds | WideSeeds | SparseSeeds
    owners: NDArray[np.int32]

    def seed_start(self) -> float:
        self.n_tiles = -(-self.n_samples // TILE)
        self.nearest = np.ones(self.n_samples)
        self.totals = np.empty(self.n_tiles, dtype=np.int64)
        self.tops = np.empty(self.n_tiles)
        self.terms = np.empty((self.n_threads, TILE))
        self.candidates: list[int] = []
        self.n_seeds = 0
        self.stale()
        if self.weights is NONE:
            self.tops.fill(1.0)
        return self.look()

    def forget_seeds(self) -> None:
        """Give back what the seeding needed; it starts anew with :meth:`seed_start`."""
        for name in ("nearest", "rivals", "owners"):
            self.__dict__.pop(name, None)

    def each_tile(self, task: Callable[[int, int, int], None], cost: float) -> None:
        """Run a task over blocks of tiles; `cost` is a guess at the nanoseconds a row takes."""
        self.each_block(task, cost * TILE, self.n_tiles)

    def stale(self) -> None:
        """Note that totals and tops are not those of `nearest`."""
        self.totals_grid: tuple[int, int] | None = None
        self.tops.fill(np.nan)

    def survey(self, grid: tuple[int, int]) -> None:
        """Find the totals and tops of the tiles whose top is unknown."""
        factors, bits = self._factors(grid), self.terms.view(np.int64)
        self.each_tile(
            lambda t, a, b: seeding.survey(
                self.nearest, self.weights, a, b, *factors, self.terms[t], bits[t],
                self.totals, self.tops,
            ), 1.0,
        )  # fmt: skip

    def look(self) -> float:
        """Return the largest top."""
        largest = float(self.tops.max())
        if math.isnan(largest):
            self.survey(self.totals_grid or (0, 0))
            largest = float(self.tops.max())
        self.largest_term = largest
        return largest

    # -- as a part: on the grid of the whole data set ------------------------------------------

    def seed_total(self, grid: tuple[int, int]) -> int:
        """Return the integer sum of weight times D."""
        if self.totals_grid != grid:
            self.tops.fill(np.nan)
            self.survey(grid)
            self.totals_grid = grid
        return int(self.totals.sum())

    def _factors(self, grid: tuple[int, int]) -> tuple[float, float]:
        return exact.two_factors(grid[0] - grid[1])

    def seed_find(self, targets: NDArray[np.int64], grid: tuple[int, int]) -> NDArray[np.int64]:
        """Return for each target the first row whose running sum exceeds it."""
        rows = np.empty(len(targets), dtype=np.int64)
        factors = self._factors(grid)
        seeding.draw(self.nearest, self.weights, self.totals, *factors, targets, rows)
        return rows

    def seed_values(self, rows: NDArray[np.int64]) -> Any:
        """Return rows in the form that other parts take as candidates."""
        return self.source[rows]

    def seed_weigh(self, values: Any, grid: tuple[int, int]) -> NDArray[np.int64]:
        """Return what the total would be with each candidate as a seed."""
        total, factors = self.seed_total(grid), self._factors(grid)
        self.values, potentials = values, np.full(values.shape[0], total)
        for self.weighed in range(0, values.shape[0], MOST):
            some = slice(self.weighed, self.weighed + MOST)
            potentials[some] -= self.rivals.weigh(values[some], *factors)
        return potentials

    def seed_first(self, values: Any) -> float:
        """Make a candidate the only seed; return the largest weight times D."""
        if self.sparse:
            self.rivals = load("lloydia.backends.cpu.seeding.sparse_seeds").SparseSeeds(self)
        elif self.n_features <= LOW and self.source.flags.c_contiguous:
            # They are taken end to end.
            self.rivals = load("lloydia.backends.cpu.seeding.low_seeds").LowSeeds(self)
        else:
            self.rivals = load("lloydia.backends.cpu.seeding.wide_seeds").WideSeeds(self)
        self.rivals.first(values)
        self.n_seeds = 1
        return self.look()

    def seed_top(self) -> tuple[int, float]:
        """Return the row of positive weight with the largest D to its seed, and that D."""
        D = self.nearest if self.weights is NONE else self.nearest * (self.weights > 0)
        row = int(D.argmax())
        return row if D[row] > 0 else -1, float(D[row])

    def seed_adopt(self, j: int) -> float:
        """Make candidate `j` of those weighed last a seed; return the largest weight times D."""
        assert self.totals_grid is not None
        factors = self._factors(self.totals_grid)
        if j < self.weighed:
            self.weighed = j
            self.rivals.weigh(self.values[j : j + 1], *factors)
        self.rivals.adopt(j - self.weighed, *factors)
        self.n_seeds += 1
        return self.look()

    # -- as an engine: the rows are all there is -----------------------------------------------

    def seed_plusplus(
        self, first: NDArray[np.float64], fractions: NDArray[np.float64]
    ) -> NDArray[np.int64] | None:
        """Choose the rows of k-means++, if they are few; no seeds are left behind."""
        few = self.n_samples <= FEW and self.n_features <= LOW
        quick = self.n_samples * fractions.size <= AT_ONCE
        if not (few and quick) or self.sparse or not self.source.flags.c_contiguous:
            return None
        rows, terms = np.empty(1 + len(fractions), dtype=np.int64), np.empty(TILE)
        n_tiles = -(-self.n_samples // TILE)
        room = np.empty((self.n_features + 3, n_tiles * TILE))
        count = greedy_of(self.n_features)(
            self.source.reshape(-1), self.weights, float(first[0]), fractions,
            exact.bits_a_limb(self.n_samples), rows, terms, terms.view(np.int64), room,
            *np.empty((2, n_tiles), dtype=np.int64),
        )  # fmt: skip
        return rows[:count]

    def terms_grid(self) -> tuple[int, int]:
        """Return the grid of weight times D."""
        return exact.total_grid(self.n_samples, self.largest_term)

    def seed_draw(self, fractions: NDArray[np.float64]) -> NDArray[np.int64]:
        grid = self.terms_grid()
        total = self.seed_total(grid)
        if total == 0:
            return np.full(len(fractions), -1, dtype=np.int64)
        targets = [exact.fraction_of(u, total) for u in fractions.tolist()]
        return self.seed_find(np.array(targets, dtype=np.int64), grid)

    def seed_farthest(self) -> int:
        return self.seed_top()[0]

    def seed_potentials(self, candidates: NDArray[np.int64]) -> list[int]:
        self.candidates = candidates.tolist()
        return self.seed_weigh(self.seed_values(candidates), self.terms_grid()).tolist()

    def seed_add(self, row: int) -> None:
        if self.n_seeds == 0:
            self.seed_first(self.seed_values(np.array([row])))
            return
        if row not in self.candidates:
            self.seed_potentials(np.array([row]))
        self.seed_adopt(self.candidates.index(row))
        self.candidates = []
