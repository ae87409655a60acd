"""The questions of a seeding, passed on to the object that has its state: a seeder."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Seeded", "Seeder", "SeedingAbilities"]


class SeedingAbilities(Protocol):
    """What not every seeder can do; see :class:`lloydia.backends.engine.Abilities`."""

    def seed_greedy(self, fractions: NDArray[np.float64]) -> NDArray[np.int64] | None:
        """Return None: it cannot."""
        return None

    def seed_best(self, candidates: NDArray[np.int64]) -> int | None:
        """Return None: it cannot."""
        return None

    def seed_plusplus(
        self, first: NDArray[np.float64], fractions: NDArray[np.float64]
    ) -> NDArray[np.int64] | None:
        """Return None: it cannot."""
        return None


class Seeder(SeedingAbilities, Protocol):
    """A seeding of the rows of an engine; see :class:`lloydia.backends.engine.Engine`."""

    def seed_start(self) -> object: ...
    def seed_draw(self, fractions: NDArray[np.float64]) -> NDArray[np.int64]: ...
    def seed_farthest(self) -> int: ...
    def seed_potentials(self, candidates: NDArray[np.int64]) -> list[int]: ...
    def seed_add(self, row: int) -> None: ...
    def seed_sample(self, key: int, factor: float) -> NDArray[np.int64]: ...
    def seed_extend(self, rows: NDArray[np.int64]) -> None: ...
    def seed_loads(self) -> NDArray[np.int64]: ...


class Seeded:
    """What an engine inherits whose `seeder` answers the questions of a seeding.

    Attributes
    ----------
    seeder : Seeder
    """

    seeder: Seeder

    def seed_start(self) -> None:
        self.seeder.seed_start()

    def seed_greedy(self, fractions: NDArray[np.float64]) -> NDArray[np.int64] | None:
        return self.seeder.seed_greedy(fractions)

    def seed_plusplus(
        self, first: NDArray[np.float64], fractions: NDArray[np.float64]
    ) -> NDArray[np.int64] | None:
        return self.seeder.seed_plusplus(first, fractions)

    def seed_draw(self, fractions: NDArray[np.float64]) -> NDArray[np.int64]:
        return self.seeder.seed_draw(fractions)

    def seed_farthest(self) -> int:
        return self.seeder.seed_farthest()

    def seed_potentials(self, candidates: NDArray[np.int64]) -> list[int]:
        return self.seeder.seed_potentials(candidates)

    def seed_best(self, candidates: NDArray[np.int64]) -> int | None:
        return self.seeder.seed_best(candidates)

    def seed_add(self, row: int) -> None:
        self.seeder.seed_add(row)

    def seed_sample(self, key: int, factor: float) -> NDArray[np.int64]:
        return self.seeder.seed_sample(key, factor)

    def seed_extend(self, rows: NDArray[np.int64]) -> None:
        self.seeder.seed_extend(rows)

    def seed_loads(self) -> NDArray[np.int64]:
        return self.seeder.seed_loads()
