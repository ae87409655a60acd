"""Seeds of a part of a data set; the questions are those of a part.

See :class:`lloydia.backends.part.Part`.  The grid of the integers is that of the whole.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from lloydia.backends.cuda.runtime.launching import next_power
from lloydia.backends.cuda.seeding import oversampling, plusplus_kernels
from lloydia.backends.cuda.seeding.seeder import loads
from lloydia.backends.cuda.seeding.several import SeededRows
from lloydia.backends.cuda.seeding.state import MAX_CANDIDATES, SeedingState

__all__ = ["PartSeeder"]


class PartSeeder:
    """A seeding of some rows, from its start; what its methods return is on the device.

    Parameters
    ----------
    rows : SeededRows
    stay : bool
        See :class:`SeedingState`.

    Attributes
    ----------
    values : ndarray of shape (m, d)
        The candidates evaluated last; those from number `evaluated_from` on are in the state's
        table.
    """

    def __init__(self, rows: SeededRows, stay: bool) -> None:
        rows.magnitudes()  # refuses NaN, of which no seed could be drawn
        self.rows, self.state = rows, SeedingState(rows, stay)
        self.values: NDArray[Any] = np.empty((0, rows.n_features))
        self.evaluated_from = 0

    def _there(self, array: NDArray) -> torch.Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.rows.device)

    def _use(self, grid: tuple[int, int]) -> None:
        """Have kernels round to this grid, which they take from the largest term there is."""
        self.state.bits = grid[0]
        self.state.largest.fill_(math.ldexp(0.5, grid[1]))

    def total(self, grid: tuple[int, int]) -> int:
        """Return the integer sum of weight times D."""
        self._use(grid)
        self.state.add_up()
        return int(self.state.totals.sum())

    def find(self, targets: NDArray[np.int64], grid: tuple[int, int]) -> NDArray[np.int64]:
        """Return for each target the first row whose running sum exceeds it."""
        state, tile_rows = self.state, plusplus_kernels.TILE.value
        wanted, ends = self._there(targets), state.totals.cumsum(0)
        tile = torch.searchsorted(ends, wanted, right=True)
        first = (tile * tile_rows)[:, None]
        rows = first + torch.arange(tile_rows, device=self.rows.device)
        # Past the end nothing is passed: the running sum is above the target there.
        rows = rows.clamp(max=self.rows.n_samples - 1)
        weights = None if self.rows.weights is None else self.rows.weights[rows]
        terms = oversampling.integers(state.nearest[rows], weights, grid).to(torch.int64)
        running = (ends - state.totals)[tile][:, None] + terms.cumsum(1)
        return (first[:, 0] + (running <= wanted[:, None]).sum(1)).cpu().numpy()

    def _tabulate(self, values: NDArray) -> None:
        """Make values the candidates that kernels look at; the first ones again fill the table."""
        every = values[np.arange(next_power(len(values))) % len(values)]
        self.state.table = self._there(every.T.astype(np.float64))

    def first(self, values: NDArray) -> torch.Tensor:
        """Make a candidate the only seed; return the largest weight times D."""
        self.state.nearest.fill_(math.inf)
        self._tabulate(values)
        self.state.accept_candidate(None)
        self.state.n_seeds = 1
        return self.state.largest[0]

    def evaluate(self, values: NDArray, grid: tuple[int, int]) -> torch.Tensor:
        """Return the totals with each candidate as a seed."""
        self._use(grid)
        self.values = values
        firsts = range(0, len(values), MAX_CANDIDATES)
        return torch.cat([self._compute_potentials_from(first) for first in firsts])

    def _compute_potentials_from(self, first: int) -> torch.Tensor:
        """Evaluate the candidates from a number on, as many as are evaluated at a time."""
        self.evaluated_from, some = first, self.values[first : first + MAX_CANDIDATES]
        self._tabulate(some)
        potentials = torch.zeros(len(some), dtype=torch.int64, device=self.rows.device)
        self.state.add_potentials(potentials)
        return potentials

    def accept(self, j: int) -> torch.Tensor:
        """Make candidate `j` of those evaluated last a seed; return the largest weight times D."""
        within = j % MAX_CANDIDATES
        if self.evaluated_from != j - within:
            self._compute_potentials_from(j - within)
        assert self.state.potentials is not None
        # The one of least potential is accepted.
        chosen = torch.ones_like(self.state.potentials)
        chosen[within] = 0
        self.state.accept_candidate(chosen)
        self.state.n_seeds += 1
        return self.state.largest[0]

    def choose(
        self, key: int, factor: float, total: int, before: int, grid: tuple[int, int]
    ) -> NDArray[np.int64]:
        """Choose rows, each on its own; `before` rows of other parts come first."""
        self._use(grid)
        state, all_terms = self.state, torch.tensor([total], device=self.rows.device)
        found = oversampling.chosen(
            state.nearest, self.rows.weights, state.largest, state.bits, all_terms, key, factor,
            before,
        )  # fmt: skip
        return found.cpu().numpy()

    def add_centers(self, centers: torch.Tensor) -> torch.Tensor:
        """Make several rows seeds; return the largest weight times D."""
        self.state.add_centers(centers)
        return self.state.largest[0]

    def loads(self) -> NDArray[np.int64]:
        """Return the integer sum of the weights of the rows nearest to each seed."""
        return loads(self.rows, self.state)
