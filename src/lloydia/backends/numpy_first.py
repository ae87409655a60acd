"""The CPU engine of few rows: NumPy does the work until compiled kernels pay.

The kernels of a fit take seconds to compile, or a third of a second to load from disk.  NumPy
clusters few rows in milliseconds, and all engines give the same bits.  This is the problem of
renting or buying: whoever does not know what work will follow rents until the rent has come to a
fixed share of the price, and then buys (Karlin, Manasse, Rudolph and Sleator, "Competitive snoopy
caching", *Algorithmica* 3, 1988).  So NumPy has a budget of work for the whole process, and a
quarter of it where the kernels are compiled already.  A wrong guess costs no more than that.

Work is counted in numbers that are computed.  They are known beforehand and do not depend on the
machine.  NumPy does steps of at most `MOST_AT_ONCE` numbers while the budget lasts; the kernels of
:mod:`lloydia.backends.cpu` do the rest.  A run may begin in NumPy and continue in the kernels; a
seeding is done by one of them.  A run of an algorithm that skips distances is always done by its
kernels, which are what the caller asks for.

The environment variable ``LLOYDIA_NUMPY_SECONDS`` sets the budget, in seconds that NumPy takes for
it on a common machine.  With 0, kernels are compiled for all work.  In Python::

    with numpy_first.compiled_only():
        KMeans(3).fit(X)
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.engine import Engine
from lloydia.backends.reference import Reference
from lloydia.backends.reports import DoneReport, Report
from lloydia.backends.run_settings import RunSettings
from lloydia.backends.seeded import Seeded
from lloydia.exact.sums import Magnitudes
from lloydia.imports import load

if TYPE_CHECKING:
    from lloydia.backends.cpu.engine import CPU

__all__ = ["VARIABLE", "Budget", "NumpyFirst", "compiled_only", "engine_for"]

# The environment's variable of the budget, and its value by default.
VARIABLE, SECONDS = "LLOYDIA_NUMPY_SECONDS", "1"

# The share of the budget that NumPy may use where the kernels are compiled already.
SHARE = 0.25

# Seconds that NumPy takes for a number, and the numbers that the calls of a step count for.
SECONDS_A_NUMBER, CALLS = 3e-9, 50_000

# Numbers of a step: more would take longer than 25 ms or more memory than 100 MB.
MOST_AT_ONCE = 1 << 23


class Budget:
    """The work that NumPy may still do in this process.

    Parameters
    ----------
    seconds : float

    Attributes
    ----------
    left : float
        In numbers.
    """

    def __init__(self, seconds: float) -> None:
        self.left = seconds / SECONDS_A_NUMBER
        self._for_new_kernels = self.left * (1.0 - SHARE)

    def take(self, numbers: int, steps: int, compiled: Callable[[], bool]) -> bool:
        """Take the work of some equal steps out of the budget; return False if it has too little.

        Parameters
        ----------
        numbers : int
            Those of a step.
        steps : int
        compiled : callable
            Returns whether the kernels that would do the work are compiled already.
        """
        work = (numbers + CALLS) * steps
        if numbers > MOST_AT_ONCE or work > self.left:
            return False
        # Asking imports Numba, so little work is done without.
        if work > self.left - self._for_new_kernels and compiled():
            return False
        # Threads may overwrite each other's work: then NumPy does so much more.
        self.left -= work
        return True


def seconds_of(text: str) -> float:
    """Return the budget that the environment's variable sets.

    Raises
    ------
    ValueError
        If it is not a number of at least 0.
    """
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not seconds >= 0:
        raise ValueError(
            f"{VARIABLE}={text!r} must be a number of seconds >= 0, such as {SECONDS}."
        )
    return seconds


_budget = Budget(seconds_of(os.environ.get(VARIABLE, SECONDS)))

# How many contexts of `compiled_only` are open.
_contexts = 0


@contextmanager
def compiled_only() -> Iterator[None]:
    """Have compiled kernels do all work of engines that are made in this context, in any thread."""
    global _contexts
    _contexts += 1
    try:
        yield
    finally:
        _contexts -= 1


def engine_for(X: Any, weights: NDArray | None, n_threads: int | None, spare: float) -> Engine:
    """Return the engine of rows on the CPU; the parameters are those of :class:`NumpyFirst`."""

    def compiled() -> CPU:
        return load("lloydia.backends.cpu.engine").CPU(X, weights, n_threads, spare)

    # NumPy measures the magnitudes of the rows first, which counts for no less than a sum.
    if not _contexts and _budget.take(sum_of(*X.shape), 1, lambda: compiled().is_compiled):
        return NumpyFirst(X, weights, n_threads, spare, _budget)
    return compiled()


class NumpyFirst(Seeded, Engine):
    """Few rows on the CPU; see :class:`lloydia.backends.engine.Engine` for what each method means.

    Parameters
    ----------
    X, weights, n_threads, spare
        As of :class:`lloydia.backends.cpu.engine.CPU`.
    budget : Budget

    Attributes
    ----------
    numpy : Reference
    engines : list of Engine
        The first is `numpy`, the second `compiled`, once it is needed.
    run, seeder : Reference or CPU
        The one that does the present run, and the present seeding.
    """

    name = "cpu"

    def __init__(
        self, X: Any, weights: NDArray | None, n_threads: int | None, spare: float, budget: Budget
    ) -> None:
        self._given, self.budget = (X, weights, n_threads, spare), budget
        self.numpy = Reference(X, weights)
        self.engines: list[Engine] = [self.numpy]
        self.run: Reference | CPU = self.numpy
        self.n_samples, self.n_features = X.shape
        self.dtype = X.dtype
        self._seeder_chosen = False

    @cached_property
    def compiled(self) -> CPU:
        """The engine of compiled kernels."""
        engine = load("lloydia.backends.cpu.engine").CPU(*self._given)
        engine.set_grid(self._magnitudes)
        self.engines.append(engine)
        return engine

    def _takes(
        self, part: Literal["dataset", "run", "seeder"], numbers: int, steps: int = 1
    ) -> bool:
        """Take the work of some steps out of the budget; return False if it has too little.

        `part` is the one of the compiled engine that would do it.
        """
        return self.budget.take(numbers, steps, lambda: getattr(self.compiled, part).is_compiled)

    def _by(
        self, part: Literal["dataset", "run", "seeder"], numbers: int, steps: int = 1
    ) -> Reference | CPU:
        """Return the engine that does the work."""
        return self.numpy if self._takes(part, numbers, steps) else self.compiled

    def _distances(self, count: int) -> int:
        """Return the numbers of the distances to so many points."""
        return self.n_samples * count * (self.n_features + 2)

    # -- the data set ------------------------------------------------------------------------

    @cached_property
    def _magnitudes(self) -> Magnitudes:
        return self.numpy.magnitudes()

    def magnitudes(self) -> Magnitudes:
        return self._magnitudes

    def set_grid(self, magnitudes: Magnitudes) -> None:
        self._magnitudes = magnitudes
        for engine in self.engines:
            engine.set_grid(magnitudes)

    def mean_variance(self) -> float:
        return self._by("dataset", sum_of(self.n_samples, self.n_features)).mean_variance()

    def rows(self, indices: NDArray[np.int64]) -> NDArray:
        return self.numpy.rows(indices)

    def seed_weights(self) -> NDArray[np.float64] | None:
        return self.numpy.seed_weights()

    def positive_rows(self, count: int) -> NDArray[np.int64]:
        return self.numpy.positive_rows(count)

    def distances(self, centers: NDArray) -> NDArray:
        return self._by("dataset", self._distances(len(centers))).distances(centers)

    def subset(self, rows: NDArray[np.int64], weights: NDArray[np.float64]) -> NumpyFirst:
        X, _, n_threads, spare = self._given
        return NumpyFirst(X[rows], weights, n_threads, spare, self.budget)

    # -- seeding -----------------------------------------------------------------------------

    def seed_plusplus(
        self, first: NDArray[np.float64], fractions: NDArray[np.float64]
    ) -> NDArray[np.int64] | None:
        n_steps, n_draws = fractions.shape
        self.seeder = self._by("seeder", self._distances(n_draws), 1 + n_steps)
        rows = self.seeder.seed_plusplus(first, fractions)
        # If there are none, the same seeding follows step by step.
        self._seeder_chosen = rows is None
        return rows

    def seed_start(self) -> None:
        if not self._seeder_chosen:
            # There are at most as many seeds as rows.
            self.seeder = self._by("seeder", self._distances(self.n_samples))
        self._seeder_chosen = False
        self.seeder.seed_start()

    # -- a run -------------------------------------------------------------------------------

    algorithm = property(lambda self: self.run.algorithm)
    n_distances = property(lambda self: sum(engine.n_distances for engine in self.engines))
    n_rechecked = property(lambda self: sum(engine.n_rechecked for engine in self.engines))

    def start_run(self, settings: RunSettings) -> None:
        self.settings = settings
        # Iterations before the first one of the engine that does the run.
        self._before = 0
        self._relocation: tuple[NDArray, NDArray] | None = None
        self._numbers = self._distances(len(settings.centers))
        self._numbers += sum_of(self.n_samples, self.n_features)
        small = self._numbers <= MOST_AT_ONCE and settings.algorithm in ("auto", "lloyd")
        self.run = self.numpy if small else self.compiled
        self.run.start_run(settings)

    def iterate(self, inertia: bool) -> DoneReport:
        if self.run is self.numpy and not self._takes("run", self._numbers):
            self._hand_over()
        self._relocation = None
        return DoneReport(self._numbered(self.run.iterate(inertia).result()))

    def _hand_over(self) -> None:
        """Continue the run in compiled kernels, which repeat the last iteration for its labels."""
        done, settings = self.numpy.iteration, self.settings
        self.run = self.compiled
        if done == 0:
            self.run.start_run(settings)
            return
        self._before = done - 1
        left = settings.max_iter - self._before
        self.run.start_run(settings._replace(centers=self.numpy.used, max_iter=left))
        self.run.iterate(False)
        if self._relocation is not None:
            self.run.relocate(*self._relocation)

    def _numbered(self, report: Report) -> Report:
        return report._replace(iteration=self._before + report.iteration)

    def rewind(self, iteration: int) -> None:
        """Do nothing: no iteration is queued before the report of the one before is read."""

    def empty_clusters(self) -> NDArray[np.int64]:
        return self.run.empty_clusters()

    def farthest(self, count: int) -> tuple[NDArray, NDArray, NDArray]:
        return self.run.farthest(count)

    def counts(self) -> NDArray[np.int64]:
        return self.run.counts()

    def relocate(self, rows: NDArray[np.int64], clusters: NDArray[np.int64]) -> Report:
        self._relocation = rows, clusters
        return self._numbered(self.run.relocate(rows, clusters))

    def assign(self) -> None:
        # No more work than an iteration, so that a run in NumPy may always end there.
        self.run.assign()

    def inertia(self) -> float:
        if self.run is not self.numpy and self._takes("dataset", self._distances(1)):
            # Two kernels less are compiled for a pass that a run needs once.
            self.numpy.measure(self.run.labels(), self.compiled.run.used)
            return self.numpy.inertia()
        return self.run.inertia()

    def labels(self) -> NDArray[np.int32]:
        return self.run.labels()

    def centers(self) -> NDArray:
        return self.run.centers()

    def classify(self, centers: NDArray) -> None:
        self.run = self._by("run", self._distances(len(centers)))
        self.run.classify(centers)


def sum_of(n: int, d: int) -> int:
    """Return the numbers that the sums of all clusters count for."""
    return 20 * n * (d + 1)
