"""Reports of iterations, copied to the host while the device continues."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from lloydia.backends.cuda.device_functions.iteration_report import (
    CHANGED,
    EMPTY,
    HEAD,
    MOVE,
    PRUNED,
    RECHECKED,
    STATUS,
)
from lloydia.backends.cuda.runtime.async_copy import AsyncCopy

__all__ = [
    "ContinuingIterations",
    "IterationStatus",
    "Reports",
    "continuing_iterations",
    "status_of",
]

# The columns of a report that hold counts, and the first column of the terms of its shift.
COUNTS = CHANGED.value, EMPTY.value, RECHECKED.value, STATUS.value, PRUNED.value
FIRST = HEAD.value


class IterationStatus(NamedTuple):
    """The status of one iteration, read back from its report.

    `shift` is the sum of the report's terms from HEAD on; `stopped` is the run state's STOPPED.
    """

    changed: int
    empty: int
    rechecked: int
    stopped: int
    pruned: int
    move: float
    shift: float


class ContinuingIterations(NamedTuple):
    """Consecutive iterations that do not stop the run.

    In each of them rows changed, centres moved by more than a limit, and no cluster was empty, if
    that matters.

    Attributes
    ----------
    count : int
    rechecked, pruned : int
        Rows of all these iterations that were rechecked, and that were not scored.
    changed : int
        Rows that changed in the last of these iterations.
    ended : bool
        Whether the iteration after them may stop the run.
    """

    count: int
    rechecked: int
    pruned: int
    changed: int
    ended: bool


def status_of(report: NDArray[np.int64]) -> IterationStatus:
    """Return the status in a report of shape (HEAD + k,)."""
    head, parts = report[:FIRST].tolist(), report.view(np.float64)
    # The terms of the shift are added one after the other, as cumsum does.
    return IterationStatus(
        *(head[column] for column in COUNTS),
        float(parts[MOVE.value]), float(parts[FIRST:].cumsum()[-1]),
    )  # fmt: skip


def continuing_iterations(
    reports: NDArray[np.int64], empty_stops: int, limit: float
) -> ContinuingIterations:
    """Return how many of some reports, from the first, do not stop the run."""
    changed, empty, rechecked, _, pruned = COUNTS
    largest_moves = reports.view(np.float64)[:, MOVE.value].tolist()
    count = rechecked_rows = pruned_rows = last = 0
    for head, move in zip(reports[:, :FIRST].tolist(), largest_moves):
        if head[changed] == 0 or (empty_stops and head[empty]):
            break
        # The square of one coordinate's change is part of the shift, and rounding keeps order.
        if move * move <= limit and status_of(reports[count]).shift <= limit:
            break
        count += 1
        rechecked_rows += head[rechecked]
        pruned_rows += head[pruned]
        last = head[changed]
    return ContinuingIterations(count, rechecked_rows, pruned_rows, last, count < len(reports))


class Reports:
    """Copies of the reports that kernels write.

    Parameters
    ----------
    source : int64 tensor of shape (n_slots, m)
        The report of iteration i is in row i modulo n_slots.
    reports_per_copy : int
        How many are copied at once, unless one is waited for; fewer than there are slots.
    """

    def __init__(self, source: torch.Tensor, reports_per_copy: int = 1) -> None:
        self.source, self.reports_per_copy = source, reports_per_copy
        # Requested iterations whose copy has not been queued.
        self.pending: list[int] = []
        # For each slot, the copy that contains its report, and the first slot of that copy.
        self.copies: list[tuple[AsyncCopy, int] | None] = [None] * source.shape[0]
        # Statuses by slot, once they were read.
        self.statuses: dict[int, IterationStatus] = {}

    def ask(self, first: int, last: int) -> None:
        """Request the reports of some iterations; queue their copy once there are enough."""
        for iteration in range(first, last + 1):
            self.pending.append(iteration)
            self.statuses.pop(iteration % len(self.copies), None)
        if len(self.pending) >= self.reports_per_copy:
            self.send()

    def forget(self) -> None:
        """Drop the requests whose copy has not been queued."""
        self.pending.clear()

    def send(self) -> None:
        """Queue the copy of all requested reports."""
        if not self.pending:
            return
        slots = {i % len(self.copies) for i in self.pending}
        self.pending.clear()
        first, last = min(slots), max(slots) + 1
        coming = AsyncCopy(self.source, first, last), first
        for slot in slots:
            self.copies[slot] = coming

    def wait_continuing(
        self, iteration: int, most: int, empty_stops: int, limit: float
    ) -> ContinuingIterations:
        """Wait for a requested report; return the iterations from it on that do not stop the run.

        Only reports that the same copy holds count, and at most `most` of them.
        """
        copy, first = self._coming(iteration)
        slot = last = iteration % len(self.copies)
        while last < len(self.copies) and self.copies[last] is self.copies[slot]:
            last += 1
        last = min(last, slot + most)
        return continuing_iterations(copy.numpy()[slot - first : last - first], empty_stops, limit)

    def _coming(self, iteration: int) -> tuple[AsyncCopy, int]:
        """Return the copy that contains a requested report, and the first slot of that copy."""
        if iteration in self.pending:
            self.send()
        coming = self.copies[iteration % len(self.copies)]
        assert coming is not None
        return coming

    def status(self, iteration: int) -> IterationStatus:
        """Wait for a requested report, and return its status."""
        slot = iteration % len(self.copies)
        if slot not in self.statuses:
            copy, first = self._coming(iteration)
            self.statuses[slot] = status_of(copy.numpy()[slot - first])
        return self.statuses[slot]
