"""Reports of iterations, on their way to the host while the device goes on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from lloydia.backends.cuda.fetching import Fetched
from lloydia.backends.cuda.means import CHANGED, EMPTY, HALTED, HEAD, MOVE, RECHECKED

__all__ = ["Reports", "Told", "passed", "read"]

# Where a report has what is told first, and where the parts of its shift begin.
COUNTS = CHANGED.value, EMPTY.value, RECHECKED.value, HALTED.value
FIRST = HEAD.value


class Told(NamedTuple):
    """What the device tells of an iteration; `shift` is the sum of what is told from HEAD on.

    `halted` is what its HALT became.
    """

    changed: int
    empty: int
    rechecked: int
    halted: int
    move: float
    shift: float


def shifts_of(reports: NDArray[np.int64]) -> list[float]:
    """Return the shift that each of some reports, of shape (..., HEAD + k), tells."""
    # One after the other, as cumsum must.
    return reports.view(np.float64)[:, FIRST:].cumsum(1)[:, -1].tolist()


def heads_of(reports: NDArray[np.int64]) -> Iterator[tuple[list[int], float]]:
    """Return what each of some reports tells before its shift, and its move."""
    return zip(reports[:, :FIRST].tolist(), reports.view(np.float64)[:, MOVE.value].tolist())


def read(reports: NDArray[np.int64]) -> list[Told]:
    """Return what each of some reports, of shape (..., HEAD + k), tells."""
    return [
        Told(*[head[at] for at in COUNTS], move, shift)
        for (head, move), shift in zip(heads_of(reports), shifts_of(reports))
    ]


def passed(reports: NDArray[np.int64], settles: int, limit: float) -> tuple[int, int]:
    """Return how many of some reports, from the first, are of iterations that end nothing.

    And how many rows those checked again.  In such an iteration rows changed, centres moved by more
    than `limit`, and no cluster that matters was empty.  The last report is left in any case.
    """
    changed, empty, rechecked, _ = COUNTS
    count = again = 0
    for i, (head, move) in enumerate(heads_of(reports[:-1])):
        if head[changed] == 0 or (settles and head[empty]):
            break
        # The square of one coordinate's change is part of the shift, and rounding keeps order.
        if move * move <= limit and shifts_of(reports[i : i + 1])[0] <= limit:
            break
        count, again = count + 1, again + head[rechecked]
    return count, again


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
        # What those that came together tell, by slot, once one of them was asked for.
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

    def answer(self, iteration: int) -> Told:
        """Wait for a report that was asked for."""
        slot = iteration % len(self.come)
        if slot not in self.told:
            if iteration in self.due:
                self.send()
            coming = self.come[slot]
            assert coming is not None
            fetched, first = coming
            rows = fetched.numpy()
            slots = [i for i, other in enumerate(self.come) if other is coming]
            self.told.update(zip(slots, read(rows[[i - first for i in slots]])))
        return self.told[slot]
