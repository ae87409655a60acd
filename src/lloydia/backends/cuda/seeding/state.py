"""The state of a seeding on a GPU: each row's D to the nearest seed, and the candidates."""

from __future__ import annotations

import math
import sys
from functools import partial

import torch

from lloydia.backends.cuda.rows.totals import largest_term
from lloydia.backends.cuda.run_kinds import LOW_DIM
from lloydia.backends.cuda.runtime.launching import EXACT, ceil_div, given, launch, processors
from lloydia.backends.cuda.runtime.relocation import Stages
from lloydia.backends.cuda.seeding import tiles
from lloydia.backends.cuda.seeding.columns import Columns
from lloydia.backends.cuda.seeding.int8_rows import block_of
from lloydia.backends.cuda.seeding.pairs import Pairs
from lloydia.backends.cuda.seeding.several import SeededRows, nearest_of, take_nearer
from lloydia.exact import sums as exact

__all__ = ["MAX_CANDIDATES", "SeedingState", "columns_of"]

# Candidates that are evaluated at a time.
MAX_CANDIDATES = 16


def columns_of(X: torch.Tensor) -> torch.Tensor:
    """Return rows feature by feature: a copy, unless that leaves less than half of the free memory.

    From feature to feature a copy has a multiple of 16 numbers, so that one kernel is compiled,
    which loads several at once.
    """
    size = X.numel() * X.element_size()
    if X.is_cuda and 2 * size > torch.cuda.mem_get_info(X.device)[0]:
        return X.T
    n, d = X.shape
    return X.new_empty((d, 16 * ceil_div(n, 16)))[:, :n].copy_(X.T)


