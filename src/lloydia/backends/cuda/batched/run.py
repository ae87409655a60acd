"""The state of the runs of a batch's items on the device."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from lloydia.backends.cuda.batched.rows import BatchRows
from lloydia.backends.cuda.device_functions.iteration_report import (
    CHANGED,
    EMPTY,
    HEAD,
    MOVE,
    RECHECKED,
)
from lloydia.backends.cuda.device_functions.run_state import SIZE, STOPPED
from lloydia.backends.cuda.protocols import LabelChanges
from lloydia.backends.cuda.runtime.async_copy import AsyncCopy

__all__ = ["BatchRun", "BatchStatus"]


class BatchStatus(NamedTuple):
    """The status of an iteration: a number for each item."""

    changed: list[int]
    empty: list[int]
    rechecked: list[int]
    move: list[float]
    shift: list[float]


class BatchRun:
    """Labels and centres, which kernels read and write: as a TensorRun's.

    Parameters
    ----------
    rows : BatchRows
    k : int
    n_slots : int
        Iterations whose centres and reports are kept.
    empty_stops : bool
        Whether the iterations of an item end at one with empty clusters.

    Attributes
    ----------
    labels : int32 (batch_size * n,)
    current : (batch_size, k, d)
    history : (n_slots, batch_size, k, d)
    report : int64 (n_slots, batch_size, HEAD + k)
    run_state : int32 (batch_size * SIZE,)
    """

    def __init__(self, rows: BatchRows, k: int, n_slots: int, empty_stops: bool) -> None:
        self.rows, self.k, self.empty_stops, self.n_slots = rows, k, int(empty_stops), n_slots
        shape, total = (rows.batch_size, k, rows.n_features), rows.batch_size * rows.n_samples
        new, int32 = {"device": rows.device}, {"device": rows.device, "dtype": torch.int32}
        self.current = torch.empty(shape, dtype=rows.wide, **new)
        self.history = torch.empty((n_slots, *shape), dtype=rows.wide, **new)
        self.labels = torch.full((total,), -1, **int32)
        self.report = torch.zeros(
            (n_slots, rows.batch_size, HEAD.value + k), dtype=torch.int64, **new
        )
        self.run_state = torch.zeros(rows.batch_size * SIZE, **int32)
        lists = [torch.empty(total, **int32) for _ in range(2)]
        self.changes = LabelChanges(self.labels, *lists, self.run_state)
        self.copies: dict[int, AsyncCopy] = {}
        self.statuses: dict[int, BatchStatus] = {}

    @cached_property
    def sums(self) -> torch.Tensor:
        """The sums of the clusters, once the grid is known."""
        rows = self.rows
        shape = rows.batch_size, rows.measured.grid.n_limbs, self.k, rows.n_features + 1
        return torch.zeros(shape, dtype=torch.int64, device=rows.device)

    @property
    def key(self) -> tuple:
        """What launches depend on of it, but for its memory."""
        return self.k, self.n_slots, self.empty_stops

    @property
    def buffers(self) -> list[torch.Tensor]:
        """The memory, but for the sums."""
        return [self.current, self.history, *self.changes, self.report]

    def slot(self, iteration: int) -> int:
        """Return where the centres and the reports of an iteration are."""
        return iteration % self.n_slots

    def stop(self, items: list[int]) -> None:
        """Queue that nothing of these items changes any more."""
        if items:
            self.run_state.view(-1, SIZE)[items, STOPPED.value] = 1

    def go_back(self, items: list[int], iterations: list[int]) -> None:
        """Queue that the centres of items are again those after an iteration, one each."""
        slots = [self.slot(i) for i in iterations]
        self.current[items] = self.history[slots, items]

    def ask(self, iteration: int) -> None:
        """Queue the copy of the reports of an iteration."""
        slot = self.slot(iteration)
        self.copies[slot] = AsyncCopy(self.report, slot, slot + 1)
        self.statuses.pop(slot, None)

    def status(self, iteration: int) -> BatchStatus:
        """Wait for the reports of an iteration that were asked for."""
        slot = self.slot(iteration)
        if slot not in self.statuses:
            self.statuses[slot] = read(self.copies[slot].numpy()[0])
        return self.statuses[slot]


def read(report: NDArray[np.int64]) -> BatchStatus:
    """Return the status in a report of shape (batch_size, HEAD + k)."""
    floats = report.view(np.float64)
    # One after the other, as cumsum must.
    shifts = np.cumsum(floats[:, HEAD.value :], axis=1)[:, -1]
    counts = (report[:, column.value].tolist() for column in (CHANGED, EMPTY, RECHECKED))
    return BatchStatus(*counts, floats[:, MOVE.value].tolist(), shifts.tolist())
