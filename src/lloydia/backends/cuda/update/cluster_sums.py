"""Cluster sums follow the rows that changed: by tables in shared memory, or after sorting.

This is for more than 8 features; the stage ``SUMS`` of :mod:`dispatch` chooses.
"""

from __future__ import annotations

from functools import cached_property, partial
from typing import Protocol

import torch

from lloydia.backends.cuda.protocols import LabelChanges, WholeRows
from lloydia.backends.cuda.rows.fixed_point_grid import FixedPointGrid
from lloydia.backends.cuda.runtime.relocation import Scratch, Stages
from lloydia.backends.cuda.update.sorted_sums import queue_sorted_sums
from lloydia.backends.cuda.update.sorted_updates import SortedUpdates
from lloydia.backends.cuda.update.table_sums import has_table, interpreter_table, queue_table

__all__ = ["ClusterSums", "SummedRows"]


class SummedRows(WholeRows, Protocol):
    """Rows whose sums have a grid on the device."""

    @property
    def fixed_point_grid(self) -> FixedPointGrid:
        """The grid; the host may have to wait for it."""


class ClusterSums:
    """Moves changed rows between the sums of k clusters; an instance serves one queue at a time.

    Parameters
    ----------
    rows : SummedRows
        :meth:`stages` may be given other rows, with the same features and batch size, and no more.
    k : int
    """

    def __init__(self, rows: SummedRows, k: int) -> None:
        self.n, self.batch_size, self.device = rows.n_samples, rows.batch_size, rows.device
        self.k = k

    @cached_property
    def sorted_updates(self) -> SortedUpdates:
        """The sorted updates of the rows that changed, where there is no table."""
        return SortedUpdates(self.n, self.k, self.device, self.batch_size)

    @cached_property
    def table(self) -> torch.Tensor | None:
        """The table of the interpreter; None on a GPU."""
        return interpreter_table(self.device)

    def by_table(self, rows: SummedRows) -> bool:
        """Return whether tables in shared memory add up the changes."""
        return has_table(rows, self.k)

    def memory(self, rows: SummedRows) -> Scratch:
        """Return all memory that is needed besides the rows, and which of it begins with zeros."""
        if self.by_table(rows):
            return [] if self.table is None else [self.table], ()
        return self.sorted_updates.memory

    def stages(self, rows: SummedRows, changes: LabelChanges, sums: torch.Tensor) -> Stages:
        """Return what queues the moves of rows that changed; see :func:`queue_table`.

        It waits for the grid.
        """
        X, grid = rows.X, rows.fixed_point_grid
        if self.by_table(rows):
            return [partial(queue_table, X, grid, changes, sums, self.table)]
        updates = self.sorted_updates
        return [
            partial(updates.sort, changes),
            partial(queue_sorted_sums, X, grid, updates, changes.run_state, sums),
        ]
