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
    RECHECKED,
    SPARED,
    STATUS,
)
from lloydia.backends.cuda.runtime.fetching import Fetched

__all__ = ["Passed", "Reports", "Told", "passed", "told"]

# Where a report has what is told first, and where the parts of its shift begin.
COUNTS = CHANGED.value, EMPTY.value, RECHECKED.value, STATUS.value, SPARED.value
FIRST = HEAD.value


class Told(NamedTuple):
    """What the device tells of an iteration; `shift` is the sum of what is told from HEAD on.

    `stopped` is what its STOPPED became.
    """

    changed: int
    empty: int
    rechecked: int
    stopped: int
    spared: int
    move: float
    shift: float


class Passed(NamedTuple):
    """Some iterations, one after the other, that end nothing.

    In those that do not rows changed, centres moved by more than a limit, and no cluster that
    matters was empty.

    Attributes
    ----------
    count : int
    rechecked, spared : int
        Rows of all of them that were checked again, and that were not scored.
    changed : int
        Rows that changed in the last of them.
    ended : bool
        Whether one follows that may end something.
    """

    count: int
    rechecked: int
    spared: int
    changed: int
    ended: bool


def told(report: NDArray[np.int64]) -> Told:
    """Return what a report, of shape (HEAD + k,), tells."""
    head, parts = report[:FIRST].tolist(), report.view(np.float64)
    # The shift is added up one after the other, as cumsum must.
    return Told(
        *(head[column] for column in COUNTS),
        float(parts[MOVE.value]), float(parts[FIRST:].cumsum()[-1]),
    )  # fmt: skip


def passed(reports: NDArray[np.int64], settles: int, limit: float) -> Passed:
    """Return how many of some reports, from the first, are of iterations that end nothing."""
    changed, empty, rechecked, _, spared = COUNTS
    moves = reports.view(np.float64)[:, MOVE.value].tolist()
    count = again = left = last = 0
    for head, move in zip(reports[:, :FIRST].tolist(), moves):
        if head[changed] == 0 or (settles and head[empty]):
            break
        # The square of one coordinate's change is part of the shift, and rounding keeps order.
        if move * move <= limit and told(reports[count]).shift <= limit:
            break
        count, again, left = count + 1, again + head[rechecked], left + head[spared]
        last = head[changed]
    return Passed(count, again, left, last, count < len(reports))


class Reports:
    """Copies of the reports that kernels write.

    Parameters
    ----------
    source : int64 tensor of shape (n_slots, m)
        That of iteration i is in row i modulo n_slots.
    together : int
        How many are copied at once if nobody waits for them; fewer than there are slots.
    """

    def __init__(self, source: torch.Tensor, together: int = 1) -> None:
        self.source, self.together = source, together
        # Iterations whose reports were asked for and are not on their way.
        self.due: list[int] = []
        # Of each slot, what it is to come with, and the first slot of that.
        self.come: list[tuple[Fetched, int] | None] = [None] * source.shape[0]
        # What they tell, by slot, once they were asked for.
        self.told: dict[int, Told] = {}

    def ask(self, first: int, last: int) -> None:
        """Queue the copy of the reports of some iterations, or leave it until there are more."""
        for iteration in range(first, last + 1):
            self.due.append(iteration)
            self.told.pop(iteration % len(self.come), None)
        if len(self.due) >= self.together:
            self.send()

    def forget(self) -> None:
        """Do not copy what was asked for."""
        self.due.clear()

    def send(self) -> None:
        """Queue the copy of what was asked for."""
        if not self.due:
            return
        slots = {i % len(self.come) for i in self.due}
        self.due.clear()
        first, last = min(slots), max(slots) + 1
        coming = Fetched(self.source, first, last), first
        for slot in slots:
            self.come[slot] = coming

    def passed(self, iteration: int, most: int, settles: int, limit: float) -> Passed:
        """Wait for a report that was asked for; return what :func:`passed` does from there on.

        Of those that come with it, and at most so many.
        """
        fetched, first = self._coming(iteration)
        slot = last = iteration % len(self.come)
        while last < len(self.come) and self.come[last] is self.come[slot]:
            last += 1
        last = min(last, slot + most)
        return passed(fetched.numpy()[slot - first : last - first], settles, limit)

    def _coming(self, iteration: int) -> tuple[Fetched, int]:
        """Return what a report that was asked for comes with, and the first slot of that."""
        if iteration in self.due:
            self.send()
        coming = self.come[iteration % len(self.come)]
        assert coming is not None
        return coming

    def answer(self, iteration: int) -> Told:
        """Wait for a report that was asked for."""
        slot = iteration % len(self.come)
        if slot not in self.told:
            fetched, first = self._coming(iteration)
            self.told[slot] = told(fetched.numpy()[slot - first])
        return self.told[slot]
