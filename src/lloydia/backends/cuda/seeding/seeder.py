"""Seeds of a data set by itself; the questions are those of an engine.

See :class:`lloydia.backends.engine.Engine`.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from lloydia.backends.cuda.seeding import oversampling
from lloydia.backends.cuda.seeding.several import SeededRows
from lloydia.backends.cuda.seeding.state import MAX_CANDIDATES, SeedingState
from lloydia.exact import sums as exact
from lloydia.progress.stages import steps

__all__ = ["Seeder"]


class Seeder:
    """A seeding of some rows, from its start.

    Attributes
    ----------
    state : SeedingState
    added_up : bool
        Whether the state's `totals` are those of its `nearest`.
    evaluated : list of int
        The rows that are candidates, if their potentials are known: `foreseen`.
    """

    def __init__(self, rows: SeededRows) -> None:
        rows.magnitudes()  # refuses NaN, of which no seed could be drawn
        self.rows, self.state = rows, SeedingState(rows)
        self.added_up = False
        self.evaluated: list[int] = []
        self.foreseen: list[int] = []

    def _changed(self) -> None:
        """Note that `nearest` has changed: the tiles' totals are stale, and so are potentials."""
        self.added_up = False
        self.evaluated = []

    # -- k-means++ ---------------------------------------------------------------------------

    def seed_draw(self, fractions: NDArray[np.float64]) -> NDArray[np.int64]:
        # The candidates of k-means++ are evaluated before the host knows which they are: it waits
        # once for both.
        count, device = len(fractions), self.rows.device
        answer = torch.zeros((2, count), dtype=torch.int64, device=device)
        self._draw(torch.as_tensor(fractions, device=device), answer[0])
        if self.state.n_seeds and count <= MAX_CANDIDATES:
            self._compute_potentials(answer[0], answer[1])
            rows, self.foreseen = answer.tolist()
            self.evaluated = rows
        else:
            rows = answer[0].tolist()
        return np.array(rows, dtype=np.int64)

    def _draw(self, fractions: torch.Tensor, rows: torch.Tensor) -> None:
        self._add_up()
        self.state.draw(fractions, rows)

    def _add_up(self) -> None:
        """Queue the sums of all tiles, unless they are those of `nearest`."""
        if not self.added_up:
            self.state.add_up()
            self.added_up = True

    def _compute_potentials(self, rows: torch.Tensor, potentials: torch.Tensor) -> None:
        """Compute the totals with each of some rows, at most MAX_CANDIDATES, as a seed."""
        self.state.fetch(rows)
        self.state.add_potentials(potentials)

    def seed_potentials(self, candidates: NDArray[np.int64]) -> list[int]:
        wanted = candidates.tolist()
        if wanted != self.evaluated:
            self.foreseen = []
            for first in range(0, len(wanted), MAX_CANDIDATES):
                self.evaluated = wanted[first : first + MAX_CANDIDATES]
                rows = torch.tensor(self.evaluated, device=self.rows.device)
                potentials = torch.zeros_like(rows)
                self._compute_potentials(rows, potentials)
                self.foreseen += potentials.tolist()
        return self.foreseen

    def seed_add(self, row: int) -> None:
        state = self.state
        if state.n_seeds == 0:
            state.nearest.fill_(float("inf"))
        best = self.foreseen.index(min(self.foreseen)) if self.evaluated else -1
        complete = best >= 0 and len(self.foreseen) == len(self.evaluated)
        known = complete and self.evaluated[best] == row
        if not known:
            state.fetch(torch.tensor([row], device=self.rows.device))
        self._accept(state.potentials if known else None)
        state.n_seeds += 1

    def _accept(self, potentials: torch.Tensor | None) -> None:
        self.state.accept_candidate(potentials)
        self._changed()

    def seed_greedy(self, fractions: NDArray[np.float64]) -> NDArray[np.int64]:
        """Do what :func:`lloydia.seeding.plusplus.greedy` does, and wait once, at the end.

        There are at most MAX_CANDIDATES candidates for each seed.
        """
        count, device = fractions.shape[1], self.rows.device
        answers = torch.zeros((len(fractions), 2, count), dtype=torch.int64, device=device)
        draws = torch.as_tensor(fractions, device=device)
        for draw, (rows, potentials) in zip(steps("centers", draws, before=1), answers):
            self._draw(draw, rows)
            self._compute_potentials(rows, potentials)
            self._accept(potentials)
        candidates, totals = answers.cpu().numpy().swapaxes(0, 1)
        chosen = np.take_along_axis(candidates, totals.argmin(axis=1)[:, None], axis=1)[:, 0]
        # Once every D is 0 nothing more is drawn, and nothing has changed.
        chosen = chosen[chosen >= 0]
        self.state.n_seeds += len(chosen)
        return chosen

    # -- k-means|| -----------------------------------------------------------------------------

    def seed_sample(self, key: int, factor: float) -> NDArray[np.int64]:
        state = self.state
        self._add_up()
        total = state.totals.sum()
        found = oversampling.chosen(
            state.nearest, self.rows.weights, state.largest, state.bits, total, key, factor
        )
        return found.cpu().numpy()

    def seed_extend(self, rows: NDArray[np.int64]) -> None:
        chosen = self.rows.X[torch.as_tensor(rows, device=self.rows.device)]
        self.state.add_centers(chosen.to(self.rows.wide))
        self._changed()

    def seed_loads(self) -> NDArray[np.int64]:
        return loads(self.rows, self.state)


def loads(rows: SeededRows, state: SeedingState) -> NDArray[np.int64]:
    """Return the integer sum of the weights of the rows nearest to each seed."""
    whole = rows.magnitudes()
    grid = exact.total_grid(whole.n_samples, whole.largest_weight)
    assert state.owners is not None
    return oversampling.loads(state.owners, rows.weights, state.n_seeds, grid).cpu().numpy()
