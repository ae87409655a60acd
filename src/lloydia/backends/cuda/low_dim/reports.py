"""What the host reads of a run over rows of few features: the first bytes of its arena, by copies.

Launches that end with the inertia write these bytes to the host's memory themselves; after other
launches they are copied when they are needed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cuda.device_functions.run_state import STOPPED
from lloydia.backends.cuda.low_dim.memory import LowMemory
from lloydia.backends.cuda.rows.low_cost import DONE
from lloydia.backends.cuda.rows.totals import join_cost
from lloydia.backends.cuda.runtime.arena import part_of
from lloydia.backends.cuda.runtime.async_copy import AsyncCopy
from lloydia.backends.cuda.update.mean_variance import TOTAL, MeanVariance
from lloydia.backends.cuda.update.reports import (
    ContinuingIterations,
    IterationStatus,
    continuing_iterations,
    status_of,
)
from lloydia.backends.run_settings import UNLIMITED

__all__ = ["LowEnding", "LowReports"]


class LowEnding:
    """The inertia that a run ends with, and which labels occur, read when they are asked for."""

    def __init__(self, reports: LowReports) -> None:
        self.reports = reports

    def __float__(self) -> float:
        cost = self.reports.last_part("cost")
        return join_cost(cost[:4].tolist(), len(self.reports.memory.labels))

    def full(self) -> bool:
        """Return whether every cluster has a row."""
        return bool(self.reports.last_part("seen").all())


class LowReports:
    """Copies of the message of a run, the last of which is read.

    Parameters
    ----------
    memory : LowMemory

    Attributes
    ----------
    variance : MeanVariance or None
        By which the device ends the run.
    last, last_read : int
        The last iteration that was launched, and that was read.
    stale : bool
        Whether no copy follows what was launched last.
    copies : list of (int, AsyncCopy)
        Copies that were not read, and the last iteration launched before each.
    message : ndarray of uint8, or None
        The bytes that were read last.
    stopped : bool
        Whether the device had stopped then.
    """

    def __init__(self, memory: LowMemory) -> None:
        self.memory = memory
        self.variance: MeanVariance | None = None
        self.stale = False
        self.last = self.last_read = 0
        self.copies: list[tuple[int, AsyncCopy]] = []
        self.message: NDArray[np.uint8] | None = None
        self.stopped = False
        # The iteration whose status was asked for last, since then, and that status.
        self.asked, self.answer = 0, IterationStatus(0, 0, 0, 0, 0, 0.0, 0.0)

    # -- what is queued ------------------------------------------------------------------------

    def begin(self, last: int) -> None:
        """Note that launches up to an iteration follow."""
        if self.stale:
            self.copies.append((self.last, self._copy()))
        self.last = last

    def queued(self, copy: AsyncCopy | None) -> None:
        """Note that they were queued, and write the message to a copy, if there is one."""
        if copy is not None:
            self.copies.append((self.last, copy))
        self.stale = copy is None

    def changed(self, iteration: int) -> None:
        """Note that the end of an iteration was queued again."""
        self.last, self.stale, self.stopped = iteration, True, False

    def go_back(self, iteration: int) -> None:
        """Forget the end of the run; what was read of reports stays."""
        self.read()
        self.part("cost")[:] = 0
        self.last = self.last_read = iteration
        self.stopped = False

    def _copy(self) -> AsyncCopy:
        """Queue a copy of the message."""
        return AsyncCopy(self.memory.arena.whole, 0, self.memory.shape.message_bytes)

    # -- what is read --------------------------------------------------------------------------

    def read(self, iteration: int = UNLIMITED) -> None:
        """Wait for what was launched up to an iteration; by default, for all of it."""
        while self.copies:
            last, copy = self.copies.pop(0)
            if iteration <= last or not (self.copies or self.stale):
                self._take(copy, last)
                return
        if self.stale:
            self._take(self._copy(), self.last)
            self.stale = False

    def _take(self, copy: AsyncCopy, last: int) -> None:
        """Wait for a copy that follows the launches up to an iteration."""
        self.message = copy.numpy().view(np.uint8)
        self.stopped = bool(self.part("run_state")[STOPPED.value])
        self.last_read, self.asked = last, 0
        if self.variance is not None and not self.variance.own_memory:
            self.variance.limbs = self.part("variance")[:TOTAL].tolist()

    def part(self, name: str) -> NDArray:
        """Return a part of the message that was read last; waits for the first launch."""
        if self.message is None:
            self.read(1)
        assert self.message is not None
        return part_of(self.memory.shape.offsets, name, self.message)

    def last_part(self, name: str) -> NDArray:
        """Return a part of the message after all that was launched; waits for that.

        Where the device has stopped, nothing has changed since.
        """
        if not self.stopped:
            self.read()
        return self.part(name)

    def wait_continuing(self, first: int, most: int, limit: float) -> ContinuingIterations:
        """Wait for an iteration; return the iterations from there on that end nothing.

        Of those that are known then, in slots that follow each other, and at most so many.
        """
        if first > self.last_read:
            self.read(first)
        memory = self.memory
        slot = memory.slot(first)
        last = min(slot + most, slot + self.last_read + 1 - first, memory.shape.n_slots)
        return continuing_iterations(self.part("report")[slot:last], memory.empty_stops, limit)

    def known(self, iteration: int) -> IterationStatus | None:
        """Return the report of an iteration that was launched, if it was read."""
        return None if iteration > self.last_read else self.status(iteration)

    def status(self, iteration: int) -> IterationStatus:
        """Wait for the report of an iteration."""
        if iteration > self.last_read:
            self.read(iteration)
        # The loop and the engine ask for the same one.
        if iteration != self.asked:
            report = self.part("report")[self.memory.slot(iteration)]
            self.asked, self.answer = iteration, status_of(report)
        return self.answer

    @property
    def ending(self) -> LowEnding | None:
        """What the run ends with, if the device has reached it; waits for what was launched."""
        return LowEnding(self) if self.last_part("cost")[DONE.value] else None
