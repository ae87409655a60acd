"""One run over rows of few features: its start, iterations and end, queued on the device."""

from __future__ import annotations

from copy import copy
from functools import partial
from typing import Any
from weakref import proxy

import torch
from numpy.typing import NDArray

from lloydia.backends.cuda import options
from lloydia.backends.cuda.device_functions.run_state import ITERATION, STOPPED
from lloydia.backends.cuda.low_dim.launches import LowLaunches
from lloydia.backends.cuda.low_dim.memory import LowMemory
from lloydia.backends.cuda.low_dim.reports import LowEnding, LowReports
from lloydia.backends.cuda.low_dim.shape import LIMBS, shape_of
from lloydia.backends.cuda.low_dim.stages import AT_LIMIT, LAST
from lloydia.backends.cuda.protocols import RunRows
from lloydia.backends.cuda.rows.fixed_point_grid import FixedPointGrid
from lloydia.backends.cuda.runtime.async_copy import AsyncCopy
from lloydia.backends.cuda.runtime.relocation import StagedWork, replay_times
from lloydia.backends.cuda.update.all_reduce import queue_write_message
from lloydia.backends.cuda.update.mean_variance import MeanVariance
from lloydia.backends.cuda.update.means import queue_finish
from lloydia.backends.cuda.update.reports import ContinuingIterations, IterationStatus
from lloydia.exact import sums as exact

__all__ = ["LIMBS", "SPARE", "LowRun"]

# More than the entries of a list of all rows that stay unused.
SPARE = 1 << 20

# Some launches: their name, what queues them, and how often.
NamedWork = tuple[str, StagedWork, int]


