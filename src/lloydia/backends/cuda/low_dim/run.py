"""The state of one run over rows of few features on the device."""

from __future__ import annotations

from copy import copy
from functools import partial
from typing import Any
from weakref import proxy

import torch
from numpy.typing import NDArray

from lloydia.backends.cuda import options
from lloydia.backends.cuda.device_functions.barrier import THREADS, resident
from lloydia.backends.cuda.device_functions.run_state import ITERATION, STOPPED
from lloydia.backends.cuda.low_dim.cells import sides_of
from lloydia.backends.cuda.low_dim.grid import desk_of, measure_kernel
from lloydia.backends.cuda.low_dim.kernel import low_kernel
from lloydia.backends.cuda.low_dim.shape import LIMBS, shape_of
from lloydia.backends.cuda.low_dim.told import LowEnding, LowTold
from lloydia.backends.cuda.low_dim.whole import whole_kernel
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
from lloydia.backends.cuda.runtime.plans import Layout, planned
from lloydia.backends.cuda.update.all_reduce import queue_write_message
from lloydia.backends.cuda.update.means import queue_finish
from lloydia.exact import sums as exact

__all__ = ["LIMBS", "SPARE", "LowRun"]

# Centres that are tabulated together.
CENTERS = 128
# Bytes of numbers that a program measures together, programs a multiprocessor, and the registers
# that leave room for as many.
MEASURED, MEASURING, REGISTERS = 8192, 6, 80
# More than the entries of lists that stay unused.
SPARE = 1 << 19


