"""The engine: what the loop asks, queued as kernels."""

from __future__ import annotations

from typing import Any, SupportsFloat

import numpy as np
import torch
from numpy.typing import NDArray

from lloydia.backends.cuda.beginning import Beginning
from lloydia.backends.cuda.device_functions.run_state import ASSIGNED
from lloydia.backends.cuda.matmul.pruning.largest_moves import N_LARGEST
from lloydia.backends.cuda.rows.distances import distances, own_distances
from lloydia.backends.cuda.rows.low_cost import low_cost
from lloydia.backends.cuda.rows.totals import Cost, cost_limbs, largest_term
from lloydia.backends.cuda.runtime.own_device import anywhere, on_own_device
from lloydia.backends.cuda.seeding import donors
from lloydia.backends.cuda.update.reports import IterationStatus
from lloydia.backends.engine import Engine, Report, StopRule
from lloydia.exact import sums as exact

__all__ = ["CUDA"]


class Queued:
    """The report of an iteration that was queued."""

    __slots__ = "engine", "inertia", "iteration"

    def __init__(self, engine: CUDA, iteration: int, inertia: SupportsFloat | None) -> None:
        self.engine, self.iteration, self.inertia = engine, iteration, inertia

    def begin(self) -> None:
        """Queue it on the device, with all that was queued here."""
        engine = self.engine
        engine.launch(self.iteration, ends=engine.queued == engine.max_iter)

    def result(self) -> Report:
        """Wait for it."""
        return self.engine.report(self.iteration, self.inertia)


class Ended:
    """The report of the next iteration that may end a run by a rule, if it comes next."""

    __slots__ = "engine", "rule"

    def __init__(self, engine: CUDA, rule: StopRule) -> None:
        self.engine, self.rule = engine, rule

    def begin(self) -> None:
        """Queue on the device what is not there yet."""
        self.engine.advance()

    def result(self) -> Report | None:
        """Wait for what comes next; None where none of it may end the run."""
        return self.engine.next_end(self.rule)