class SeedingState:
    """Rows, and each one's D to the nearest seed.

    Parameters
    ----------
    rows : SeededRows
    stay : bool
        Whether the rows stay in place: then kernels that read them often read a copy.

    Attributes
    ----------
    nearest : tensor of shape (n,), float64
        The D; 1 before the first seed.
    terms : tensor of shape (2,), float64
        The number that determines the grid of the integers in a step, and the largest weight times
        D, which is also the attribute `largest`, of shape (1,).
    totals : int64 tensor
        The sums of weight times D of tiles of rows, as integers, once they were added up.
    owners : tensor of shape (n,), int32, or None
        Each row's nearest seed, where several were added at once.
    table : tensor of shape (MAX_CANDIDATES, d), in the rows' ``wide`` type
        The candidates.
    step : int32 tensor of shape (1,)
        How many of the steps that are queued together are done.
    bits : int
        Of the integers' grid.
    n_seeds : int
    """

    def __init__(self, rows: SeededRows, stay: bool = True) -> None:
        self.rows, self.stay = rows, stay
        self._copy: torch.Tensor | None = None
        n, d, new = rows.n_samples, rows.n_features, {"device": rows.device}
        self.nearest = torch.ones(n, dtype=torch.float64, **new)
        self.terms = torch.zeros(2, dtype=torch.float64, **new)
        self.largest = self.terms[1:]
        largest_term(self.nearest, rows.weights, self.largest)
        n_tiles = ceil_div(n, tiles.TILE.value)
        self.totals = torch.empty(n_tiles, dtype=torch.int64, **new)
        self.owners: torch.Tensor | None = None
        self.table = torch.zeros((MAX_CANDIDATES, d), dtype=rows.wide, **new)
        self.step = torch.zeros(1, dtype=torch.int32, **new)
        self.bits = exact.bits_a_limb(n)
        self.n_seeds = 0
        low = rows.kind is LOW_DIM
        self.pairs = None if low else Pairs(rows, stay)
        self.evaluation = self.pairs or Columns(rows)

    @property
    def columns(self) -> torch.Tensor:
        """The rows, feature by feature, of shape (d, n); neighbours in memory where copied."""
        if not self.stay:
            return self.rows.X.T
        if self._copy is None:
            self._copy = columns_of(self.rows.X)
        return self._copy

    def add_up(self) -> None:
        """Queue the sums of all tiles, on the grid of the largest term."""
        self.terms[:1].copy_(self.largest)
        self._sum_tiles()

    def draw(self, fractions: torch.Tensor, rows: torch.Tensor) -> None:
        """Queue draws by the tiles' sums: the fractions pick `rows`."""
        self.step.zero_()
        self._draw(fractions, rows, len(rows), takes=False)

    def evaluate(self, candidates: torch.Tensor) -> torch.Tensor:
        """Queue by how much each candidate changes the sum of all terms: int64, at most 0.

        `candidates` are at most MAX_CANDIDATES rows, in the rows' ``wide`` type; the grid is that
        of the largest term.
        """
        count = len(candidates)
        self.table[:count] = candidates
        changes = torch.zeros(count, dtype=torch.int64, device=self.rows.device)
        self.terms[:1].copy_(self.largest)
        self.step.zero_()
        if self.pairs is not None:
            self.pairs.begin(self.nearest)
            self.pairs.encode(self)
        self.evaluation.evaluate(self, changes, count)
        self.largest.copy_(self.terms[:1])
        return changes

    def accept(self, changes: torch.Tensor) -> None:
        """Queue that the candidate of least change, of those evaluated last, becomes a seed."""
        # The sums are computed on the grid of the present largest term, then on the right one.
        self.terms[:1].copy_(self.largest)
        self.largest.zero_()
        self.step.zero_()
        for queue in self._acceptance(changes, len(changes)):
            queue()
        self.n_seeds += 1

    def accept_first(self, candidate: torch.Tensor) -> None:
        """Queue that a candidate of shape (1, d) becomes the only seed."""
        self.nearest.fill_(math.inf)
        self.table[:1] = candidate
        self.evaluation.improve_all()
        # No sum overflows on this grid.
        self.largest.fill_(sys.float_info.max)
        self.n_seeds = 0
        self.accept(torch.zeros(1, dtype=torch.int64, device=self.rows.device))

    # -- steps that are queued together --------------------------------------------------------

    def begin_steps(
        self, fractions: torch.Tensor, rows: torch.Tensor, changes: torch.Tensor
    ) -> Stages:
        """Return what queues a step: draws, their evaluation, and the best one as a seed.

        Parameters
        ----------
        fractions : tensor of shape (steps, count), float64
        rows, changes : int64 tensors of shape (steps, count)
            What is drawn, and the changes, which are zeros.
        """
        count = fractions.shape[1]
        self.step.zero_()
        if self.pairs is not None:
            self.pairs.begin(self.nearest)
        return [
            partial(self._draw, fractions, rows, count, takes=True),
            partial(self.evaluation.evaluate, self, changes, count),
            *self._acceptance(changes, count),
        ]

    def _draw(self, fractions: torch.Tensor, rows: torch.Tensor, count: int, takes: bool) -> None:
        d = self.rows.n_features
        n_pairs, copy = None, None
        if self.pairs is not None and takes:
            n_pairs, copy = self.pairs.n_pairs, self.pairs.int8_rows
        launch(
            tiles.draw, (count,),
            fractions, self.step, self.totals, self.nearest, *self._weights(), self.terms, rows,
            self.rows.n_samples, len(self.totals), self.bits, count, self.rows.X, self.table,
            int(takes), d, n_pairs, copy and copy.offsets, copy and copy.frame,
            copy and copy.candidate_digits, copy and copy.candidate_numbers,
            copy.width if copy else 0,
            BLOCK=block_of(d), num_warps=4, **EXACT,
        )  # fmt: skip

    def _acceptance(self, changes: torch.Tensor, count: int) -> Stages:
        """Return what queues the candidate of least change as a seed, and the end of the step."""
        accept = partial(self.evaluation.accept, self, changes, count)
        # The kernel for few features also sums the tiles.
        sums = [] if self.pairs is None else [self._sum_tiles]
        return [accept, *sums, self._end_step]

    def _end_step(self) -> None:
        programs = min(len(self.totals), 4 * processors(self.rows.device))
        launch(
            tiles.end_step, (programs,),
            self.nearest, *self._weights(), self.terms, self.totals, self.step,
            self.rows.n_samples, len(self.totals), self.bits, num_warps=4, **EXACT,
        )  # fmt: skip

    def _weights(self) -> tuple[torch.Tensor, int]:
        """Return the weights, and whether there are any."""
        return given(self.rows.weights, self.nearest)

    def _sum_tiles(self) -> None:
        launch(
            tiles.sum_tiles, (len(self.totals),),
            self.nearest, *self._weights(), self.terms, self.totals, self.rows.n_samples,
            self.bits, num_warps=4, **EXACT,
        )  # fmt: skip

    # -- k-means|| and others --------------------------------------------------------------------

    def add_centers(self, centers: torch.Tensor) -> None:
        """Make several centres seeds, and note which seed is the nearest to each row."""
        if self.owners is None:
            self.owners = torch.empty(len(self.nearest), dtype=torch.int32, device=centers.device)
        labels = nearest_of(self.rows, centers)
        take_nearer(
            self.rows, labels, centers, self.nearest, self.owners, self.largest, self.n_seeds
        )
        self.n_seeds += len(centers)
        if self.pairs is not None:
            self.pairs.stale = True

    def top(self) -> tuple[int, float]:
        """Return the row of positive weight with the largest D, and that D; -1 where it is 0."""
        n, weights = self.rows.n_samples, self.rows.weights
        D = self.nearest if weights is None else self.nearest * (weights > 0)
        top = D.amax()
        row = torch.where(top == D, torch.arange(n, device=self.rows.device), n).amin()
        row = torch.where(top > 0, row, -1)
        return int(row), float(top)
