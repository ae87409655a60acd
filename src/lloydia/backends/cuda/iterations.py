"""The iterations of a run: queued by the loop, launched on the device, and reported.

The loop queues iterations here, several of which are launched together; it waits for reports in
their order, or for the next one that may end the run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import SupportsFloat

import numpy as np
import torch
from numpy.typing import NDArray

from lloydia.backends.cuda import run_setup
from lloydia.backends.cuda.dataset import Dataset
from lloydia.backends.cuda.device_functions.run_state import ASSIGNED
from lloydia.backends.cuda.matmul.pruning.run import DISTANCES_OF_PRUNED
from lloydia.backends.cuda.protocols import Run, RunEnding
from lloydia.backends.cuda.rows.cost import total_cost
from lloydia.backends.cuda.run_setup import RunRequest
from lloydia.backends.cuda.runtime.own_device import current
from lloydia.backends.cuda.update.reports import IterationStatus
from lloydia.backends.engine import StopRule
from lloydia.backends.reports import Report
from lloydia.exact import sums as exact

__all__ = ["Counters", "Iterations", "NextStop", "Queued"]


@dataclass
class Counters:
    """What the assignments of all runs have done; see :class:`lloydia.backends.engine.Engine`."""

    n_distances: int = 0
    n_rechecked: int = 0


class Iterations:
    """The iterations of one run.

    Parameters
    ----------
    data : Dataset
    request : RunRequest
    run : Run
        See :func:`run_setup.build`.
    lag : int
        Iterations that may be in flight while one is waited for.
    counters : Counters
        Of the engine.

    Attributes
    ----------
    queued, launched, reported : int
        The numbers of the last iteration that the loop has queued, of the last that was launched,
        and of the last whose report the loop has.
    used : torch.Tensor of shape (k, d)
        The centres that the labels belong to.
    ending : RunEnding or None
        What the run ends with, if that was queued.
    pruned : int
        Rows that bounds have left out in the iterations so far.
    """

    def __init__(
        self, data: Dataset, request: RunRequest, run: Run, lag: int, counters: Counters
    ) -> None:
        self.data, self.counters = data, counters
        self.queued = self.launched = self.reported = self.pruned = 0
        self._take(request, run, lag)

    def _take(self, request: RunRequest, run: Run, lag: int) -> None:
        self.request, self.run, self.lag = request, run, lag
        self.used: torch.Tensor = run.memory.current
        self.ending: RunEnding | None = None

    def check(self) -> None:
        """Look at what the run has found of its rows; where its grid is another, begin again."""
        request = run_setup.check(self.data, self.request, self.run)
        if request is not None:
            work = self.run.queued_work
            # Its memory is for the next one.
            del self.run, self.used
            self._take(request, *run_setup.build(self.data, request))
            self.run.repeat(work)

    def launch(self, ends: bool) -> None:
        """Queue on the device what the loop has queued.

        With `ends`, the end of the run is queued as well: usually no other iteration follows.
        """
        first, self.launched = self.launched + 1, self.queued
        self.run.launch(first, self.queued, ends)

    def queue(self) -> None:
        """Count one more iteration; launch all that wait if they are `launches_per_batch`."""
        self.queued += 1
        ends = self.queued == self.request.max_iter
        if ends or self.queued - self.launched >= self.run.launches_per_batch:
            self.launch(ends)

    def launch_ahead(self) -> None:
        """Queue on the device as many iterations as may be in flight, several at once."""
        most, max_iter = self.reported + self.lag + 1, self.request.max_iter
        while self.launched < max_iter:
            first = self.launched + 1
            last = min(self.launched + self.run.launches_per_batch, max_iter)
            if last > most:
                return
            self.queued = self.launched = last
            self.run.launch(first, last, last == max_iter)

    def queue_with_inertia(self) -> SupportsFloat:
        """Queue one more iteration; return its inertia, which ``float()`` waits for."""
        self.queued += 1
        self.launch(ends=False)
        if self.data.unchecked:  # Where the run had no room there are no labels.
            self.check()
        return total_cost(self.data, self.run.memory.labels, self.run.before(self.queued))

    def status(self, iteration: int) -> IterationStatus:
        """Wait for the status of an iteration, launched if need be."""
        if iteration > self.launched:
            self.launch(ends=self.queued == self.request.max_iter)
        if self.data.unchecked:
            self.check()
        return self.run.status(iteration)

    def report(self, iteration: int, inertia: SupportsFloat | None) -> Report:
        """Return the report of an iteration."""
        self.reported = iteration
        launched = iteration <= self.launched and not self.data.unchecked
        status = (self.run.known(iteration) if launched else None) or self.status(iteration)
        self.tally(1, status.rechecked, status.pruned)
        return Report(
            iteration, self.data.n_samples, status.changed, status.empty, status.shift, status.move,
            None if inertia is None else float(inertia),
        )  # fmt: skip

    def tally(self, n_iterations: int, rechecked: int = 0, pruned: int = 0) -> None:
        """Count distances, of which pruned rows need few, and rechecked rows."""
        k = self.request.k
        scored = n_iterations * self.data.n_samples * k
        self.counters.n_distances += scored - pruned * (k - DISTANCES_OF_PRUNED)
        self.counters.n_rechecked += rechecked
        self.pruned += pruned

    def wait_for_stop(self, rule: StopRule) -> Report | None:
        """Wait once; return the report of the first iteration that may end the run, if read."""
        if self.data.unchecked:
            self.check()
        max_iter = self.request.max_iter
        first, most = self.reported + 1, max_iter - self.reported - 1
        continuing = self.run.wait_continuing(first, most, rule.bound)
        self.reported += continuing.count
        self.tally(continuing.count, continuing.rechecked, continuing.pruned)
        # The last one is always reported: once queued, its report usually arrives with the others.
        if continuing.ended or (continuing.count == most and self.launched == max_iter):
            return self.report(self.reported + 1, None)
        return None

    def rewind(self, iteration: int) -> None:
        """Make the state after an iteration current."""
        self.reported = iteration
        status = self.run.status(iteration)
        # What was queued for the end did nothing if the device stopped although rows changed.
        stopped = status.changed and status.stopped
        if status.empty or stopped or not self.launched == iteration == self.queued:
            self.queued = self.launched = iteration
            # Where no row changed the device has stopped, and the run is not continued.
            if (status.changed or status.empty) and status.stopped != ASSIGNED.value:
                self.run.go_back(iteration)
        self.ending = self.run.ending
        # A run that has ended needs no earlier centres.
        if self.ending is None:
            self.used = self.run.before(iteration)

    def empty_clusters(self) -> NDArray[np.int64]:
        """Return the clusters of weight 0."""
        weights = self.run.memory.sums.sum(dim=0)[:, :, -1]
        return np.flatnonzero((weights == 0).all(dim=0).cpu().numpy())

    def relocate(self, rows: NDArray[np.int64], clusters: NDArray[np.int64]) -> Report:
        """Compute the current iteration's centres again, with rows moved to other clusters."""
        data, run, iteration = self.data, self.run, self.launched
        changed = run.status(iteration).changed
        totals = run.memory.sums.sum(dim=0, keepdim=True)
        there = torch.from_numpy(rows).to(data.device)
        own = None if data.weights is None else data.weights[there].cpu().numpy()
        found = exact.limbs(data.rows(rows), own, data.grid)
        limbs = torch.from_numpy(found).to(data.device)
        old = run.memory.labels[there].tolist()
        for i, cluster in enumerate(clusters.tolist()):
            totals[0, :, cluster] += limbs[:, i]
            totals[0, :, old[i]] -= limbs[:, i]
        run.go_back(iteration - 1)
        run.finish(totals, iteration)
        return self.report(iteration, None)._replace(n_changed=changed)

    def assign(self) -> None:
        """Assign all rows to the current centres: the end of the run."""
        self.used = self.run.memory.current
        if self.ending is None:
            self.ending = self.run.end()
        self.tally(1)

    def classify(self) -> None:
        """Assign all rows to the start, and no more."""
        self.run.assign()
        if self.data.unchecked:
            self.check()
        self.data.magnitudes()  # refuses NaN
        self.tally(1)

    def inertia(self) -> SupportsFloat:
        """Return the inertia of the last assignment, which ``float()`` waits for."""
        if self.ending is not None:
            return self.ending
        return total_cost(self.data, self.run.memory.labels, self.used)