@on_own_device
class CUDA(Beginning, Engine):
    """The engine for rows on a GPU; see :class:`lloydia.backends.engine.Engine`.

    Parameters
    ----------
    X : torch.Tensor or ndarray of shape (n, d)
    weights : ndarray of shape (n,), float64, or None
    device : str
    """

    algorithm = "lloyd"

    def __init__(self, X: Any, weights: NDArray | None, device: str) -> None:
        super().__init__(X, weights, device)
        # What the data hold is asked at once, unless a run or the storing of halves finds it.
        if self.low and weights is not None:
            self.ask()

    def mean_variance(self) -> float:
        self.magnitudes()  # refuses NaN
        # Of more features, what is queued with the start may be by a guess, too.
        if self.unchecked and (self.launched or not self.low):
            self._check()
        return float(self.queue_mean_variance())

    # -- a run -------------------------------------------------------------------------------

    @anywhere
    def iterate(self, inertia: bool) -> Queued:
        self.queued = queued = self.queued + 1
        if inertia:
            return Queued(self, queued, self.watch())
        # Several together, where they are short, take the host less time.
        if queued - self.launched >= self.run.launches_per_batch or queued == self.max_iter:
            self.launch(queued, ends=queued == self.max_iter)
        return Queued(self, queued, None)

    @anywhere
    def next_stop(self, rule: StopRule) -> Ended:
        """Return what comes next of the run: nobody sees iterations that do not end it."""
        return Ended(self, rule)

    def advance(self) -> None:
        """Queue iterations on the device: several together, as many as may be on their way."""
        most = self.reported + self.lag + 1
        while self.launched < self.max_iter:
            last = min(self.launched + self.run.launches_per_batch, self.max_iter)
            if last > most:
                return
            self.queued = last
            self.launch(last, ends=last == self.max_iter)

    def next_end(self, rule: StopRule) -> Report | None:
        """Wait once; return the report of the first iteration that may end the run, if it came."""
        self.advance()
        if self.unchecked:
            self._check()
        first, most = self.reported + 1, self.max_iter - self.reported - 1
        continuing = self.run.wait_continuing(first, most, rule.bound)
        self.reported += continuing.count
        self._tally(continuing.count, continuing.rechecked, continuing.pruned)
        # The last one is reported in any case: once queued, it mostly comes with those before.
        if continuing.ended or (continuing.count == most and self.launched == self.max_iter):
            return self.report(self.reported + 1, None)
        return None

    def watch(self) -> Cost:
        """Return the inertia of the iteration that was queued last, which is launched with it."""
        self.launch(self.queued, ends=False)
        if self.unchecked:  # Where the run had no room there are no labels.
            self._check()
        return self.total_cost(self.run.labels, self.run.before(self.queued), self.weights)

    def launch(self, iteration: int, ends: bool) -> None:
        """Queue on the device what the loop has queued here, unless it has this iteration.

        With `ends`, the end of the run as well: if the loop queues no more, it is mostly there.
        """
        if iteration > self.launched:
            first, self.launched = self.launched + 1, self.queued
            self.run.launch(first, self.queued, ends)

    def wait(self, iteration: int) -> IterationStatus:
        """Return the status of an iteration, launched if need be."""
        if iteration > self.launched:
            self.launch(iteration, ends=self.queued == self.max_iter)
        if self.unchecked:
            self._check()
        return self.run.status(iteration)

    @anywhere
    def report(self, iteration: int, inertia: SupportsFloat | None) -> Report:
        """Return the report of an iteration."""
        self.reported = iteration
        launched = iteration <= self.launched and not self.unchecked
        status = (self.run.known(iteration) if launched else None) or self.wait(iteration)
        self._tally(1, status.rechecked, status.pruned)
        cost = None if inertia is None else float(inertia)
        return Report(
            iteration, self.n_samples, status.changed, status.empty, status.shift, status.move, cost
        )

    def _tally(self, n_iterations: int, rechecked: int, pruned: int) -> None:
        """Count distances and rechecked rows; pruned rows were compared to N_LARGEST centres."""
        self.n_distances += n_iterations * self.n_samples * self.k - pruned * (self.k - N_LARGEST)
        self.n_rechecked += rechecked

    @anywhere
    def rewind(self, iteration: int) -> None:
        self.reported = iteration
        status = self.run.status(iteration)
        # What was queued for the end did nothing where the device has stopped, but by itself.
        stopped = status.changed and status.stopped
        if status.empty or stopped or not self.launched == iteration == self.queued:
            self.queued = self.launched = iteration
            # Where nothing changed the device stopped, and no more is asked of this run.
            if (status.changed or status.empty) and status.stopped != ASSIGNED.value:
                self.go_back(iteration)
        self.ending = self.run.ending
        # A run that came to its end asks for no centres of before.
        if self.ending is None:
            self.used = self.run.before(iteration)

    def go_back(self, iteration: int) -> None:
        """Have the device return to the state after an iteration."""
        self.run.go_back(iteration)

    def empty_clusters(self) -> NDArray[np.int64]:
        weights = self.run.sums.sum(dim=0)[:, :, -1]
        return np.flatnonzero((weights == 0).all(dim=0).cpu().numpy())

    def relocate(self, rows: NDArray[np.int64], clusters: NDArray[np.int64]) -> Report:
        run, iteration = self.run, self.launched
        changed = run.status(iteration).changed
        totals = run.sums.sum(dim=0, keepdim=True)
        weights = None if self.weights is None else self.weights.cpu().numpy()[rows]
        limbs = torch.from_numpy(exact.limbs(self.rows(rows), weights, self.grid)).to(self.device)
        old = run.labels[torch.from_numpy(rows).to(self.device)].tolist()
        for i, cluster in enumerate(clusters.tolist()):
            totals[0, :, cluster] += limbs[:, i]
            totals[0, :, old[i]] -= limbs[:, i]
        run.go_back(iteration - 1)
        run.finish(totals, iteration)
        report = self.report(iteration, None)
        return report._replace(n_changed=changed)

    @anywhere
    def assign(self) -> None:
        self.used = self.run.current
        if self.ending is None:
            self.end()
        self.n_distances += self.n_samples * self.k

    def end(self) -> None:
        """Queue what the run ends with."""
        self.ending = self.run.end()

    @anywhere
    def inertia(self) -> SupportsFloat:
        if self.ending is not None:
            return self.ending
        return self.total_cost(self.run.labels, self.used, self.weights)

    @property
    def full(self) -> bool:
        """Whether every cluster is known to have a row since :meth:`assign`."""
        return self.ending is not None and self.ending.full()

    def total_cost(
        self, labels: torch.Tensor, centers: torch.Tensor, weights: torch.Tensor | None
    ) -> Cost:
        """Return the weighted sum of D to the centres of these labels."""
        if self.low:
            return low_cost(self, labels, centers, weights)
        D = own_distances(self, labels, centers)
        return Cost(cost_limbs(D, weights, largest_term(D, weights)), self.n_samples)

    @anywhere
    def labels(self) -> torch.Tensor:
        return self.run.labels

    @anywhere
    def centers(self) -> torch.Tensor:
        return self.run.current

    def counts(self) -> NDArray[np.int64]:
        return donors.counts(self.run.labels, self.weights, self.k)

    def farthest(self, count: int) -> tuple[NDArray, NDArray, NDArray]:
        D = own_distances(self, self.run.labels, self.used)
        return donors.farthest(D, self.run.labels, self.weights, count)

    # -- without a run -----------------------------------------------------------------------

    def classify(self, centers: NDArray) -> None:
        self.start(np.asarray(centers), "lloyd")
        self.run.assign()
        if self.unchecked:
            self._check()
        self.magnitudes()  # refuses NaN
        self.n_distances += self.n_samples * self.k

    def distances(self, centers: NDArray) -> torch.Tensor:
        self.magnitudes()  # refuses NaN
        return distances(self, torch.from_numpy(centers.astype(self.dtype)).to(self.device))
