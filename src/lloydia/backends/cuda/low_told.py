"""What kernels tell of a run over rows of few features, in one tensor that begins with zeros."""

from __future__ import annotations

from functools import cached_property
from itertools import accumulate

import torch

from lloydia.backends.cuda.flow import SIZE
from lloydia.backends.cuda.launching import ceil_div
from lloydia.backends.cuda.low_cost import COST
from lloydia.backends.cuda.means import HEAD
from lloydia.backends.cuda.placed import Placed
from lloydia.backends.cuda.sums import Lattice

__all__ = ["LowTold"]


class LowTold:
    """The parts of that tensor; most launches are planned, and need no views of them.

    Attributes
    ----------
    zeros : int64 (...)
        All that starts at zero: what is told, then the sums.
    told : int64 (edges[-1],)
        What the host reads in one copy; its parts, between the edges, follow.
    numbers : int64 (5 (d + 1),)
        A :class:`Lattice`'s.
    bounds : int64 (2 d + 2,)
        See :func:`lloydia.backends.cuda.low_grid.measure_kernel`.
    cost : int64 (COST,)
        The inertia that the run ends with.
    seen : int32 (k,)
        Not 0: the last labels have this one.
    flow : int32 (SIZE,)
        See :mod:`lloydia.backends.cuda.flow`.
    arrivals : int32 (...)
        See :mod:`lloydia.backends.cuda.barrier`.
    report : int64 (n_slots, HEAD + k)
    """

    rows: Placed
    lattice: Lattice | None
    k: int
    n_slots: int

    def _begin_with_zeros(self, d: int, n_sums: int) -> None:
        n_report = self.n_slots * (HEAD.value + self.k)
        sizes = 5 * (d + 1), 2 * d + 2, COST, ceil_div(self.k, 2), SIZE, n_report
        # Every part begins where a vector may.
        self.edges = [0, *accumulate(size + size % 2 for size in sizes)]
        n, device = self.edges[-1] + n_sums, self.rows.device
        self.zeros = torch.zeros(n, dtype=torch.int64, device=device)
        self.told = self.zeros[: self.edges[-1]]

    def _part(self, i: int) -> torch.Tensor:
        return self.zeros[self.edges[i] : self.edges[i + 1]]

    @cached_property
    def numbers(self) -> torch.Tensor:
        return self._part(0) if self.lattice is None else self.lattice.numbers

    @cached_property
    def bounds(self) -> torch.Tensor:
        return self._part(1)

    @cached_property
    def cost(self) -> torch.Tensor:
        return self._part(2)

    @cached_property
    def seen(self) -> torch.Tensor:
        return self._part(3).view(torch.int32)

    @cached_property
    def flow(self) -> torch.Tensor:
        return self._part(4).view(torch.int32)[:SIZE]

    @cached_property
    def arrivals(self) -> torch.Tensor:
        return self._part(4).view(torch.int32)[SIZE:]

    @cached_property
    def report(self) -> torch.Tensor:
        size = HEAD.value + self.k
        return self._part(5)[: self.n_slots * size].view(self.n_slots, size)

    @property
    def all_sums(self) -> torch.Tensor:
        """The sums, with room for the most limbs."""
        return self.zeros[self.edges[-1] :]
