"""The state of a seeding, and what seedings compute on a GPU."""

from __future__ import annotations

from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray

from lloydia.backends.cuda.rows.distances import closest
from lloydia.backends.cuda.rows.placed import Placed
from lloydia.backends.cuda.rows.totals import largest_term
from lloydia.backends.cuda.runtime.launching import EXACT, ceil_div, next_power, processors
from lloydia.backends.cuda.runtime.own_device import anywhere
from lloydia.backends.cuda.seeding import oversampling, plusplus_kernels
from lloydia.exact import sums as exact
from lloydia.progress.stages import steps

__all__ = ["SeedingState"]

# The most candidates that are evaluated at once.
MAX_CANDIDATES = 16


class SeedingState(Placed):
    """Rows, and each one's D to the nearest seed.

    Attributes
    ----------
    nearest : tensor of shape (n,), float64
        D to the nearest seed; 1 before the first seed.
    largest : tensor of shape (1,), float64
        The largest weight times D, which determines the grid of the integers.
    columns : tensor of shape (d, n)
        The rows, feature by feature; neighbours in memory, if there was room for a copy.
    improved : tensor of shape (n,), int32
        Bit t: whether candidate t of the last evaluation is nearer than `nearest`.
    table : tensor of shape (d, count), float64
        Those candidates; `potentials` are their totals.
    owners : tensor of shape (n,), int32
        The nearest seed of each row, where several seeds were added at once.
    """

    owners: torch.Tensor

    def seed_start(self) -> object:
        self.magnitudes()  # refuses NaN, of which no seed could be drawn
        n, new = self.n_samples, {"device": self.device}
        self.columns = self._columns()
        self.nearest = torch.ones(n, dtype=torch.float64, **new)
        self.largest = largest_term(self.nearest, self.weights)
        self.improved = torch.empty(n, dtype=torch.int32, **new)
        self.totals = torch.empty(
            ceil_div(n, plusplus_kernels.TILE.value), dtype=torch.int64, **new
        )
        self.bits = exact.bits_a_limb(n)
        self.n_seeds = 0
        self._invalidate_totals()
        return self.largest

    @anywhere
    def forget_seeds(self) -> None:
        """Free the memory of the seeding; :meth:`seed_start` starts anew."""
        for name in ("columns", "nearest", "improved", "totals", "table", "potentials", "owners"):
            self.__dict__.pop(name, None)

    def _columns(self) -> torch.Tensor:
        size = self.X.numel() * self.X.element_size()
        # Half of the free memory is left for everything else.
        if self.X.is_cuda and 2 * size > torch.cuda.mem_get_info(self.device)[0]:
            return self.X.T
        return self.X.T.contiguous()

    def _invalidate_totals(self) -> None:
        """Note that `nearest` has changed: the tiles' totals and the potentials are stale."""
        self.summed = False
        self.evaluated: list[int] = []

    # -- k-means++ ---------------------------------------------------------------------------

    def seed_draw(self, fractions: NDArray[np.float64]) -> NDArray[np.int64]:
        # The candidates of k-means++ are evaluated before the host has read them: it waits once for
        # both.
        count = len(fractions)
        answer = torch.zeros((2, count), dtype=torch.int64, device=self.device)
        self._draw(torch.as_tensor(fractions, device=self.device), answer[0])
        if self.n_seeds and count <= MAX_CANDIDATES:
            self._compute_potentials(answer[0], answer[1])
            rows, self.foreseen = answer.tolist()
            self.evaluated = rows
        else:
            rows = answer[0].tolist()
        return np.array(rows, dtype=np.int64)

    def _draw(self, fractions: torch.Tensor, rows: torch.Tensor) -> None:
        n, n_tiles = self.n_samples, len(self.totals)
        terms = self.nearest, self.weights, self.largest
        if not self.summed:
            plusplus_kernels.sum_tiles[(n_tiles,)](
                *terms, self.totals, n, self.bits, num_warps=4, **EXACT
            )
            self.summed = True
        plusplus_kernels.draw[(len(rows),)](
            fractions, self.totals, *terms, rows, n, n_tiles, self.bits, num_warps=4, **EXACT
        )

    def seed_potentials(self, candidates: NDArray[np.int64]) -> list[int]:
        wanted = candidates.tolist()
        if wanted != self.evaluated:
            self.foreseen = []
            for first in range(0, len(wanted), MAX_CANDIDATES):
                self.evaluated = wanted[first : first + MAX_CANDIDATES]
                rows = torch.tensor(self.evaluated, device=self.device)
                self._compute_potentials(rows, torch.zeros_like(rows))
                self.foreseen += self.potentials.tolist()
        return self.foreseen

    def _compute_potentials(self, rows: torch.Tensor, potentials: torch.Tensor) -> None:
        """Compute the potential of each of at most MAX_CANDIDATES rows."""
        self._fetch(rows)
        self._compute_table_potentials(potentials)

    def _compute_table_potentials(self, potentials: torch.Tensor) -> None:
        self.potentials = potentials
        plusplus_kernels.add_potentials[self._programs()](
            *self._squares(), self.improved, potentials, *self.columns.shape[::-1], self.bits,
            len(potentials), self.table.shape[1], num_warps=4, **EXACT,
        )  # fmt: skip

    def _fetch(self, rows: torch.Tensor) -> None:
        d, count = self.n_features, next_power(len(rows))
        self.table = torch.empty((d, count), dtype=torch.float64, device=self.device)
        plusplus_kernels.fetch[(count,)](
            self.X, rows, self.table, len(rows), d, count, min(next_power(d), 1024), num_warps=4
        )

    def _squares(self) -> tuple:
        """Return the arguments that all distance kernels share."""
        columns = self.columns
        return (
            columns, columns.stride(1), columns.stride(0), self.table, self.nearest, self.weights,
            self.largest,
        )  # fmt: skip

    def _programs(self) -> tuple[int]:
        blocks = ceil_div(self.n_samples, plusplus_kernels.BLOCK.value)
        return (min(blocks, 8 * processors(self.device)),)

    def seed_add(self, row: int) -> None:
        if self.n_seeds == 0:
            self.nearest.fill_(float("inf"))
        best = self.foreseen.index(min(self.foreseen)) if self.evaluated else -1
        known = (
            best >= 0 and len(self.foreseen) == len(self.evaluated) and self.evaluated[best] == row
        )
        if not known:
            self._fetch(torch.tensor([row], device=self.device))
        self._accept_candidate(self.potentials if known else None)
        self.n_seeds += 1

    def seed_greedy(self, fractions: NDArray[np.float64]) -> NDArray[np.int64] | None:
        """Do what :func:`lloydia.seeding.plusplus.greedy` does, but wait only once, at the end."""
        count = fractions.shape[1]
        if count > MAX_CANDIDATES:
            return None
        answers = torch.zeros((len(fractions), 2, count), dtype=torch.int64, device=self.device)
        draws = torch.as_tensor(fractions, device=self.device)
        for draw, (rows, potentials) in zip(steps("centers", draws, before=1), answers):
            self._draw(draw, rows)
            self._compute_potentials(rows, potentials)
            self._accept_candidate(potentials)
        candidates, totals = answers.cpu().numpy().swapaxes(0, 1)
        chosen = np.take_along_axis(candidates, totals.argmin(axis=1)[:, None], axis=1)[:, 0]
        # Once every D is 0 no more rows are drawn, and nothing changes.
        chosen = chosen[chosen >= 0]
        self.n_seeds += len(chosen)
        return chosen

    def _accept_candidate(self, potentials: torch.Tensor | None) -> None:
        """Make the candidate with the smallest potential, or the only one, a seed."""
        self.largest.zero_()
        count = 1 if potentials is None else len(potentials)
        plusplus_kernels.accept_candidate[self._programs()](
            *self._squares(), self.improved, potentials, *self.columns.shape[::-1], count,
            self.table.shape[1], num_warps=4, **EXACT,
        )  # fmt: skip
        self._invalidate_totals()

    # -- farthest-first ------------------------------------------------------------------------

    def seed_farthest(self) -> int:
        return self.seed_top()[0]

    def seed_top(self) -> tuple[int, float]:
        """Return the row of positive weight with the largest D, and that D; -1 where it is 0."""
        D = self.nearest if self.weights is None else self.nearest * (self.weights > 0)
        top = D.amax()
        row = torch.where(top == D, self._numbers(), self.n_samples).amin()
        row = torch.where(top > 0, row, -1)
        return int(row), float(top)

    def _numbers(self) -> torch.Tensor:
        return torch.arange(self.n_samples, device=self.device)

    # -- k-means|| -----------------------------------------------------------------------------

    def seed_sample(self, key: int, factor: float) -> NDArray[np.int64]:
        grid = exact.total_grid(self.n_samples, self.largest.item())
        terms = oversampling.integers(self.nearest, self.weights, grid)
        total = int(terms.to(torch.int64).sum())
        return oversampling.chosen(terms, key, factor, total, 0).cpu().numpy()

    def seed_extend(self, rows: NDArray[np.int64]) -> None:
        self._add_seeds(self.X[torch.as_tensor(rows, device=self.device)])

    def _add_seeds(self, centers: torch.Tensor) -> None:
        """Make several centres seeds."""
        labels, D = self.closest(centers)
        if self.n_seeds == 0:
            self.nearest, self.owners = D, labels
        else:
            self.owners = torch.where(D < self.nearest, self.n_seeds + labels, self.owners)
            self.nearest = torch.minimum(self.nearest, D)
        self.n_seeds += len(centers)
        self.largest = largest_term(self.nearest, self.weights)
        self._invalidate_totals()

    def closest(self, centers: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the label and D of every row, for any centres."""
        return closest(self.columns, centers)

    def seed_loads(self) -> NDArray[np.int64]:
        whole = self.magnitudes()
        grid = exact.total_grid(whole.n_samples, whole.largest_weight)
        terms = oversampling.integers(torch.ones_like(self.nearest), self.weights, grid)
        return oversampling.loads(terms, self.owners, self.n_seeds).cpu().numpy()

    def subset(self, rows: NDArray[np.int64], weights: NDArray[np.float64]) -> Self:
        chosen = self.X[torch.as_tensor(rows, device=self.device)]
        return type(self)(chosen, weights, self.name)