class Queued:
    """The report of an iteration that was queued."""

    __slots__ = "inertia", "iteration", "iterations"

    def __init__(
        self, iterations: Iterations, iteration: int, inertia: SupportsFloat | None
    ) -> None:
        self.iterations, self.iteration, self.inertia = iterations, iteration, inertia

    def begin(self) -> None:
        """Queue it on the device, with all that was queued here."""
        its = self.iterations
        if self.iteration > its.launched:
            with current(its.data.device):
                its.launch(ends=its.queued == its.request.max_iter)

    def result(self) -> Report:
        """Wait for it."""
        with current(self.iterations.data.device):
            return self.iterations.report(self.iteration, self.inertia)


class NextStop:
    """The report of the next iteration that may end a run by a rule, if it is read next."""

    __slots__ = "iterations", "rule"

    def __init__(self, iterations: Iterations, rule: StopRule) -> None:
        self.iterations, self.rule = iterations, rule

    def begin(self) -> None:
        """Queue on the device as many iterations as may be in flight."""
        with current(self.iterations.data.device):
            self.iterations.launch_ahead()

    def result(self) -> Report | None:
        """Wait once; return None if no iteration that was read may end the run."""
        its = self.iterations
        with current(its.data.device):
            its.launch_ahead()
            return its.wait_for_stop(self.rule)
