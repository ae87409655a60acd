"""What the host reads of a run over rows of few features: mostly one copy of all that is told."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cuda.device_functions.iteration_report import HEAD
from lloydia.backends.cuda.device_functions.run_state import STOPPED
from lloydia.backends.cuda.low_dim.memory import LowMemory
from lloydia.backends.cuda.low_dim.shape import LIMBS
from lloydia.backends.cuda.rows.low_cost import DONE
from lloydia.backends.cuda.rows.totals import join_cost
from lloydia.backends.cuda.runtime.async_copy import AsyncCopy
from lloydia.backends.cuda.update.mean_variance import TOTAL, MeanVariance
from lloydia.backends.cuda.update.reports import (
    ContinuingIterations,
    IterationStatus,
    continuing_iterations,
    status_of,
)
from lloydia.backends.engine import UNLIMITED

__all__ = ["LowEnding", "LowReports"]


class LowEnding:
    """The inertia that a run ends with, and which labels occur, when someone asks for them."""

    def __init__(self, run: LowReports) -> None:
        self.run, self.n = run, run.rows.n_samples

    def __float__(self) -> float:
        return join_cost(self.run.last_part(2)[:4].tolist(), self.n)

    def full(self) -> bool:
        """Return whether every cluster has a row."""
        return int(np.count_nonzero(self.run.last_part(3).view(np.int32))) == self.run.k


class LowReports(LowMemory):
    """What was told, and what is on its way.

    Attributes
    ----------
    variance : MeanVariance, optional
        By which the device ends the run.
    empty_stops : int
        Whether iterations end at one with empty clusters.
    begins : bool
        Whether nothing was launched yet.
    stale : bool
        Whether what was launched last is to be fetched.
    last, known_to : int
        The last iteration that was launched, and that was read.
    sent : list of (int, AsyncCopy)
        What launches tell, on its way, and up to which iterations.
    found : ndarray of int64, or None
        What was read at last.
    stopped : bool
        Whether the device had stopped then.
    """

    variance: MeanVariance | None = None
    empty_stops: int

    def _reset(self) -> None:
        """Begin with nothing launched."""
        self.begins, self.stale = True, False
        self.last = self.known_to = 0
        self.sent: list[tuple[int, AsyncCopy]] = []
        self.found: NDArray[np.int64] | None = None
        self.stopped = False
        # The iteration that was asked for last, since then, and what was told of it.
        self.asked, self.answered = 0, IterationStatus(0, 0, 0, 0, 0, 0.0, 0.0)

    def slot(self, iteration: int) -> int:
        """Return where the centres and the report of an iteration are."""
        return iteration % self.n_slots

    def read(self, iteration: int = UNLIMITED) -> None:
        """Wait for what was launched up to an iteration; by default, for all of it."""
        while self.sent:
            last, copy = self.sent.pop(0)
            if iteration <= last or not (self.sent or self.stale):
                self._take_copy(copy, last)
                return
        if self.stale:
            self._take_copy(self._fetch(), self.last)
            self.stale = False

    def _fetch(self) -> AsyncCopy:
        """Queue the copy of what is told."""
        return AsyncCopy(self.arena, 0, 8 * self.shape.edges[-1])

    def _take_copy(self, copy: AsyncCopy, last: int) -> None:
        """Take what launches up to an iteration have told."""
        self.found = copy.numpy().view(np.int64)
        self.stopped = bool(self.part(4).view(np.int32)[STOPPED.value])
        self.known_to, self.asked = last, 0
        if self.variance is not None and self.variance.memory is self.variance_memory:
            self.variance.limbs = self.part(6)[:TOTAL].tolist()

    def _reports(self) -> NDArray[np.int64]:
        """Return the reports that were read at last: shape (n_slots, HEAD + k)."""
        size = HEAD.value + self.k
        return self.part(5)[: self.n_slots * size].reshape(self.n_slots, size)

    def wait_continuing(self, first: int, most: int, limit: float) -> ContinuingIterations:
        """Wait for an iteration; return the iterations from there on that end nothing.

        Of those that are known then, in slots that follow each other, and at most so many.
        """
        if first > self.known_to:
            self.read(first)
        slot = self.slot(first)
        last = min(slot + most, slot + self.known_to + 1 - first, self.n_slots)
        return continuing_iterations(self._reports()[slot:last], self.empty_stops, limit)

    def part(self, i: int) -> NDArray[np.int64]:
        """Return a part of what was told at last; waits for the first launch."""
        if self.found is None:
            self.read(1)
        assert self.found is not None
        edges = self.shape.edges
        return self.found[edges[i] : edges[i + 1]]

    def last_part(self, i: int) -> NDArray[np.int64]:
        """Return a part of what is told after all that was launched; waits for that.

        Where the device has stopped, nothing has changed since.
        """
        if not self.stopped:
            self.read()
        return self.part(i)

    def needs(self) -> int:
        """Return the limbs that the rows need, as found by the first launch; 0: not finite.

        Or the start is not.
        """
        return int(self.part(1)[2 * self.rows.n_features])

    def verify(self) -> bool:
        """Return whether the run has room for the limbs that the rows need; they get the bounds."""
        d = self.rows.n_features
        self.rows.take_bounds(self.part(1)[: 2 * d].reshape(1, 2, d))
        return 0 < self.needs() <= LIMBS

    def known(self, iteration: int) -> IterationStatus | None:
        """Return the report of an iteration that was launched, if it was read."""
        return None if iteration > self.known_to else self.status(iteration)

    def status(self, iteration: int) -> IterationStatus:
        """Wait for the report of an iteration."""
        if iteration > self.known_to:
            self.read(iteration)
        # The loop and the engine ask for the same one.
        if iteration != self.asked:
            self.asked, self.answered = iteration, status_of(self._reports()[self.slot(iteration)])
        return self.answered

    @property
    def ending(self) -> LowEnding | None:
        """What the run ends with, if what was launched came to its end; waits for that."""
        return LowEnding(self) if self.last_part(2)[DONE.value] else None
