"""What a seeding keeps on a GPU: each row's D to the nearest seed, and the candidates."""

from __future__ import annotations

import torch

from lloydia.backends.cuda.rows.totals import largest_term
from lloydia.backends.cuda.runtime.launching import EXACT, ceil_div, next_power, processors
from lloydia.backends.cuda.seeding import plusplus_kernels
from lloydia.backends.cuda.seeding.several import SeededRows, take_nearer
from lloydia.exact import sums as exact

__all__ = ["MAX_CANDIDATES", "SeedingState", "columns_of"]

# Candidates that are evaluated at a time.
MAX_CANDIDATES = 16


def columns_of(X: torch.Tensor) -> torch.Tensor:
    """Return rows feature by feature: a copy, unless that leaves less than half of what is free."""
    size = X.numel() * X.element_size()
    if X.is_cuda and 2 * size > torch.cuda.mem_get_info(X.device)[0]:
        return X.T
    return X.T.contiguous()


class SeedingState:
    """Rows, and each one's D to the nearest seed.

    Parameters
    ----------
    rows : SeededRows
    stay : bool
        Whether the rows stay where they are: then those who read them often read a copy.

    Attributes
    ----------
    nearest : tensor of shape (n,), float64
        The D; 1 before the first seed.
    largest : tensor of shape (1,), float64
        The largest weight times D, from which the grid of the integers follows.
    totals : int64 tensor
        The sums of weight times D of tiles of rows, as integers, once they were added up.
    owners : tensor of shape (n,), int32, or None
        Each row's nearest seed, where several were added at once.
    table : tensor of shape (d, count), float64, or None
        The candidates that were looked at last; `potentials` are the totals with each of them.
    improved : tensor of shape (n,), int32
        Which of the candidates evaluated last are nearer than `nearest`, a bit each.
    bits : int
        Of the integers' grid.
    n_seeds : int
    """

    def __init__(self, rows: SeededRows, stay: bool = True) -> None:
        self.rows, self.stay = rows, stay
        self._copy: torch.Tensor | None = None
        n, new = rows.n_samples, {"device": rows.device}
        self.nearest = torch.ones(n, dtype=torch.float64, **new)
        self.largest = largest_term(self.nearest, rows.weights)
        n_tiles = ceil_div(n, plusplus_kernels.TILE.value)
        self.totals = torch.empty(n_tiles, dtype=torch.int64, **new)
        self.owners: torch.Tensor | None = None
        self.table: torch.Tensor | None = None
        self.potentials: torch.Tensor | None = None
        self.improved = torch.empty(n, dtype=torch.int32, **new)
        self.bits = exact.bits_a_limb(n)
        self.n_seeds = 0

    @property
    def columns(self) -> torch.Tensor:
        """The rows, feature by feature, of shape (d, n); neighbours in memory where copied."""
        if not self.stay:
            return self.rows.X.T
        if self._copy is None:
            self._copy = columns_of(self.rows.X)
        return self._copy

    def add_up(self) -> None:
        """Queue the sums of all tiles."""
        plusplus_kernels.sum_tiles[(len(self.totals),)](
            self.nearest, self.rows.weights, self.largest, self.totals, self.rows.n_samples,
            self.bits, num_warps=4, **EXACT,
        )  # fmt: skip

    def draw(self, fractions: torch.Tensor, rows: torch.Tensor) -> None:
        """Queue draws by the tiles' sums: `rows` become those that the fractions pick."""
        plusplus_kernels.draw[(len(rows),)](
            fractions, self.totals, self.nearest, self.rows.weights, self.largest, rows,
            self.rows.n_samples, len(self.totals), self.bits, num_warps=4, **EXACT,
        )  # fmt: skip

    def fetch(self, rows: torch.Tensor) -> None:
        """Queue that some rows become the candidates."""
        d, count = self.rows.n_features, next_power(len(rows))
        self.table = torch.empty((d, count), dtype=torch.float64, device=self.rows.device)
        plusplus_kernels.fetch[(count,)](
            self.rows.X, rows, self.table, len(rows), d, count, min(next_power(d), 1024),
            num_warps=4,
        )  # fmt: skip

    def add_potentials(self, potentials: torch.Tensor) -> None:
        """Queue the totals with each candidate as a seed; `potentials` are zeros before."""
        self.potentials = potentials
        plusplus_kernels.add_potentials[self._programs()](
            *self._squares(), self.improved, potentials, *self.columns.shape[::-1], self.bits,
            len(potentials), self._count(), num_warps=4, **EXACT,
        )  # fmt: skip

    def accept_candidate(self, potentials: torch.Tensor | None) -> None:
        """Queue that the candidate of the least potential becomes a seed, or the only one does."""
        self.largest.zero_()
        count = 1 if potentials is None else len(potentials)
        plusplus_kernels.accept_candidate[self._programs()](
            *self._squares(), self.improved, potentials, *self.columns.shape[::-1], count,
            self._count(), num_warps=4, **EXACT,
        )  # fmt: skip

    def _squares(self) -> tuple:
        """Return the arguments that kernels of distances have in common."""
        columns = self.columns
        return (
            columns, columns.stride(1), columns.stride(0), self.table, self.nearest,
            self.rows.weights, self.largest,
        )  # fmt: skip

    def _count(self) -> int:
        assert self.table is not None
        return self.table.shape[1]

    def _programs(self) -> tuple[int]:
        blocks = ceil_div(self.rows.n_samples, plusplus_kernels.BLOCK.value)
        return (min(blocks, 8 * processors(self.rows.device)),)

    def add_centers(self, centers: torch.Tensor) -> None:
        """Make several centres seeds, and note which seed is the nearest to each row."""
        if self.owners is None:
            self.owners = torch.empty(len(self.nearest), dtype=torch.int32, device=centers.device)
        take_nearer(self.rows, centers, self.nearest, self.owners, self.largest, self.n_seeds)
        self.n_seeds += len(centers)

    def top(self) -> tuple[int, float]:
        """Return the row of positive weight with the largest D, and that D; -1 where it is 0."""
        n, weights = self.rows.n_samples, self.rows.weights
        D = self.nearest if weights is None else self.nearest * (weights > 0)
        top = D.amax()
        row = torch.where(top == D, torch.arange(n, device=self.rows.device), n).amin()
        row = torch.where(top > 0, row, -1)
        return int(row), float(top)
