"""Potentials of candidates by the sketch of the rows, where that excludes most pairs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cpu.seeding.protocols import SeedingState
from lloydia.backends.cpu.seeding.screen import aligned
from lloydia.backends.cpu.seeding.sketch import Sketch
from lloydia.backends.cpu.seeding.sketched import accept_candidate, evaluate_candidates
from lloydia.backends.cpu.seeding.weights import MAX_CANDIDATES

__all__ = ["SketchedPotentials"]

# While the sketch leaves more than a candidate a row to evaluate, which takes as long as the screen
# of all candidates, so many evaluations pass before it is tried on one tile of so many.
IDLE, TRIED_TILES = 16, 16


class SketchedPotentials:
    """Sketches of the rows, and whether they pay.

    Parameters
    ----------
    seeder : SeedingState
    hits, counts : ndarray
        Those of :class:`wide_potentials.WidePotentials`.

    Attributes
    ----------
    values : ndarray of shape (m, d), float64
        The last candidates.
    idle : int
        Evaluations that are left to the screen before the sketch is tried again.
    pays : bool
        Whether it excluded enough when it was last used.
    """

    def __init__(
        self, seeder: SeedingState, hits: NDArray[np.uint32], counts: NDArray[np.int64]
    ) -> None:
        self.seeder, self.hits, self.counts = seeder, hits, counts
        self.sketch = Sketch(seeder.dataset)
        self.sketch.pack(seeder.nearest)
        self.idle, self.pays = 0, False

    def take(self, values: NDArray) -> bool:
        """Take candidates; return whether the sketch should evaluate them."""
        self.values = np.ascontiguousarray(values, np.float64)
        if self.idle:
            self.idle -= 1
            return False
        self.candidates, self.bound = self.sketch.load(values)
        if not self.pays:
            n_tiles = max(1, self.seeder.n_tiles // TRIED_TILES)
            unused = aligned((1, MAX_CANDIDATES), np.int64)
            n_evaluated = self._evaluate(0, n_tiles, 1.0, 1.0, unused[0])
            self._note(n_evaluated, n_tiles)
        return self.pays

    def _note(self, n_evaluated: int, n_tiles: int) -> None:
        """Note how many pairs were evaluated in some tiles."""
        rows = self.seeder.dataset.n_samples * n_tiles / self.seeder.n_tiles
        self.pays = n_evaluated <= rows
        self.idle = 0 if self.pays else IDLE

    def _evaluate(
        self, first: int, last: int, low: float, high: float, reductions: NDArray[np.int64]
    ) -> int:
        seeder, sketch = self.seeder, self.sketch
        groups, squares, _ = sketch.rows
        return evaluate_candidates(
            seeder.dataset.X, first, last, len(self.values), (groups, squares, sketch.thresholds),
            self.candidates, self.bound, self.values, seeder.nearest, seeder.dataset.weights,
            low, high, self.hits, self.counts, reductions,
        )  # fmt: skip

    def reductions(self, low: float, high: float) -> NDArray[np.int64]:
        """Return by how much each of the candidates taken lowers the total."""
        seeder, n_threads = self.seeder, self.seeder.dataset.n_threads
        reductions = aligned((n_threads, MAX_CANDIDATES), np.int64)
        n_evaluated = [0] * n_threads

        def task(thread: int, first: int, last: int) -> None:
            n_evaluated[thread] += self._evaluate(first, last, low, high, reductions[thread])

        seeder.each_tile(task, 1.0 + 0.02 * self.sketch.n_quads * len(self.values))
        self._note(sum(n_evaluated), seeder.n_tiles)
        return reductions.sum(axis=0)

    def accept(self, j: int, low: float, high: float) -> None:
        """Make candidate `j` of those taken a seed."""
        seeder, sketch = self.seeder, self.sketch
        sketched = (sketch.rows[2], sketch.unit, sketch.thresholds)
        seeder.each_tile(
            lambda t, a, b: accept_candidate(
                seeder.dataset.X, a, b, self.values, j, seeder.nearest, seeder.dataset.weights,
                low, high, sketched, self.hits, self.counts, seeder.totals, seeder.tops,
            ), 1.0,
        )  # fmt: skip
