"""The engine: a data set on a GPU, a seeding of it, and a run over it.

Every question of the loop goes to one of the three, with the engine's GPU as the current device.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, SupportsFloat

import numpy as np
import torch
from numpy.typing import NDArray

from lloydia.backends.cuda.dataset import Dataset
from lloydia.backends.cuda.iterations import Counters, Iterations, NextStop, Queued
from lloydia.backends.cuda.matmul.pruning.run import ALGORITHM
from lloydia.backends.cuda.placement import place_rows
from lloydia.backends.cuda.protocols import Run
from lloydia.backends.cuda.rows.distances import distances, own_distances
from lloydia.backends.cuda.run_setup import build, request_run
from lloydia.backends.cuda.runtime.forms import at_first
from lloydia.backends.cuda.runtime.launching import INTERPRETED
from lloydia.backends.cuda.runtime.own_device import current, on
from lloydia.backends.cuda.seeding import donors
from lloydia.backends.cuda.seeding.seeder import Seeder
from lloydia.backends.engine import Engine, ExpectedRun, StopRule
from lloydia.backends.reports import Report
from lloydia.backends.run_settings import RunSettings
from lloydia.backends.seeded import Seeded
from lloydia.exact import sums as exact

__all__ = ["CUDA"]


class CUDA(Seeded, Engine):
    """The engine for rows on a GPU; see :class:`lloydia.backends.engine.Engine`.

    Parameters
    ----------
    X : torch.Tensor or ndarray of shape (n, d)
    weights : ndarray of shape (n,), float64, or None
    device : str

    Attributes
    ----------
    data : Dataset
    seeder : Seeder
    counters : Counters
        Of the assignments of all runs.
    """

    seeder: Seeder

    def __init__(self, X: Any, weights: NDArray | None, device: str) -> None:
        with on(device):
            data = place_rows(X, weights, device)
            # The rows are measured at once, unless a run or the storing of fp16_rows measures them.
            if not data.kind.stores_fp16 and weights is not None:
                data.ask()
        self._take(data)

    @classmethod
    def over(cls, data: Dataset) -> CUDA:
        """Return the engine for rows that are in their place."""
        engine = cls.__new__(cls)
        engine._take(data)
        return engine

    def _take(self, data: Dataset) -> None:
        self.seeder = Seeder(data)
        self.data, self.device, self.name, self.dtype = data, data.device, data.name, data.dtype
        self.n_samples, self.n_features = data.n_samples, data.n_features
        self.counters = Counters()
        self._iterations: Iterations | None = None

    @property
    def iterations(self) -> Iterations:
        """Those of the run that was started last."""
        assert self._iterations is not None, "A run begins with start."
        return self._iterations

    @property
    def run(self) -> Run:
        """The state of that run on the device."""
        return self.iterations.run

    algorithm = property(lambda self: self._algorithm())
    n_distances = property(lambda self: self.counters.n_distances)
    n_rechecked = property(lambda self: self.counters.n_rechecked)

    def _algorithm(self) -> str:
        """Return that of the bounds if they have pruned rows in the run, else "lloyd"."""
        its = self._iterations
        return ALGORITHM if its is not None and its.pruned else "lloyd"

    # -- the data ----------------------------------------------------------------------------

    def _check_run(self) -> None:
        """Check what a run has found of the rows, if anything was queued for it."""
        its, data = self._iterations, self.data
        # What is queued with a start may be by a guess, unless the first launch measures the rows.
        if its is not None and data.unchecked and (its.launched or not data.kind.measures):
            its.check()

    def magnitudes(self) -> exact.Magnitudes:
        with current(self.device):
            self._check_run()
            return self.data.magnitudes()

    def check_range_later(self) -> bool:
        self.data.check_range_later()
        return True

    def set_grid(self, magnitudes: exact.Magnitudes) -> None:
        self.data.set_grid(magnitudes)

    def rows(self, indices: NDArray[np.int64]) -> NDArray:
        with current(self.device):
            return self.data.rows(indices)

    def seed_weights(self) -> NDArray[np.float64] | None:
        return self.data.seed_weights()

    def positive_rows(self, count: int) -> NDArray[np.int64]:
        return self.data.positive_rows(count)

    def mean_variance(self) -> float:
        with current(self.device):
            self._check_run()
            self.data.magnitudes()  # refuses NaN
            return float(self.data.queue_variance(self.tolerance))

    def subset(self, rows: NDArray[np.int64], weights: NDArray[np.float64]) -> CUDA:
        with current(self.device):
            chosen = self.data.X[torch.as_tensor(rows, device=self.device)]
        return CUDA(chosen, weights, self.name)

    # -- a run -------------------------------------------------------------------------------

    def expecting(self, run: ExpectedRun) -> AbstractContextManager[None]:
        from lloydia.backends.cuda.rehearsal import make_run

        return self._compiling(lambda engine: make_run(engine, run))

    def _compiling(self, work: Callable[[CUDA], object]) -> AbstractContextManager[None]:
        """Return a context in which all kernels of some work are compiled when the first is needed.

        `work` is done by an engine of rows without numbers.
        """
        if INTERPRETED or self.data.X.is_meta:
            return nullcontext()
        # Imported late: it makes an engine.
        from lloydia.backends.cuda.rehearsal import rehearse

        return at_first(rehearse(self.data, work))

    def start_run(self, settings: RunSettings) -> None:
        with current(self.device):
            self.seeder.forget_seeds()
            request = request_run(self.data, settings, self.tolerance)
            self._iterations = None  # Its memory is for the next one.
            run, self.lag = build(self.data, request)
            self._iterations = Iterations(self.data, request, run, self.lag, self.counters)

    def iterate(self, inertia: bool) -> Queued:
        its = self.iterations
        with current(self.device):
            if inertia:
                return Queued(its, its.queued + 1, its.queue_with_inertia())
            its.queue()
        return Queued(its, its.queued, None)

    def next_stop(self, rule: StopRule) -> NextStop:
        return NextStop(self.iterations, rule)

    def rewind(self, iteration: int) -> None:
        with current(self.device):
            self.iterations.rewind(iteration)

    def empty_clusters(self) -> NDArray[np.int64]:
        with current(self.device):
            return self.iterations.empty_clusters()

    def relocate(self, rows: NDArray[np.int64], clusters: NDArray[np.int64]) -> Report:
        with current(self.device):
            return self.iterations.relocate(rows, clusters)

    def assign(self) -> None:
        with current(self.device):
            self.iterations.assign()

    def inertia(self) -> SupportsFloat:
        with current(self.device):
            return self.iterations.inertia()

    @property
    def full(self) -> bool:
        """Whether every cluster is known to have a row since :meth:`assign`."""
        ending = self.iterations.ending
        return ending is not None and ending.full()

    def labels(self) -> torch.Tensor:
        return self.iterations.run.memory.labels

    def centers(self) -> torch.Tensor:
        return self.iterations.run.memory.current

    def counts(self) -> NDArray[np.int64]:
        its = self.iterations
        with current(self.device):
            return donors.counts(its.run.memory.labels, self.data.weights, its.request.k)

    def farthest(self, count: int) -> tuple[NDArray, NDArray, NDArray]:
        its = self.iterations
        with current(self.device):
            D = own_distances(self.data, its.run.memory.labels, its.used)
            return donors.farthest(D, its.run.memory.labels, self.data.weights, count)

    # -- without a run -----------------------------------------------------------------------

    def classify(self, centers: NDArray) -> None:
        with self._compiling(lambda engine: engine.classify(centers)):
            self.start(np.asarray(centers), "lloyd")
            with current(self.device):
                self.iterations.classify()

    def distances(self, centers: NDArray) -> torch.Tensor:
        with current(self.device), self._compiling(lambda engine: engine.distances(centers)):
            self._check_run()
            self.data.magnitudes()  # refuses NaN
            there = torch.from_numpy(centers.astype(self.dtype)).to(self.device)
            return distances(self.data, there)
