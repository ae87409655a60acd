"""Reports of iterations, on their way to the host while the device goes on."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from lloydia.backends.cuda.means import CHANGED, EMPTY, HALTED, HEAD, MOVE, RECHECKED

__all__ = ["Reports", "Told", "read"]

# Where a report has what is told first.
COUNTS = CHANGED.value, EMPTY.value, RECHECKED.value, HALTED.value


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


def read(reports: NDArray[np.int64]) -> list[Told]:
    """Return what each of some reports, of shape (..., HEAD + k), tells."""
    floats = reports.view(np.float64)
    # One after the other, as cumsum must.
    shifts = floats[:, HEAD.value :].cumsum(1)[:, -1].tolist()
    moves = floats[:, MOVE.value].tolist()
    counts = [reports[:, at].tolist() for at in COUNTS]
    return [*map(Told._make, zip(*counts, moves, shifts))]


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
        self.come: list[torch.cuda.Event | None] = [None] * len(source)
        self.host = torch.empty(source.shape, dtype=source.dtype, pin_memory=source.is_cuda)
        self.rows = self.host.numpy()
        # What those that came together tell, by slot, once one of them was asked for.
        self.told: dict[int, Told] = {}
        self.others: list[list[int]] = [[]] * len(source)

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
        event = torch.cuda.Event() if self.source.is_cuda else None
        slots = sorted({i % len(self.come) for i in self.due})
        self.due.clear()
        some = slice(slots[0], slots[-1] + 1)
        self.host[some].copy_(self.source[some], non_blocking=True)
        for slot in slots:
            self.come[slot], self.others[slot] = event, slots
        if event is not None:
            event.record()

    def answer(self, iteration: int) -> Told:
        """Wait for a report that was asked for."""
        slot = iteration % len(self.come)
        if slot not in self.told:
            if iteration in self.due:
                self.send()
            event = self.come[slot]
            if event is not None:
                event.synchronize()
            slots = self.others[slot]
            self.told.update(zip(slots, read(self.rows[slots])))
        return self.told[slot]