class LowRun(LowTold):
    """Labels, sums and centres: what the kernels read and write.

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
    settles : bool
        Whether iterations end at one with empty clusters.
    stay : bool, default=True
        Whether it is always of these rows; else there are no tables of :mod:`sums`.

    Attributes
    ----------
    launches_per_batch : int
        Iterations that are launched together, while those before them are on their way.
    labels : int32 (n,)
        Not known before the first assignment.
    current : (k, d)
    """

    launches_per_batch = 1

    def __init__(
        self,
        rows: RunRows,
        fixed_point_grid: FixedPointGrid | None,
        centers: NDArray | torch.Tensor,
        n_slots: int,
        settles: bool,
        stay: bool = True,
    ) -> None:
        # The engine knows of its run: if both knew each other, their memory would stay a while.
        self.rows, self.fixed_point_grid, self.settles = proxy(rows), fixed_point_grid, int(settles)
        n, (k, d), device = rows.n_samples, centers.shape, rows.device
        self.k, self.n_slots = k, n_slots
        self.bits = exact.bits_a_limb(n) if fixed_point_grid is None else fixed_point_grid.grid.bits
        self.shape = shape_of(
            n, d, k, n_slots, LIMBS if fixed_point_grid is None else fixed_point_grid.grid.n_limbs,
            self.bits, rows.weights is not None, sides_of(n, d, k), rows.wide.itemsize,
            stay and options.is_on("shared_memory_tables"), device,
        )  # fmt: skip
        self._nothing_told()
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
        """Queue an assignment."""
        self.queue(0, assigns=True, inertia=False)

    def accumulate(self) -> None:
        """Queue an assignment, and the moves of rows that changed from sum to sum."""
        self.queue(-1, assigns=False, inertia=False)

    def over(self, rows: Any, labels: torch.Tensor) -> LowRun:
        """Return a run over other rows, at most as many, in the same memory but for labels."""
        run = copy(self)
        run.rows, run.labels, run.fixed_point_grid = rows, labels, rows.fixed_point_grid
        return run

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
            planned(partial(self._queue, host), device, self._layout(host))
        finally:
            if coming is not None:
                coming.note()
        if coming is not None:
            self.sent.append((self.last, coming))
        self.begins, self.stale = False, coming is None
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
        self.queue(self.last if n_iterations > 0 else n_iterations, assigns, inertia)

    def _layout(self, host: torch.Tensor | None) -> Layout:
        """Return what the next launches depend on."""
        X, weights, fixed_point_grid = self.rows.X, self.rows.weights, self.fixed_point_grid
        key = (
            "low", self.shape, X.shape, X.dtype, X.data_ptr() % 16, self.begun.data_ptr() % 16,
            self.launched, self.begins, self.settles, self.begun is self.current,
            self.rows.start_limit_bits, host is None,
        )  # fmt: skip
        parts = [X, self.arena, self.current, self.begun, self.labels]
        if self._measures():
            parts = [desk_of(self.rows.device), *parts]
        if fixed_point_grid is not None:
            key += (
                fixed_point_grid.grid.bits,
                fixed_point_grid.grid.n_limbs,
                fixed_point_grid.grid.recover,
                weights is None,
            )
            more = weights, fixed_point_grid.weights
            parts = [self.numbers, *(part for part in more if part is not None), *parts]
        if self.variance is not None:
            key += "variance", self.variance.key
            parts = [*self.variance.buffers, *parts]
        return Layout(key, parts if host is None else [*parts, host])

    def _queue(self, host: torch.Tensor | None) -> None:
        """Queue what is to be launched; what is told goes to the host's memory, if there is any."""
        n_iterations, assigns, inertia = self.launched
        rows = self.rows
        n, d = rows.X.shape
        kind = rows.X.dtype, rows.X.data_ptr() % 16, d
        if self.shape.alone and inertia and self._measures() and self.variance is None:
            self._run_whole(kind, n_iterations, assigns, host)
            return
        if self._measures():
            self._measure((*kind, self.begun.data_ptr() % 16))
        if self.variance is not None and not self.variance.queued:
            self.variance.queue(self.rows)
        self._iterate(kind, n_iterations, assigns)
        if inertia:
            launch_by_key(
                end_kernel, (*kind, rows.weights is None, host is None),
                (cost_programs(n, rows.device), 1, 1),
                rows.X, n, self.k, self.labels, self.current, rows.weights, self.cost,
                exact.bits_a_limb(n), self.seen, self.report, self.n_slots, self.run_state,
                self.arrivals, int(assigns), self.told, self.shape.edges[-1], host, d=d,
                **EXACT, **resident(RESIDENT),
            )  # fmt: skip

    def _run_whole(
        self, kind: tuple, n_iterations: int, assigns: bool, host: torch.Tensor | None
    ) -> None:
        """Queue measurement, iterations and ending as one: of few rows, and without a limit."""
        rows, shape = self.rows, self.shape
        n, d = rows.X.shape
        launch_by_key(
            whole_kernel,
            (*kind, self.begun.data_ptr() % 16, shape.block, shape.n_replicas, shape.tile,
             shape.group, shape.kept, host is None),
            (1, 1, 1),
            rows.X, n, self.k, desk_of(rows.device), self.zeros, len(self.zeros), self.bounds,
            self.numbers, LIMBS, self.bits, self.begun,
            rows.start_limit_bits,
            self.labels, self.all_sums, self.current, self.history, self.n_slots, self.report,
            self.run_state, self.settles, self.table, self.arrivals, n_iterations, int(assigns),
            self.cost, self.seen, self.told, shape.edges[-1], host,
            d=d, EACH=shape.block // THREADS, COLUMNS=shape.columns, CENTERS=CENTERS,
            GROUP=shape.group, KEPT=shape.kept, REPLICAS=shape.n_replicas, BLOCK_K=shape.tile,
            **EXACT,
        )  # fmt: skip

    def _measures(self) -> bool:
        """Return whether what is launched next begins with the measurement."""
        return self.fixed_point_grid is None and self.begins

    def _measure(self, kind: tuple) -> None:
        """Queue the measurement of the rows, and of the start."""
        n, d = self.rows.X.shape
        size = MEASURED // (self.rows.wide.itemsize * next_power(d))
        programs = min(ceil_div(n, size), MEASURING * processors(self.rows.device))
        launch_by_key(
            measure_kernel, kind, (1 if INTERPRETED else programs, 1, 1),
            self.rows.X, n, desk_of(self.rows.device), self.zeros, len(self.zeros), self.bounds,
            exact.bits_a_limb(n), self.numbers, LIMBS, self.run_state,
            self.begun, self.current, self.k, self.rows.start_limit_bits, d=d, ROWS=size,
            maxnreg=REGISTERS, **EXACT,
        )  # fmt: skip

    def _iterate(self, kind: tuple, n_iterations: int, assigns: bool) -> None:
        """Queue iterations, and perhaps an assignment."""
        rows, fixed_point_grid = self.rows, self.fixed_point_grid
        n, d = rows.X.shape
        known = None if fixed_point_grid is None else fixed_point_grid.grid
        recover, weights = (
            known is not None and known.recover,
            fixed_point_grid and fixed_point_grid.weights,
        )
        shape = self.shape
        held, entries, copies = shape.own
        launch_by_key(
            low_kernel,
            (*kind, weights is None, recover, shape.block, shape.alone, shape.n_replicas,
             shape.tile, shape.each, shape.group, shape.kept, *shape.own, shape.summed,
             self.cells is None or self.cells.dtype, self.variance is None),
            (shape.programs, 1, 1),
            rows.X, n, self.k, weights, self.numbers, self.bounds, self.labels,
            self.all_sums, 0 if known is None else known.n_limbs, self.bits,
            self.current, self.history, self.n_slots, self.report, self.run_state, self.settles,
            None if self.variance is None else self.variance.limit,
            *self.lists, shape.room, self.table, self.cells, shape.sides, self.arrivals,
            n_iterations, int(assigns), self.own_memory, self.stored,
            d=d, WEIGHTED=weights is not None, RECOVER=recover,
            EACH=shape.block // THREADS, COLUMNS=shape.columns, CENTERS=CENTERS,
            GROUP=shape.group, KEPT=shape.kept, REPLICAS=shape.n_replicas, BLOCK_K=shape.tile,
            HELD=held, ENTRIES=entries, COPIES=copies, SUMMED=shape.summed, ALONE=shape.alone,
            **EXACT, **resident(shape.each),
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

    def go_back(self, iteration: int) -> None:
        """Make the state after an iteration current; labels and sums must be those of it.

        What the host has read of reports stays, and of the end is forgotten.
        """
        self.read()
        self.current.copy_(self.before(iteration + 1))
        self.told[self.shape.edges[2] : self.shape.edges[6]].zero_()
        self.run_state[ITERATION.value] = iteration
        self.last = self.known_to = iteration
        self.part(2)[:] = 0
        self.stopped = False