class LowRun:
    """A run: it decides what is queued, by :mod:`launches`, and when the host reads of it.

    An iteration is four kernels: :mod:`assign`, :mod:`recheck`, :mod:`update` and :mod:`means`.
    The device stops by itself: then kernels that are queued beyond return at once.

    Parameters
    ----------
    rows : RunRows
    fixed_point_grid : FixedPointGrid or None
        None: the run begins with finding it.
    centers : ndarray of shape (k, d), or a tensor on the device
        A tensor may hold what is not finite, if the run begins with finding the fixed-point grid,
        and stays as it is until that was waited for.
    n_slots : int
        Iterations whose centres and reports are kept.
    empty_stops : bool
        Whether iterations end at one with empty clusters.

    Attributes
    ----------
    memory : LowMemory
    launches : LowLaunches
    reports : LowReports
    launches_per_batch : int
        Iterations that are launched together.
    begins : bool
        Whether nothing was launched yet.
    tabulated : bool
        Whether the next assignment finds the table of the centres.  A device that has stopped
        writes none, but changes no centre either: so what changes centres between iterations, or
        ends a stop, makes it false.
    launched : tuple
        What was queued last: iterations, and whether an assignment and the inertia follow.
    """

    launches_per_batch = 1

    def __init__(
        self,
        rows: RunRows,
        fixed_point_grid: FixedPointGrid | None,
        centers: NDArray | torch.Tensor,
        n_slots: int,
        empty_stops: bool,
    ) -> None:
        # The rows may refer to the run: if the run did, too, their memory would stay a while.
        self.rows = proxy(rows)
        grid = None if fixed_point_grid is None else fixed_point_grid.grid
        n, (k, d) = rows.n_samples, centers.shape
        bits, n_limbs = (exact.bits_a_limb(n), LIMBS) if grid is None else (grid.bits, grid.n_limbs)
        tables = rows.weights is None and options.is_on("shared_memory_tables")
        shape = shape_of(n, d, k, n_slots, n_limbs, bits, rows.wide.itemsize, tables, rows.device)
        self.memory = LowMemory(self.rows, shape, centers, empty_stops)
        self.launches = LowLaunches(self.rows, fixed_point_grid, self.memory)
        self.reports = LowReports(self.memory)
        self.begins, self.tabulated = True, False
        if fixed_point_grid is not None:  # Else the first launch writes them.
            self.memory.zeros.zero_()

    def limit_by(self, variance: MeanVariance) -> None:
        """Have the device end the run by the limit of a mean variance, queued with its start."""
        self.launches.variance = self.reports.variance = variance

    def over(self, rows: Any, labels: torch.Tensor) -> LowRun:
        """Return a run over other rows, at most as many, in the same memory but for labels."""
        run = copy(self)
        run.rows, run.memory = rows, self.memory.over(rows, labels)
        run.launches = self.launches.over(rows, run.memory)
        return run

    # -- what is queued ------------------------------------------------------------------------

    def launch(self, first: int, last: int, ends: bool, inertia: bool = True) -> None:
        """Queue the iterations `first` to `last`; with `ends` an assignment; then the inertia.

        There is no iteration if `last` is less than `first`.  The device computes the inertia only
        if the run has ended.  Without `inertia` nothing is read back.
        """
        if first <= last:
            self.reports.begin(last)
        self.launched, memory = (last - first + 1, ends, inertia), self.memory
        message = (
            AsyncCopy.written(memory.shape.message_bytes // 8, self.rows.device)
            if inertia
            else None
        )
        host = None if message is None else message.memory
        names, works, times = zip(*self._works(host))
        buffer_map = self.launches.buffer_map(names, host, self._measures())
        try:
            replay_times(works, times, self.rows.device, buffer_map)
        finally:
            if message is not None:
                message.record_event()
        self.reports.queued(message)
        self.begins, self.tabulated = False, True
        if self.launches.variance is not None:
            self.launches.variance.done()

    def assign(self) -> None:
        """Queue an assignment to the centres, which others write before and after it."""
        self.tabulated = False
        self.launch(1, 0, ends=True, inertia=False)
        self.tabulated = False

    def assign_once(self) -> None:
        """Queue an assignment by a run that does nothing else: it records nothing."""
        self.launches.tabulate()
        self.launches.assign(LAST)

    def accumulate(self) -> None:
        """Queue an assignment, and the moves of rows that changed from sum to sum."""
        self.assign()
        buffer_map = self.launches.buffer_map(("move",), None, False)
        replay_times([lambda: [self.launches.update]], [1], self.rows.device, buffer_map)

    def contribute(self, message: torch.Tensor) -> None:
        """Queue an iteration up to the message that other devices add up."""
        self.accumulate()
        queue_write_message(self.memory.sums, self.memory.run_state, message)

    def end(self) -> LowEnding:
        """Queue an assignment and the inertia."""
        self.launch(1, 0, ends=True)
        return LowEnding(self.reports)

    def _works(self, host: torch.Tensor | None) -> list[NamedWork]:
        """Return the works that follow, as `launched` has them."""
        n_iterations, assigns, inertia = self.launched
        launches, variance = self.launches, self.launches.variance
        out: list[NamedWork] = []
        if self._measures():
            out.append(("measure", lambda: [launches.measure], 1))
        if variance is not None and not variance.queued:
            out.append(("variance", partial(variance.stages, self.rows), 1))
        if not self.tabulated:
            out.append(("tabulate", lambda: [launches.tabulate], 1))
        if n_iterations:
            out.append(("iterate", launches.iteration, n_iterations))
        if assigns:
            out.append(("last", partial(launches.assignment, LAST), 1))
        elif variance is not None:
            out.append(("at limit", partial(launches.assignment, AT_LIMIT), 1))
        if inertia:
            out.append(("end", lambda: [partial(launches.end, host, assigns)], 1))
        return out

    def _measures(self) -> bool:
        """Return whether what is launched next begins with the measurement."""
        return self.launches.fixed_point_grid is None and self.begins

    @property
    def queued_work(self) -> tuple:
        """What was queued."""
        return self.reports.last, self.launched

    def repeat(self, work: tuple) -> None:
        """Queue what another run has queued."""
        self.reports.last, (n_iterations, assigns, inertia) = work
        self.launch(1, self.reports.last if n_iterations > 0 else 0, assigns, inertia)

    # -- what is read --------------------------------------------------------------------------

    def verify(self) -> bool:
        """Return whether the run has room for the limbs that the rows need; they get the bounds."""
        d, bounds = self.rows.n_features, self.reports.part("bounds")
        self.rows.take_bounds(bounds[: 2 * d].reshape(1, 2, d))
        # The last is the number of limbs; 0 where rows, or the start, are not finite.
        return 0 < int(bounds[2 * d]) <= LIMBS

    def known(self, iteration: int) -> IterationStatus | None:
        """Return the report of an iteration that was launched, if it was read."""
        return self.reports.known(iteration)

    def status(self, iteration: int) -> IterationStatus:
        """Wait for the report of an iteration."""
        return self.reports.status(iteration)

    def wait_continuing(self, first: int, most: int, limit: float) -> ContinuingIterations:
        """Wait for an iteration; return the iterations from there on that end nothing."""
        return self.reports.wait_continuing(first, most, limit)

    @property
    def ending(self) -> LowEnding | None:
        """What the run ends with, if the device has reached it; waits for what was launched."""
        return self.reports.ending

    # -- going back ----------------------------------------------------------------------------

    def before(self, iteration: int) -> torch.Tensor:
        """Return the centres that rows were assigned to in an iteration."""
        return self.memory.history[self.memory.slot(iteration - 1)]

    def finish(self, sums: torch.Tensor, iteration: int) -> None:
        """Queue the end of an iteration: centres from these sums, whatever is empty."""
        launches = self.launches
        if launches.fixed_point_grid is None:
            # Recorded launches find what a known fixed-point grid has in memory of its own, never
            # in that of this run. Its frame is the same: rows may be stored in it.
            launches.fixed_point_grid = FixedPointGrid.of(self.rows, self.rows.grid, None)
        queue_finish(sums, launches.fixed_point_grid, self.memory, batch_size=1)
        self.memory.run_state[STOPPED.value] = 0
        self.reports.changed(iteration)
        self.tabulated = False

    def go_back(self, iteration: int) -> None:
        """Make the state after an iteration current; labels and sums must be those of it."""
        self.reports.go_back(iteration)
        memory, offsets = self.memory, self.memory.shape.offsets[0]
        memory.current.copy_(self.before(iteration + 1))
        self.tabulated = False
        memory.arena.whole[offsets["cost"][0] : offsets["variance"][0]].zero_()
        memory.run_state[ITERATION.value] = iteration
