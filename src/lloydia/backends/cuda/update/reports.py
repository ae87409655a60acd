"""Reports of iterations, on their way to the host while the device goes on."""

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
    """Some iterations, one after the other, that end nothing.

    In those that do not rows changed, centres moved by more than a limit, and no cluster that
    matters was empty.

    Attributes
    ----------
    count : int
    rechecked, pruned : int
        Rows of all of them that were checked again, and that were not scored.
    changed : int
        Rows that changed in the last of them.
    ended : bool
        Whether one follows that may end something.
    """

    count: int
    rechecked: int
    pruned: int
    changed: int
    ended: bool


def status_of(report: NDArray[np.int64]) -> IterationStatus:
    """Return what a report, of shape (HEAD + k,), tells."""
    head, parts = report[:FIRST].tolist(), report.view(np.float64)
    # The shift is added up one after the other, as cumsum must.
    return IterationStatus(
        *(head[column] for column in COUNTS),
        float(parts[MOVE.value]), float(parts[FIRST:].cumsum()[-1]),
    )  # fmt: skip


def continuing_iterations(
    reports: NDArray[np.int64], settles: int, limit: float
) -> ContinuingIterations:
    """Return how many of some reports, from the first, are of iterations that end nothing."""
    changed, empty, rechecked, _, pruned = COUNTS
    largest_moves = reports.view(np.float64)[:, MOVE.value].tolist()
    count = rechecked_rows = pruned_rows = last = 0
    for head, move in zip(reports[:, :FIRST].tolist(), largest_moves):
        if head[changed] == 0 or (settles and head[empty]):
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
        That of iteration i is in row i modulo n_slots.
    reports_per_copy : int
        How many are copied at once if nobody waits for them; fewer than there are slots.
    """

    def __init__(self, source: torch.Tensor, reports_per_copy: int = 1) -> None:
        self.source, self.reports_per_copy = source, reports_per_copy
        # Iterations whose reports were asked for and are not on their way.
        self.pending: list[int] = []
        # Of each slot, what it is to come with, and the first slot of that.
        self.copies: list[tuple[AsyncCopy, int] | None] = [None] * source.shape[0]
        # What they tell, by slot, once they were asked for.
        self.statuses: dict[int, IterationStatus] = {}

    def ask(self, first: int, last: int) -> None:
        """Queue the copy of the reports of some iterations, or leave it until there are more."""
        for iteration in range(first, last + 1):
            self.pending.append(iteration)
            self.statuses.pop(iteration % len(self.copies), None)
        if len(self.pending) >= self.reports_per_copy:
            self.send()

    def forget(self) -> None:
        """Do not copy what was asked for."""
        self.pending.clear()

    def send(self) -> None:
        """Queue the copy of what was asked for."""
        if not self.pending:
            return
        slots = {i % len(self.copies) for i in self.pending}
        self.pending.clear()
        first, last = min(slots), max(slots) + 1
        coming = AsyncCopy(self.source, first, last), first
        for slot in slots:
            self.copies[slot] = coming

    def wait_continuing(
        self, iteration: int, most: int, settles: int, limit: float
    ) -> ContinuingIterations:
        """Wait for a report that was asked for; return the iterations from there that end nothing.

        Only reports that the same copy holds count, and at most `most` of them.
        """
        copy, first = self._coming(iteration)
        slot = last = iteration % len(self.copies)
        while last < len(self.copies) and self.copies[last] is self.copies[slot]:
            last += 1
        last = min(last, slot + most)
        return continuing_iterations(copy.numpy()[slot - first : last - first], settles, limit)

    def _coming(self, iteration: int) -> tuple[AsyncCopy, int]:
        """Return what a report that was asked for comes with, and the first slot of that."""
        if iteration in self.pending:
            self.send()
        coming = self.copies[iteration % len(self.copies)]
        assert coming is not None
        return coming

    def status(self, iteration: int) -> IterationStatus:
        """Wait for a report that was asked for."""
        slot = iteration % len(self.copies)
        if slot not in self.statuses:
            copy, first = self._coming(iteration)
            self.statuses[slot] = status_of(copy.numpy()[slot - first])
        return self.statuses[slot]
