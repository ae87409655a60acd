"""The state of a seeding: each row's D to the nearest seed, and draws by it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cpu.rows.dataset import NONE, Dataset
from lloydia.backends.cpu.runtime.compiled import is_compiled
from lloydia.backends.cpu.seeding import weights as seeding
from lloydia.backends.cpu.seeding.greedy import MAX_DISTANCES, MAX_ROWS, greedy_of
from lloydia.backends.cpu.seeding.weights import LOW_DIM, MAX_CANDIDATES, TILE
from lloydia.backends.seeded import SeedingAbilities
from lloydia.exact import sums as exact
from lloydia.imports import load

if TYPE_CHECKING:
    from lloydia.backends.cpu.seeding.low_potentials import LowPotentials
    from lloydia.backends.cpu.seeding.sketch import Sketch
    from lloydia.backends.cpu.seeding.sparse_potentials import SparsePotentials
    from lloydia.backends.cpu.seeding.wide_potentials import WidePotentials

__all__ = ["Seeder"]

# k-means||, imported when it is first used.
OVERSAMPLING = "lloydia.backends.cpu.seeding.oversampling"

# Columns of a sketch that is shorter than the row (a byte each), the other bytes of a sketch, and
# the most features that its error bound allows; those of :mod:`sketch`, which is imported when it
# is first used.
SKETCH_WIDTH, SKETCH_BYTES, MAX_SKETCHED_FEATURES = 64, 16, 2**16

NearestOf = Callable[[NDArray], NDArray[np.int32]]


class Seeder(SeedingAbilities):
    """Each row's D to the nearest seed, and draws in proportion to weight times D.

    The methods are those of :class:`lloydia.backends.part.Part` and, where the data set has all
    rows, of :class:`lloydia.backends.engine.Engine`.

    Parameters
    ----------
    dataset : Dataset
    nearest_of : callable
        Returns the label of every row's nearest centre, for centres of shape (m, d).
    spare : float
        Bytes per row that sketches of the rows may take.

    Attributes
    ----------
    nearest : ndarray of shape (n,)
        The D; 1 before the first seed.
    totals : ndarray of shape (n_tiles,), int64
        Integer sums of weight times D, on the grid `totals_grid`; stale where that is None.
    tops : ndarray of shape (n_tiles,)
        Largest weight times D of each tile; NaN where it is not known.
    terms : ndarray of shape (n_threads, TILE), float64
        Scratch of each thread.
    largest_term : float
        Largest weight times D.
    n_expected : int
        Seeds that will follow, as far as the seeding knows.
    potentials : LowPotentials, WidePotentials or SparsePotentials
        How candidates are evaluated.
    owners : ndarray of shape (n,), int32
        Each row's nearest seed, where several were added at once.
    sketch : Sketch or None
        Sketches of the rows, where several seeds were added to many rows.
    """

    potentials: LowPotentials | WidePotentials | SparsePotentials
    owners: NDArray[np.int32]

    def __init__(self, dataset: Dataset, nearest_of: NearestOf, spare: float = 0.0) -> None:
        self.dataset, self.nearest_of, self.spare = dataset, nearest_of, spare
        self.n_expected = 0

    @property
    def sketch_columns(self) -> int:
        """The most columns that sketches of the rows may have; 0: no sketches are allowed.

        Sketches of all rows take at most half of the memory that is free.
        """
        d = self.dataset.n_features
        if self.dataset.sparse or d > MAX_SKETCHED_FEATURES:
            return 0
        free = load("lloydia.data.chunks.memory").available() / (2 * self.dataset.n_samples)
        columns = min(self.spare, free) - SKETCH_BYTES
        return int(min(columns, d)) if columns >= min(d, SKETCH_WIDTH) else 0

    def seed_start(self) -> float:
        self.n_tiles = -(-self.dataset.n_samples // TILE)
        self.nearest = np.ones(self.dataset.n_samples)
        self.totals = np.empty(self.n_tiles, dtype=np.int64)
        self.tops = np.empty(self.n_tiles)
        self.terms = np.empty((self.dataset.n_threads, TILE))
        self.candidates: list[int] = []
        self.n_seeds = 0
        self.sketch: Sketch | None = None
        self.stale()
        if self.dataset.weights is NONE:
            self.tops.fill(1.0)
        return self.find_largest_term()

    def forget(self) -> None:
        """Free the memory of the seeding; the next one begins with :meth:`seed_start`."""
        self.n_expected = 0
        for name in ("nearest", "potentials", "owners", "sketch"):
            self.__dict__.pop(name, None)

    def each_tile(self, task: Callable[[int, int, int], None], cost: float) -> None:
        """Run a task over blocks of tiles; `cost` estimates the nanoseconds a row takes."""
        self.dataset.each_block(task, cost * TILE, self.n_tiles)

    def stale(self) -> None:
        """Mark totals and tops as out of date with `nearest`."""
        self.totals_grid: tuple[int, int] | None = None
        self.tops.fill(np.nan)

    def survey(self, grid: tuple[int, int]) -> None:
        """Find the totals and tops of the tiles whose top is unknown."""
        factors, bits = factors_of(grid), self.terms.view(np.int64)
        self.each_tile(
            lambda t, a, b: seeding.survey(
                self.nearest, self.dataset.weights, a, b, *factors, self.terms[t], bits[t],
                self.totals, self.tops,
            ), 1.0,
        )  # fmt: skip

    def find_largest_term(self) -> float:
        """Return the largest weight times D, and keep it as `largest_term`."""
        largest = float(self.tops.max())
        if math.isnan(largest):
            self.survey(self.totals_grid or (0, 0))
            largest = float(self.tops.max())
        self.largest_term = largest
        return largest

    # -- a Part: integers are on the grid of all parts ------------------------------------------

    def seed_total(self, grid: tuple[int, int]) -> int:
        """Return the integer sum of weight times D."""
        if self.totals_grid != grid:
            self.tops.fill(np.nan)
            self.survey(grid)
            self.totals_grid = grid
        return int(self.totals.sum())

    def seed_find(self, targets: NDArray[np.int64], grid: tuple[int, int]) -> NDArray[np.int64]:
        """Return for each target the first row whose running sum exceeds it."""
        rows = np.empty(len(targets), dtype=np.int64)
        factors = factors_of(grid)
        seeding.draw(self.nearest, self.dataset.weights, self.totals, *factors, targets, rows)
        return rows

    def seed_values(self, rows: NDArray[np.int64]) -> Any:
        """Return rows in the form that other parts take as candidates."""
        return self.dataset.source[rows]

    def seed_potentials_of(self, values: Any, grid: tuple[int, int]) -> NDArray[np.int64]:
        """Return what the total would be with each candidate as a seed."""
        total, factors = self.seed_total(grid), factors_of(grid)
        self.values, potentials = values, np.full(values.shape[0], total)
        for self.first_evaluated in range(0, values.shape[0], MAX_CANDIDATES):
            some = slice(self.first_evaluated, self.first_evaluated + MAX_CANDIDATES)
            potentials[some] -= self.potentials.reductions(values[some], *factors)
        return potentials

    def seed_first(self, values: Any) -> float:
        """Make a candidate the only seed; return the largest weight times D."""
        if self.dataset.sparse:
            self.potentials = load(
                "lloydia.backends.cpu.seeding.sparse_potentials"
            ).SparsePotentials(self)
        elif self.dataset.n_features <= LOW_DIM and self.dataset.source.flags.c_contiguous:
            # Its kernels read contiguous rows.
            self.potentials = load("lloydia.backends.cpu.seeding.low_potentials").LowPotentials(
                self
            )
        else:
            self.potentials = load("lloydia.backends.cpu.seeding.wide_potentials").WidePotentials(
                self
            )
        self.potentials.first(values)
        self.n_seeds = 1
        return self.find_largest_term()

    def seed_top(self) -> tuple[int, float]:
        """Return the row of positive weight with the largest D to its seed, and that D."""
        D = (
            self.nearest
            if self.dataset.weights is NONE
            else self.nearest * (self.dataset.weights > 0)
        )
        row = int(D.argmax())
        return row if D[row] > 0 else -1, float(D[row])

    def seed_accept(self, j: int) -> float:
        """Make candidate `j` of the last potentials a seed; return the largest weight times D."""
        assert self.totals_grid is not None
        factors = factors_of(self.totals_grid)
        if j < self.first_evaluated:
            self.first_evaluated = j
            self.potentials.reductions(self.values[j : j + 1], *factors)
        self.potentials.accept(j - self.first_evaluated, *factors)
        self.n_seeds += 1
        self.n_expected = max(self.n_expected - 1, 0)
        return self.find_largest_term()

    # -- an Engine: the data set has all rows ---------------------------------------------------

    def seed_plusplus(
        self, first: NDArray[np.float64], fractions: NDArray[np.float64]
    ) -> NDArray[np.int64] | None:
        """Choose the rows of k-means++ in one kernel, without a state of seeds; None for many."""
        quick = self.dataset.n_samples * fractions.size <= MAX_DISTANCES
        if not (quick and self._in_one_kernel):
            self.n_expected = len(fractions)
            return None
        rows, terms = np.empty(1 + len(fractions), dtype=np.int64), np.empty(TILE)
        n_tiles = -(-self.dataset.n_samples // TILE)
        scratch = np.empty((self.dataset.n_features + 3, n_tiles * TILE))
        count = greedy_of(self.dataset.n_features)(
            self.dataset.source.reshape(-1), self.dataset.weights, float(first[0]), fractions,
            exact.bits_a_limb(self.dataset.n_samples), rows, terms, terms.view(np.int64), scratch,
            *np.empty((2, n_tiles), dtype=np.int64),
        )  # fmt: skip
        return rows[:count]

    @property
    def _in_one_kernel(self) -> bool:
        """Whether one kernel can do all of k-means++."""
        dataset = self.dataset
        few = dataset.n_samples <= MAX_ROWS and dataset.n_features <= LOW_DIM
        return few and not dataset.sparse and dataset.source.flags.c_contiguous

    @property
    def is_compiled(self) -> bool:
        """Whether kernels of k-means++ were compiled, in this process or an earlier one."""
        one = self._in_one_kernel
        return is_compiled(greedy_of(self.dataset.n_features) if one else seeding.survey)

    def terms_grid(self) -> tuple[int, int]:
        """Return the grid of weight times D."""
        return exact.total_grid(self.dataset.n_samples, self.largest_term)

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
        return self.seed_potentials_of(self.seed_values(candidates), self.terms_grid()).tolist()

    def seed_best(self, candidates: NDArray[np.int64]) -> int | None:
        """Return which candidate has the lowest potential; None: compare the potentials."""
        if len(candidates) > MAX_CANDIDATES:
            return None
        grid = self.terms_grid()
        # Accepting the candidate updates the sums on this grid.
        self.seed_total(grid)
        self.candidates, self.first_evaluated = candidates.tolist(), 0
        self.values = self.seed_values(candidates)
        return self.potentials.best(self.values, *factors_of(grid))

    def seed_add(self, row: int) -> None:
        if self.n_seeds == 0:
            self.seed_first(self.seed_values(np.array([row])))
            return
        if row not in self.candidates:
            self.seed_potentials(np.array([row]))
        self.seed_accept(self.candidates.index(row))
        self.candidates = []

    # -- k-means|| -----------------------------------------------------------------------------

    def seed_choose(
        self, key: int, factor: float, total: int, before: int, grid: tuple[int, int]
    ) -> NDArray[np.int64]:
        """Choose rows independently; `before` rows of other parts precede them."""
        return load(OVERSAMPLING).sample(self, key, factor, total, before, grid)

    def seed_extend_by(self, centers: NDArray) -> float:
        """Make several rows, dense, seeds; return the largest weight times D."""
        centers = np.ascontiguousarray(centers, dtype=self.dataset.dtype)
        load(OVERSAMPLING).extend(self, centers)
        return self.find_largest_term()

    def seed_sample(self, key: int, factor: float) -> NDArray[np.int64]:
        grid = self.terms_grid()
        return self.seed_choose(key, factor, self.seed_total(grid), 0, grid)

    def seed_extend(self, rows: NDArray[np.int64]) -> None:
        self.seed_extend_by(self.dataset.rows(rows))

    def seed_loads(self) -> NDArray[np.int64]:
        return load(OVERSAMPLING).loads(self)


def factors_of(grid: tuple[int, int]) -> tuple[float, float]:
    """Return two powers of two whose product brings a term to the grid."""
    return exact.two_factors(grid[0] - grid[1])
