"""The memory of a run over rows of few features: one piece, which begins with zeros."""

from __future__ import annotations

from functools import cached_property

import torch

from lloydia.backends.cuda.device_functions.iteration_report import HEAD
from lloydia.backends.cuda.device_functions.run_state import SIZE
from lloydia.backends.cuda.low_dim.shape import LowShape
from lloydia.backends.cuda.protocols import RunRows
from lloydia.backends.cuda.rows.fixed_point_grid import FixedPointGrid

__all__ = ["LowMemory"]

# What follows the zeros, by its number.
CHANGED_ROWS, CHANGED_OLD, CHANGED_NEW, AMBIGUOUS_ROWS, COUNTS, TABLE, OWN, HISTORY = range(8)


class LowMemory:
    """Views of it; most launches are planned, and need none of them.

    Attributes
    ----------
    arena : uint8 (shape.places[-1],)
        All of it.
    zeros : int64 (shape.n_zeros,)
        All that starts at zero: what is told, then the sums.
    report_words : int64 (edges[-1],)
        What the host reads in one copy; its parts, between the edges, follow.
    numbers : int64 (5 (d + 1),)
        Those of the fixed-point grid, once that is known; until then they begin where
        `report_words` does.
    bounds : int64 (2 d + 1,)
        See :func:`lloydia.backends.cuda.low_dim.grid.measure_kernel`.
    cost : int64 (COST,)
        The inertia that the run ends with.
    seen : int32 (k,)
        Not 0: the last labels have this one.
    run_state : int32 (SIZE,)
        See :mod:`lloydia.backends.cuda.device_functions.run_state`.
    arrivals : int32 (...)
        See :mod:`lloydia.backends.cuda.device_functions.barrier`.
    report : int64 (n_slots, HEAD + k)
    variance_memory : int64 (...)
        That of a :class:`~lloydia.backends.cuda.update.mean_variance.MeanVariance`.
    no_limit : float64 (1,)
        0: what a run is limited by that has no limit.
    changed_rows, changed_old, changed_new, ambiguous_rows : int32 (n_lists room,)
    n_changed, n_ambiguous : int32 (n_lists,)
        See :func:`lloydia.backends.cuda.low_dim.assign.assign_kernel`.
    table : float32 (table_size(k, d),)
        See :mod:`lloydia.backends.cuda.low_dim.center_table`.
    own_memory : int32 (WORDS,) or None
        See :mod:`lloydia.backends.cuda.update.shared_table`.
    history : (n_slots, k, d)
        The centres after iteration i in slot i modulo n_slots.
    """

    rows: RunRows
    fixed_point_grid: FixedPointGrid | None
    shape: LowShape
    k: int
    n_slots: int

    def _take(self) -> None:
        """Take the memory; the zeros are to be written."""
        size = self.shape.places[-1]
        self.arena = torch.empty(size, dtype=torch.uint8, device=self.rows.device)

    @cached_property
    def zeros(self) -> torch.Tensor:
        return self.arena[: 8 * self.shape.n_zeros].view(torch.int64)

    def _part(self, i: int) -> torch.Tensor:
        edges = self.shape.edges
        return self.zeros[edges[i] : edges[i + 1]]

    def _room(self, i: int, dtype: torch.dtype) -> torch.Tensor:
        edges = self.shape.places
        return self.arena[edges[i] : edges[i + 1]].view(dtype)

    @property
    def report_words(self) -> torch.Tensor:
        """What the host reads."""
        return self.zeros[: self.shape.edges[-1]]

    @cached_property
    def numbers(self) -> torch.Tensor:
        return self._part(0) if self.fixed_point_grid is None else self.fixed_point_grid.numbers

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
    def run_state(self) -> torch.Tensor:
        return self._part(4).view(torch.int32)[:SIZE]

    @cached_property
    def arrivals(self) -> torch.Tensor:
        return self._part(4).view(torch.int32)[SIZE : SIZE + 2]

    @cached_property
    def no_limit(self) -> torch.Tensor:
        return self._part(4)[SIZE // 2 + 1 :].view(torch.float64)

    @cached_property
    def report(self) -> torch.Tensor:
        size = HEAD.value + self.k
        return self._part(5)[: self.n_slots * size].view(self.n_slots, size)

    @cached_property
    def variance_memory(self) -> torch.Tensor:
        return self._part(6)

    @property
    def all_sums(self) -> torch.Tensor:
        """The sums, with room for the most limbs."""
        return self.zeros[self.shape.edges[-1] :]

    @cached_property
    def changed_rows(self) -> torch.Tensor:
        return self._room(CHANGED_ROWS, torch.int32)

    @cached_property
    def changed_old(self) -> torch.Tensor:
        return self._room(CHANGED_OLD, torch.int32)

    @cached_property
    def changed_new(self) -> torch.Tensor:
        return self._room(CHANGED_NEW, torch.int32)

    @cached_property
    def ambiguous_rows(self) -> torch.Tensor:
        return self._room(AMBIGUOUS_ROWS, torch.int32)

    @cached_property
    def n_changed(self) -> torch.Tensor:
        return self._room(COUNTS, torch.int32)[: self.shape.n_lists]

    @cached_property
    def n_ambiguous(self) -> torch.Tensor:
        return self._room(COUNTS, torch.int32)[self.shape.n_lists :]

    @cached_property
    def table(self) -> torch.Tensor:
        return self._room(TABLE, torch.float32)

    @cached_property
    def own_memory(self) -> torch.Tensor | None:
        own = self._room(OWN, torch.int32)
        return own if own.numel() > 0 else None

    @cached_property
    def history(self) -> torch.Tensor:
        size = self.n_slots, self.k, self.rows.n_features
        room = self._room(HISTORY, self.rows.wide)
        return room[: size[0] * size[1] * size[2]].view(size)
