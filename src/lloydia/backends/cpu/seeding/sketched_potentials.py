"""Potentials of candidates by the sketch of the rows, where that excludes most pairs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cpu.seeding.gains import best_of, margins_of, unit_of
from lloydia.backends.cpu.seeding.protocols import SeedingState
from lloydia.backends.cpu.seeding.screen import aligned
from lloydia.backends.cpu.seeding.sketch import Sketch
from lloydia.backends.cpu.seeding.sketched import (
    accept_candidate,
    bound_gains,
    evaluate_candidates,
)
from lloydia.backends.cpu.seeding.weights import MAX_CANDIDATES

__all__ = ["SketchedPotentials"]

# If the sketch leaves more than MAX_EVALUATED candidates per row to evaluate, which takes as long
# as the screen of all rows, the screen does the next IDLE evaluations.  Then the sketch is tried on
# one tile of TRIED_TILES.
MAX_EVALUATED, IDLE, TRIED_TILES = 2, 2, 16


class SketchedPotentials:
    """The sketches of the rows, and whether they pay.

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
        self.sketch = Sketch(seeder.dataset, seeder.sketch_columns)
        self.sketch.pack(seeder.nearest)
        self.unit = seeder.dataset.dtype.type(unit_of(1.0 / self.sketch.frame[1]))
        self.margins = margins_of(seeder.dataset.n_features)
        self.idle, self.pays = 0, False

    def take(self, values: NDArray) -> bool:
        """Take candidates; return whether the sketch should evaluate them."""
        self.values = np.ascontiguousarray(values, np.float64)
        if self.idle:
            self.idle -= 1
            return False
        self.candidates, error = self.sketch.load(values)
        self.limits = self.sketch.limits_for(self.seeder.nearest, error)
        # A product with a power of two that is too small for the type is covered by the margins.
        self.scaled = np.ascontiguousarray(values * self.unit)
        if not self.pays:
            n_tiles = max(1, self.seeder.n_tiles // TRIED_TILES)
            self._note(self._bound(0, n_tiles, np.zeros((2, MAX_CANDIDATES))), n_tiles)
        return self.pays

    def _note(self, n_evaluated: int, n_tiles: int) -> None:
        """Note how many pairs were evaluated in some tiles."""
        rows = self.seeder.dataset.n_samples * n_tiles / self.seeder.n_tiles
        self.pays = n_evaluated <= MAX_EVALUATED * rows
        self.idle = 0 if self.pays else IDLE

    def _bound(self, first: int, last: int, gains: NDArray[np.float64]) -> int:
        seeder, sketch = self.seeder, self.sketch
        return bound_gains(
            seeder.dataset.X, first, last, sketch.rows[0], self.limits, self.candidates,
            self.scaled, self.unit, self.margins, seeder.nearest, seeder.dataset.weights,
            self.hits, self.counts, gains,
        )  # fmt: skip

    def _gains(self) -> NDArray[np.float64]:
        """Return gains and S of the candidates taken, and list the rows that they may lower."""
        n_threads = self.seeder.dataset.n_threads
        gains, n_evaluated = np.zeros((n_threads, 2, MAX_CANDIDATES)), [0] * n_threads

        def task(thread: int, first: int, last: int) -> None:
            n_evaluated[thread] += self._bound(first, last, gains[thread])

        cost = 1.0 + 0.02 * self.sketch.n_quads * len(self.values)
        self.seeder.each_tile(task, cost)
        self._note(sum(n_evaluated), self.seeder.n_tiles)
        return gains.sum(axis=0)[:, : len(self.values)]

    def best(self, low: float, high: float) -> int:
        """Return the candidate of those taken that lowers the total most."""
        n, unit = self.seeder.dataset.n_samples, float(self.unit)
        gains, quantum = self._gains(), unit * unit / low / high
        return best_of(
            gains, self.margins, n, quantum, lambda some: self._evaluate(some, low, high)[some]
        )

    def _evaluate(self, some: NDArray[np.int64], low: float, high: float) -> NDArray[np.int64]:
        """Return by how much candidates lower the total; some of them, from the rows listed."""
        seeder, chosen = self.seeder, int((1 << some).sum())
        reductions = aligned((seeder.dataset.n_threads, MAX_CANDIDATES), np.int64)
        seeder.each_tile(
            lambda t, a, b: evaluate_candidates(
                seeder.dataset.X, a, b, self.values, chosen, seeder.nearest,
                seeder.dataset.weights, low, high, self.hits, self.counts, reductions[t],
            ), 2.0,
        )  # fmt: skip
        return reductions.sum(axis=0)

    def reductions(self, low: float, high: float) -> NDArray[np.int64]:
        """Return by how much each of the candidates taken lowers the total."""
        self._gains()
        return self._evaluate(np.arange(len(self.values)), low, high)

    def accept(self, j: int, low: float, high: float) -> None:
        """Make candidate `j` of those taken a seed."""
        seeder, sketch = self.seeder, self.sketch
        _, squares, errors = sketch.rows
        sketched = squares, errors, sketch.unit, sketch.error
        seeder.each_tile(
            lambda t, a, b: accept_candidate(
                seeder.dataset.X, a, b, self.values, j, seeder.nearest, seeder.dataset.weights,
                low, high, sketched, sketch.limits, self.hits, self.counts, seeder.totals,
                seeder.tops,
            ), 1.0,
        )  # fmt: skip
