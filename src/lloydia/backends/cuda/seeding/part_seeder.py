"""The seeder of a part of a data set; its methods serve those of the part.

See :class:`lloydia.backends.part.Part`.  The grid of the integers is that of all parts.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from lloydia.backends.cuda.seeding import oversampling, tiles
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
        The candidates evaluated last; those from number `evaluated_from` on are the state's.
    """

    def __init__(self, rows: SeededRows, stay: bool) -> None:
        rows.magnitudes()  # refuses NaN, of which no seed could be drawn
        self.rows, self.state = rows, SeedingState(rows, stay)
        self.values: NDArray[Any] = np.empty((0, rows.n_features))
        self.evaluated_from = 0

    def _there(self, array: NDArray) -> torch.Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.rows.device)

    def _use(self, grid: tuple[int, int]) -> None:
        """Make kernels round to this grid, which they derive from the largest term."""
        self.state.bits = grid[0]
        self.state.largest.fill_(math.ldexp(0.5, grid[1]))

    def total(self, grid: tuple[int, int]) -> int:
        """Return the integer sum of weight times D."""
        self._use(grid)
        self.state.add_up()
        return int(self.state.totals.sum())

    def find(self, targets: NDArray[np.int64], grid: tuple[int, int]) -> NDArray[np.int64]:
        """Return for each target the first row whose running sum exceeds it."""
        state, tile_rows = self.state, tiles.TILE.value
        device_targets, ends = self._there(targets), state.totals.cumsum(0)
        tile = torch.searchsorted(ends, device_targets, right=True)
        first = (tile * tile_rows)[:, None]
        rows = first + torch.arange(tile_rows, device=self.rows.device)
        # Rows past the end are not counted: the running sum already exceeds the target there.
        rows = rows.clamp(max=self.rows.n_samples - 1)
        weights = None if self.rows.weights is None else self.rows.weights[rows]
        terms = oversampling.integers(state.nearest[rows], weights, grid).to(torch.int64)
        running = (ends - state.totals)[tile][:, None] + terms.cumsum(1)
        return (first[:, 0] + (running <= device_targets[:, None]).sum(1)).cpu().numpy()

    def _some(self, values: NDArray) -> torch.Tensor:
        """Return values as candidates, on the device."""
        return self._there(values).to(self.rows.wide)

    def first(self, values: NDArray) -> torch.Tensor:
        """Make a candidate the only seed; return the largest weight times D."""
        self.state.accept_first(self._some(values))
        return self.state.largest[0]

    def evaluate(self, values: NDArray, grid: tuple[int, int]) -> torch.Tensor:
        """Return the totals with each candidate as a seed."""
        self._use(grid)
        self.state.add_up()
        self._use(grid)
        self.values = values
        firsts = range(0, len(values), MAX_CANDIDATES)
        changes = torch.cat([self._evaluate_from(first) for first in firsts])
        return self.state.totals.sum() + changes

    def _evaluate_from(self, first: int) -> torch.Tensor:
        """Evaluate the candidates from number `first` on, as many as are evaluated at a time."""
        self.evaluated_from = first
        return self.state.evaluate(self._some(self.values[first : first + MAX_CANDIDATES]))

    def accept(self, j: int) -> torch.Tensor:
        """Make candidate `j` of those evaluated last a seed; return the largest weight times D."""
        within = j % MAX_CANDIDATES
        first = j - within
        if self.evaluated_from != first:
            self._evaluate_from(first)
        # The candidate of least change is accepted.
        count = min(len(self.values) - first, MAX_CANDIDATES)
        chosen = torch.zeros(count, dtype=torch.int64, device=self.rows.device)
        chosen[within] = -1
        self.state.accept(chosen)
        return self.state.largest[0]

    def choose(
        self, key: int, factor: float, total: int, before: int, grid: tuple[int, int]
    ) -> NDArray[np.int64]:
        """Choose rows independently; `before` rows of other parts precede them."""
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
