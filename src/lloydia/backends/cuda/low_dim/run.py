"""The state of one run over rows of few features on the device."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import partial
from typing import Any
from weakref import proxy

import torch
from numpy.typing import NDArray

from lloydia.backends.cuda import options
from lloydia.backends.cuda.device_functions.barrier import resident
from lloydia.backends.cuda.device_functions.run_state import ITERATION, STOPPED
from lloydia.backends.cuda.low_dim.assign import assign_kernel
from lloydia.backends.cuda.low_dim.center_table import tabulate_kernel
from lloydia.backends.cuda.low_dim.grid import measure_kernel, staging_of
from lloydia.backends.cuda.low_dim.means import CELLS, means_kernel
from lloydia.backends.cuda.low_dim.recheck import recheck_kernel
from lloydia.backends.cuda.low_dim.reports import LowEnding, LowReports
from lloydia.backends.cuda.low_dim.scores import TOGETHER
from lloydia.backends.cuda.low_dim.shape import LIMBS, shape_of
from lloydia.backends.cuda.low_dim.stages import AT_LIMIT, ITERATING, LAST
from lloydia.backends.cuda.low_dim.table_sums import TABLE_THREADS
from lloydia.backends.cuda.low_dim.update import update_kernel
from lloydia.backends.cuda.protocols import RunRows
from lloydia.backends.cuda.rows.fixed_point_grid import FixedPointGrid
from lloydia.backends.cuda.rows.low_cost import RESIDENT, cost_programs, end_kernel
from lloydia.backends.cuda.runtime.async_copy import AsyncCopy
from lloydia.backends.cuda.runtime.launching import (
    EXACT,
    INTERPRETED,
    ceil_div,
    launch_by_key,
    next_power,
    processors,
)
from lloydia.backends.cuda.runtime.plans import Layout, planned_times
from lloydia.backends.cuda.update.all_reduce import queue_write_message
from lloydia.backends.cuda.update.means import queue_finish
from lloydia.exact import sums as exact

__all__ = ["LIMBS", "SPARE", "LowRun"]

# Bytes of numbers that a program measures together, programs a multiprocessor, and the registers
# that leave room for as many.
MEASURED, MEASURING, REGISTERS = 8192, 6, 80
# Registers of a thread that leave room for four programs that assign rows, and two that move them,
# unless a row has more bytes: then one that has all it wants is faster.
ASSIGNING, UPDATING, NARROW = 128, 128, 32
# More than the entries of a list of all rows that stay unused.
SPARE = 1 << 20


class LowRun(LowReports):
    """Labels, sums and centres: what the kernels read and write.

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
    launches_per_batch : int
        Iterations that are launched together, while those before them are on their way.
    labels : int32 (n,)
        Not known before the first assignment.
    current : (k, d)
    tabulated : bool
        Whether the next assignment finds the table of `current`.  A device that has stopped writes
        none, but changes no centre either: so what changes `current` between iterations, or ends a
        stop, makes it false.
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
        # The engine knows of its run: if both knew each other, their memory would stay a while.
        self.rows, self.fixed_point_grid, self.empty_stops = (
            proxy(rows),
            fixed_point_grid,
            int(empty_stops),
        )
        n, (k, d), device = rows.n_samples, centers.shape, rows.device
        self.k, self.n_slots = k, n_slots
        grid = None if fixed_point_grid is None else fixed_point_grid.grid
        self.bits = exact.bits_a_limb(n) if grid is None else grid.bits
        tables = rows.weights is None and options.is_on("shared_memory_tables")
        self.shape = shape_of(
            n, d, k, n_slots, LIMBS if grid is None else grid.n_limbs, self.bits,
            rows.wide.itemsize, tables, device,
        )  # fmt: skip
        self._reset()
        self.tabulated = False
        if isinstance(centers, torch.Tensor):
            self.begun, self.current = centers, torch.empty_like(centers)
        else:
            # From memory that is not pinned, the host goes on when the driver has its own copy.
            self.begun = self.current = torch.from_numpy(centers).to(device, non_blocking=True)
        self.labels = torch.empty(n, dtype=torch.int32, device=device)
        self._take()
        if fixed_point_grid is not None:  # Else the first launch writes them.
            self.zeros.zero_()

    def launch(self, first: int, last: int, ends: bool) -> None:
        """Queue some iterations, and with `ends` what a run ends with if they are its last."""
        if self.stale:
            self.sent.append((self.last, self._fetch()))
        self.last = last
        self.queue(last - first + 1, assigns=ends, inertia=True)

    def assign(self) -> None:
        """Queue an assignment to `current`, which others write before and after it."""
        self.tabulated = False
        self.queue(0, assigns=True, inertia=False)
        self.tabulated = False

    def assign_once(self) -> None:
        """Queue an assignment to `current` by a run that does nothing else: it makes no plan."""
        self._tabulate()
        self._assign(LAST)

    def accumulate(self) -> None:
        """Queue an assignment, and the moves of rows that changed from sum to sum."""
        self.assign()
        self.move()

    def over(self, rows: Any, labels: torch.Tensor) -> LowRun:
        """Return a run over other rows, at most as many, in the same memory but for labels."""
        run = copy(self)
        run.rows, run.labels, run.fixed_point_grid = rows, labels, rows.fixed_point_grid
        return run

    def move(self) -> None:
        """Queue the moves of rows that were listed from sum to sum."""
        self._do([("move", self._update, 1)], None)

    def contribute(self, message: torch.Tensor) -> None:
        """Queue an iteration up to what is told of it to others."""
        self.accumulate()
        queue_write_message(self.sums, self.run_state, message)

    def end(self) -> LowEnding:
        """Queue an assignment and the inertia."""
        self.queue(0, assigns=True, inertia=True)
        return LowEnding(self)

    def queue(self, n_iterations: int, assigns: bool, inertia: bool) -> None:
        """Queue iterations, then an assignment, then the inertia if the run is at its end."""
        self.launched, device = (n_iterations, assigns, inertia), self.rows.device
        coming = AsyncCopy.written(self.shape.edges[-1], device) if inertia else None
        host = None if coming is None else coming.memory
        try:
            self._do(self._works(host), host)
        finally:
            if coming is not None:
                coming.note()
        if coming is not None:
            self.sent.append((self.last, coming))
        self.begins, self.stale, self.tabulated = False, coming is None, True
        if self.variance is not None:
            self.variance.done()

    @property
    def queued_work(self) -> tuple:
        """What was queued."""
        return self.last, self.launched

    def restart(self, centers: NDArray | torch.Tensor, tolerance: float) -> bool:
        """Return False: over few features another run is made in less time."""
        return False

    def repeat(self, work: tuple) -> None:
        """Queue what another run has queued."""
        self.last, (n_iterations, assigns, inertia) = work
        self.queue(self.last if n_iterations > 0 else 0, assigns, inertia)

    # -- what is queued ------------------------------------------------------------------------

    def _works(self, host: torch.Tensor | None) -> list[tuple[str, Callable[[], None], int]]:
        """Return the names of the works that follow, what queues them, and how often each is."""
        n_iterations, assigns, inertia = self.launched
        out: list[tuple[str, Callable[[], None], int]] = []
        if self._measures():
            out.append(("measure", self._measure, 1))
        if self.variance is not None and not self.variance.queued:
            out.append(("variance", partial(self.variance.queue, self.rows), 1))
        if not self.tabulated:
            out.append(("tabulate", self._tabulate, 1))
        if n_iterations:
            out.append(("iterate", self._iterate, n_iterations))
        if assigns:
            out.append(("last", partial(self._assign, LAST), 1))
        elif self.variance is not None:
            out.append(("at limit", partial(self._assign, AT_LIMIT), 1))
        if inertia:
            out.append(("end", partial(self._end, host, assigns), 1))
        return out

    def _do(
        self, works: list[tuple[str, Callable[[], None], int]], host: torch.Tensor | None
    ) -> None:
        """Queue works; what is read back goes to the host's memory, if there is any."""
        names, each, times = zip(*works)
        planned_times(each, times, self.rows.device, self._layout(names, host))

    def _layout(self, names: tuple[str, ...], host: torch.Tensor | None) -> Layout:
        """Return what the launches of works of these names depend on."""
        X, weights, fixed_point_grid = self.rows.X, self.rows.weights, self.fixed_point_grid
        key = (
            "low", names, self.shape, X.shape, X.dtype, X.data_ptr() % 16,
            self.begun.data_ptr() % 16, self.empty_stops, self.begun is self.current,
            self.rows.start_limit_bits, host is None,
        )  # fmt: skip
        parts = [X, self.arena, self.current, self.begun, self.labels]
        if self._measures():
            parts = [staging_of(self.rows.device), *parts]
        if fixed_point_grid is not None:
            key += fixed_point_grid.key
            more = weights, fixed_point_grid.weights
            parts = [self.numbers, *(part for part in more if part is not None), *parts]
        if self.variance is not None:
            key += "variance", self.variance.key
            parts = [*self.variance.buffers, *parts]
        return Layout(key, parts if host is None else [*parts, host])

    def _measures(self) -> bool:
        """Return whether what is launched next begins with the measurement."""
        return self.fixed_point_grid is None and self.begins

    def _measure(self) -> None:
        """Queue the measurement of the rows, and of the start."""
        X = self.rows.X
        n, d = X.shape
        size = MEASURED // (self.rows.wide.itemsize * next_power(d))
        programs = min(ceil_div(n, size), MEASURING * processors(self.rows.device))
        launch_by_key(
            measure_kernel, (X.dtype, d, X.data_ptr() % 16, self.begun.data_ptr() % 16),
            (1 if INTERPRETED else programs, 1, 1),
            X, n, staging_of(self.rows.device), self.zeros, len(self.zeros), self.bounds,
            exact.bits_a_limb(n), self.numbers, LIMBS, self.run_state,
            self.begun, self.current, self.k, self.rows.start_limit_bits, d=d, ROWS=size,
            maxnreg=REGISTERS, **EXACT,
        )  # fmt: skip

    def _tabulate(self) -> None:
        """Queue the table of the current centres."""
        d = self.rows.n_features
        launch_by_key(
            tabulate_kernel, (self.current.dtype, d), (1, 1, 1),
            self.current, self.k, self.numbers, self.table, self.run_state, d=d, **EXACT,
        )  # fmt: skip

    def _iterate(self) -> None:
        """Queue an iteration."""
        self._assign(ITERATING)
        self._update()
        self._means()

    def _assign(self, states: int) -> None:
        """Queue an assignment, where the run is in one of some states."""
        X, shape = self.rows.X, self.shape
        n, d = X.shape
        lists = (
            self.changed_rows, self.changed_old, self.changed_new, self.n_changed,
            self.ambiguous_rows, self.n_ambiguous, shape.room, states,
        )  # fmt: skip
        launch_by_key(
            assign_kernel, (X.dtype, d, self.k <= TOGETHER.value), (shape.programs, 1, 1),
            X, n, self.k, self.labels, self.numbers, self.table, self.run_state, self.cost, *lists,
            d=d, ONE_GROUP=self.k <= TOGETHER.value, maxnreg=ASSIGNING, **EXACT,
        )  # fmt: skip
        launch_by_key(
            recheck_kernel, (X.dtype, d), (shape.programs, 1, 1),
            X, self.k, self.labels, self.current, self.run_state, self.cost, *lists,
            d=d, **EXACT,
        )  # fmt: skip

    def _update(self) -> None:
        """Queue the moves of rows that changed from sum to sum."""
        X, shape, grid = self.rows.X, self.shape, self.fixed_point_grid
        n, d = X.shape
        weights, recover = (None, False) if grid is None else (grid.weights, grid.grid.recover)
        table = shape.copies > 0
        most = {"maxnreg": UPDATING} if d * self.rows.wide.itemsize <= NARROW else {}
        launch_by_key(
            update_kernel, (X.dtype, d, weights is None, recover, table), (shape.updaters, 1, 1),
            X, n, self.k, weights, self.numbers, self.bounds, self.labels, self.all_sums,
            self._n_limbs(), self.bits, self.run_state, self.changed_rows, self.changed_old,
            self.changed_new, self.n_changed, shape.room, shape.n_lists, shape.n_replicas,
            shape.copies, self.own_memory, d=d, RECOVER=recover, TABLE=table,
            num_warps=TABLE_THREADS // 32, **most, **EXACT,
        )  # fmt: skip

    def _means(self) -> None:
        """Queue the end of an iteration."""
        shape, d = self.shape, self.rows.n_features
        columns = next_power(d + 1)
        clusters = CELLS // columns
        programs = min(ceil_div(self.k, clusters), processors(self.rows.device))
        launch_by_key(
            means_kernel, (self.current.dtype, d), (programs, 1, 1),
            self.all_sums, self._n_limbs(), self.bits, self.bounds, self.numbers, self.k,
            shape.n_replicas, self.current, self.history, self.n_slots, self.report,
            self.run_state, self.empty_stops,
            self.no_limit if self.variance is None else self.variance.limit, self.table,
            d=d, COLUMNS=columns, CLUSTERS=clusters, **EXACT,
        )  # fmt: skip

    def _n_limbs(self) -> int:
        """Return the limbs of the sums, 0 where the device knows before the host."""
        return 0 if self.fixed_point_grid is None else self.fixed_point_grid.grid.n_limbs

    def _end(self, host: torch.Tensor | None, assigns: bool) -> None:
        """Queue what a run ends with; the host reads it with all else."""
        X, weights = self.rows.X, self.rows.weights
        n, d = X.shape
        launch_by_key(
            end_kernel, (X.dtype, d, X.data_ptr() % 16, weights is None, host is None),
            (cost_programs(n, self.rows.device), 1, 1),
            X, n, self.k, self.labels, self.current, weights, self.cost,
            exact.bits_a_limb(n), self.seen, self.report, self.n_slots, self.run_state,
            self.arrivals, int(assigns), self.report_words, self.shape.edges[-1], host, d=d,
            **EXACT, **resident(RESIDENT),
        )  # fmt: skip

    def before(self, iteration: int) -> torch.Tensor:
        """Return the centres that rows were assigned to in an iteration."""
        return self.history[self.slot(iteration - 1)]

    # -- on the way --------------------------------------------------------------------------

    @property
    def sums(self) -> torch.Tensor:
        """The sums, once the grid is known: int64 (n_replicas, n_limbs, k, d + 1)."""
        k, d = self.current.shape
        n_limbs = self.rows.grid.n_limbs
        n_replicas = self.shape.n_replicas
        used = n_replicas * n_limbs * k * (d + 1)
        return self.all_sums[:used].view(n_replicas, n_limbs, k, d + 1)

    def finish(self, sums: torch.Tensor, iteration: int) -> None:
        """Queue the end of an iteration: centres from these sums, whatever is empty."""
        if self.fixed_point_grid is None:
            # Plans find what a known fixed-point grid has in memory of its own, and never in this
            # run's. Its frame is the same: rows may be stored in it.
            self.fixed_point_grid = FixedPointGrid.of(self.rows, self.rows.grid, None)
            self.numbers = self.fixed_point_grid.numbers
        queue_finish(sums, self.fixed_point_grid, self, batch_size=1)
        self.run_state[STOPPED.value] = 0
        self.last, self.stale, self.stopped = iteration, True, False
        self.tabulated = False

    def go_back(self, iteration: int) -> None:
        """Make the state after an iteration current; labels and sums must be those of it.

        What the host has read of reports stays, and of the end is forgotten.
        """
        self.read()
        self.current.copy_(self.before(iteration + 1))
        self.tabulated = False
        self.report_words[self.shape.edges[2] : self.shape.edges[6]].zero_()
        self.run_state[ITERATION.value] = iteration
        self.last = self.known_to = iteration
        self.part(2)[:] = 0
        self.stopped = False
