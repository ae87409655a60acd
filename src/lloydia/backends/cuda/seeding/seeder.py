"""The seeder of an engine, on its GPU; see :class:`lloydia.backends.engine.Engine`."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from lloydia.backends.cuda.runtime.own_device import current
from lloydia.backends.cuda.runtime.recording import Recording
from lloydia.backends.cuda.seeding import oversampling
from lloydia.backends.cuda.seeding.several import SeededRows
from lloydia.backends.cuda.seeding.state import MAX_CANDIDATES, SeedingState
from lloydia.backends.seeded import SeedingAbilities
from lloydia.exact import sums as exact
from lloydia.progress.stages import steps

__all__ = ["Seeder"]


class Seeder(SeedingAbilities):
    """The seedings of the rows of a complete data set, one after the other.

    Parameters
    ----------
    rows : SeededRows

    Attributes
    ----------
    added_up : bool
        Whether the state's `totals` are those of its `nearest`.
    """

    def __init__(self, rows: SeededRows) -> None:
        self.rows = rows
        self.added_up = False
        self._state: SeedingState | None = None

    @property
    def state(self) -> SeedingState:
        """The state of the seeding that was started last."""
        assert self._state is not None, "A seeding begins with seed_start."
        return self._state

    def forget_seeds(self) -> None:
        """Release the memory of the last seeding."""
        self._state = None

    def seed_start(self) -> None:
        with current(self.rows.device):
            self.forget_seeds()  # Its memory is for the next one.
            self.rows.magnitudes()  # refuses NaN, of which no seed could be drawn
            self._state, self.added_up = SeedingState(self.rows), False

    def _add_up(self) -> None:
        """Queue the sums of all tiles, unless they are up to date with `nearest`."""
        if not self.added_up:
            self.state.add_up()
            self.added_up = True

    def _values(self, rows: NDArray[np.int64]) -> torch.Tensor:
        """Return rows as candidates, on the device."""
        chosen = self.rows.X[torch.as_tensor(rows, device=self.rows.device)]
        return chosen.to(self.rows.wide)

    # -- k-means++ and farthest-first ----------------------------------------------------------

    def seed_draw(self, fractions: NDArray[np.float64]) -> NDArray[np.int64]:
        device = self.rows.device
        with current(device):
            self._add_up()
            draws = torch.as_tensor(fractions, device=device)
            rows = torch.empty(len(fractions), dtype=torch.int64, device=device)
            self.state.draw(draws, rows)
            return rows.cpu().numpy()

    def seed_potentials(self, candidates: NDArray[np.int64]) -> list[int]:
        with current(self.rows.device):
            self._add_up()
            firsts = range(0, len(candidates), MAX_CANDIDATES)
            parts = [candidates[first : first + MAX_CANDIDATES] for first in firsts]
            changes = torch.cat([self.state.evaluate(self._values(part)) for part in parts])
            return (self.state.totals.sum() + changes).tolist()

    def seed_add(self, row: int) -> None:
        with current(self.rows.device):
            state, candidate = self.state, self._values(np.array([row]))
            if state.n_seeds == 0:
                state.accept_first(candidate)
            else:
                state.accept(state.evaluate(candidate))
            self.added_up = True

    def seed_greedy(self, fractions: NDArray[np.float64]) -> NDArray[np.int64] | None:
        """Do what :func:`lloydia.seeding.plusplus.greedy` does, and wait once, at the end.

        Returns None for more than MAX_CANDIDATES candidates for each seed.
        """
        n_steps, n_draws = fractions.shape
        if n_draws > MAX_CANDIDATES:
            return None
        if n_steps == 0:
            return np.empty(0, dtype=np.int64)
        device = self.rows.device
        with current(device):
            self._add_up()
            answers = torch.zeros((2, *fractions.shape), dtype=torch.int64, device=device)
            draws = torch.as_tensor(fractions, device=device)
            stages, recording = self.state.begin_steps(draws, *answers), Recording()
            for _ in steps("centers", fractions, before=1):
                recording.do(lambda: stages, device)
            candidates, changes = answers.cpu().numpy()
        chosen = np.take_along_axis(candidates, changes.argmin(axis=1)[:, None], axis=1)[:, 0]
        # Once every D is 0 nothing more is drawn, and nothing has changed.
        chosen = chosen[chosen >= 0]
        self.state.n_seeds += len(chosen)
        return chosen

    def seed_farthest(self) -> int:
        with current(self.rows.device):
            return self.state.top()[0]

    # -- k-means|| -----------------------------------------------------------------------------

    def seed_sample(self, key: int, factor: float) -> NDArray[np.int64]:
        state = self.state
        with current(self.rows.device):
            self._add_up()
            total = state.totals.sum()
            found = oversampling.chosen(
                state.nearest, self.rows.weights, state.largest, state.bits, total, key, factor
            )
            return found.cpu().numpy()

    def seed_extend(self, rows: NDArray[np.int64]) -> None:
        with current(self.rows.device):
            self.state.add_centers(self._values(rows))
            self.added_up = False

    def seed_loads(self) -> NDArray[np.int64]:
        with current(self.rows.device):
            return loads(self.rows, self.state)


def loads(rows: SeededRows, state: SeedingState) -> NDArray[np.int64]:
    """Return the integer sum of the weights of the rows nearest to each seed."""
    whole = rows.magnitudes()
    grid = exact.total_grid(whole.n_samples, whole.largest_weight)
    assert state.owners is not None
    return oversampling.loads(state.owners, rows.weights, state.n_seeds, grid).cpu().numpy()
