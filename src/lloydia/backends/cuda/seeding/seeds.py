"""The seeder of an engine, on its GPU; see :class:`lloydia.backends.engine.Engine`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cuda.runtime.own_device import current
from lloydia.backends.cuda.seeding.seeder import Seeder
from lloydia.backends.cuda.seeding.several import SeededRows
from lloydia.backends.cuda.seeding.state import MAX_CANDIDATES
from lloydia.backends.seeded import SeedingAbilities

__all__ = ["Seeds"]


class Seeds(SeedingAbilities):
    """The seeding methods of an engine of one data set: a :class:`Seeder` on the rows' GPU.

    Parameters
    ----------
    rows : SeededRows
    """

    def __init__(self, rows: SeededRows) -> None:
        self.seeded = rows
        self._seeder: Seeder | None = None

    @property
    def seeder(self) -> Seeder:
        """The seeding that was started last."""
        assert self._seeder is not None, "A seeding begins with seed_start."
        return self._seeder

    def forget_seeds(self) -> None:
        """Release the memory of the last seeding."""
        self._seeder = None

    def seed_start(self) -> None:
        with current(self.seeded.device):
            self._seeder = None  # Its memory is for the next one.
            self._seeder = Seeder(self.seeded)

    def seed_draw(self, fractions: NDArray[np.float64]) -> NDArray[np.int64]:
        with current(self.seeded.device):
            return self.seeder.seed_draw(fractions)

    def seed_greedy(self, fractions: NDArray[np.float64]) -> NDArray[np.int64] | None:
        if fractions.shape[1] > MAX_CANDIDATES:
            return None
        with current(self.seeded.device):
            return self.seeder.seed_greedy(fractions)

    def seed_potentials(self, candidates: NDArray[np.int64]) -> list[int]:
        with current(self.seeded.device):
            return self.seeder.seed_potentials(candidates)

    def seed_add(self, row: int) -> None:
        with current(self.seeded.device):
            self.seeder.seed_add(row)

    def seed_farthest(self) -> int:
        with current(self.seeded.device):
            return self.seeder.state.top()[0]

    def seed_sample(self, key: int, factor: float) -> NDArray[np.int64]:
        with current(self.seeded.device):
            return self.seeder.seed_sample(key, factor)

    def seed_extend(self, rows: NDArray[np.int64]) -> None:
        with current(self.seeded.device):
            self.seeder.seed_extend(rows)

    def seed_loads(self) -> NDArray[np.int64]:
        with current(self.seeded.device):
            return self.seeder.seed_loads()
