"""The launches of a run over rows of few features: each kernel with its arguments."""

from __future__ import annotations

from copy import copy
from functools import partial
from typing import Any

import torch

from lloydia.backends.cuda.device_functions.ptx.barrier import resident
from lloydia.backends.cuda.low_dim.assign import assign_kernel
from lloydia.backends.cuda.low_dim.center_table import tabulate_kernel
from lloydia.backends.cuda.low_dim.grid import measure_kernel, staging_of
from lloydia.backends.cuda.low_dim.means import PAIRS, means_kernel
from lloydia.backends.cuda.low_dim.memory import LowMemory
from lloydia.backends.cuda.low_dim.recheck import recheck_kernel
from lloydia.backends.cuda.low_dim.scores import CENTERS_PER_STEP
from lloydia.backends.cuda.low_dim.shape import LIMBS
from lloydia.backends.cuda.low_dim.stages import ITERATING
from lloydia.backends.cuda.low_dim.table_sums import TABLE_THREADS
from lloydia.backends.cuda.low_dim.update import update_kernel
from lloydia.backends.cuda.protocols import RunRows
from lloydia.backends.cuda.rows.fixed_point_grid import FixedPointGrid
from lloydia.backends.cuda.rows.low_cost import RESIDENT, cost_programs, end_kernel
from lloydia.backends.cuda.runtime.launching import (
    EXACT,
    INTERPRETED,
    ceil_div,
    given,
    launch,
    next_power,
    processors,
)
from lloydia.backends.cuda.runtime.relocation import BufferMap, Stages
from lloydia.backends.cuda.update.mean_variance import MeanVariance
from lloydia.exact import sums as exact

__all__ = ["LowLaunches"]

# Bytes of numbers that a program measures at a time, programs on a multiprocessor, and the
# registers that leave room for as many.
MEASURED, MEASURING, REGISTERS = 8192, 6, 80
# Registers of a thread that leave room for four programs that assign rows, and two that move them,
# unless a row has more bytes: then one without a limit is faster.
ASSIGNING, UPDATING, MAX_BYTES_OF_TWO = 128, 128, 32


class LowLaunches:
    """Queues the kernels of a run.

    Parameters
    ----------
    rows : RunRows
    fixed_point_grid : FixedPointGrid or None
        None: the device finds it, in the memory of the run.
    memory : LowMemory

    Attributes
    ----------
    variance : MeanVariance or None
        By which the device ends the run.
    """

    def __init__(
        self, rows: RunRows, fixed_point_grid: FixedPointGrid | None, memory: LowMemory
    ) -> None:
        self.rows, self.fixed_point_grid, self.memory = rows, fixed_point_grid, memory
        self.variance: MeanVariance | None = None
        grid = None if fixed_point_grid is None else fixed_point_grid.grid
        self.bits = exact.bits_a_limb(rows.n_samples) if grid is None else grid.bits

    def over(self, rows: Any, memory: LowMemory) -> LowLaunches:
        """Return the launches of a run over other rows, whose grid is known."""
        launches = copy(self)
        launches.rows, launches.memory = rows, memory
        launches.fixed_point_grid = rows.fixed_point_grid
        return launches

    @property
    def numbers(self) -> torch.Tensor:
        """Those of the fixed-point grid: int64 (5 (d + 1),)."""
        grid = self.fixed_point_grid
        return self.memory.arena.numbers if grid is None else grid.numbers

    def buffer_map(
        self, names: tuple[str, ...], host: torch.Tensor | None, measures: bool
    ) -> BufferMap:
        """Return what the launches of works of these names depend on."""
        rows, memory, fixed_point_grid = self.rows, self.memory, self.fixed_point_grid
        X, start = rows.X, memory.start
        key = (
            "low", names, memory.shape, X.shape, X.dtype, X.data_ptr() % 16,
            start.data_ptr() % 16, memory.empty_stops, start is memory.current,
            rows.start_limit_bits, host is None,
        )  # fmt: skip
        parts = [X, memory.arena.whole, memory.current, start, memory.labels]
        if measures:
            parts = [staging_of(rows.device), *parts]
        if fixed_point_grid is not None:
            key += fixed_point_grid.key
            more = rows.weights, fixed_point_grid.weights
            parts = [self.numbers, *(part for part in more if part is not None), *parts]
        if self.variance is not None:
            key += "variance", self.variance.key
            parts = [*self.variance.buffers, *parts]
        return BufferMap(key, parts if host is None else [*parts, host])

    # -- the kernels ---------------------------------------------------------------------------

    def measure(self) -> None:
        """Queue the measurement of the rows, and of the start."""
        X, memory, arena = self.rows.X, self.memory, self.memory.arena
        n, d = X.shape
        size = MEASURED // (self.rows.wide.itemsize * next_power(d))
        programs = min(ceil_div(n, size), MEASURING * processors(self.rows.device))
        launch(
            measure_kernel, (1 if INTERPRETED else programs,),
            X, n, staging_of(self.rows.device), memory.zeros, memory.shape.n_zeros, arena.bounds,
            exact.bits_a_limb(n), self.numbers, LIMBS, arena.run_state,
            memory.start, memory.current, len(memory.current), self.rows.start_limit_bits,
            key=(X.dtype, d, X.data_ptr() % 16, memory.start.data_ptr() % 16),
            d=d, ROWS=size, maxnreg=REGISTERS, **EXACT,
        )  # fmt: skip

    def tabulate(self) -> None:
        """Queue the table of the current centres."""
        memory, d = self.memory, self.rows.n_features
        launch(
            tabulate_kernel, (1,),
            memory.current, len(memory.current), self.numbers, memory.arena.table,
            memory.arena.run_state, key=(memory.current.dtype, d), d=d, **EXACT,
        )  # fmt: skip

    def iteration(self) -> Stages:
        """Return what queues an iteration."""
        return [partial(self.assign, ITERATING), self.update, self.means]

    def assignment(self, states: int) -> Stages:
        """Return what queues an assignment, where the run is in one of some states."""
        return [partial(self.assign, states)]

    def assign(self, states: int) -> None:
        """Queue an assignment, where the run is in one of some states."""
        X, memory, arena = self.rows.X, self.memory, self.memory.arena
        shape, k, (n, d) = memory.shape, len(memory.current), X.shape
        lists = (
            arena.changed_rows, arena.changed_old, arena.changed_new, arena.n_changed,
            arena.ambiguous_rows, arena.n_ambiguous, shape.room, states,
        )  # fmt: skip
        launch(
            assign_kernel, (shape.programs,),
            X, n, k, memory.labels, self.numbers, arena.table, arena.run_state, arena.cost, *lists,
            key=(X.dtype, d, k <= CENTERS_PER_STEP.value),
            d=d, ONE_GROUP=k <= CENTERS_PER_STEP.value, maxnreg=ASSIGNING, **EXACT,
        )  # fmt: skip
        launch(
            recheck_kernel, (shape.programs,),
            X, k, memory.labels, memory.current, arena.run_state, arena.cost, *lists,
            key=(X.dtype, d), d=d, **EXACT,
        )  # fmt: skip

    def update(self) -> None:
        """Queue the moves of rows that changed from sum to sum."""
        X, memory, arena, grid = self.rows.X, self.memory, self.memory.arena, self.fixed_point_grid
        shape, (n, d) = memory.shape, X.shape
        weights, recover = (None, False) if grid is None else (grid.weights, grid.grid.recover)
        table = shape.copies > 0
        interpreter_table = arena.interpreter_table if table and INTERPRETED else None
        small = d * self.rows.wide.itemsize <= MAX_BYTES_OF_TWO
        registers = {"maxnreg": UPDATING} if small else {}
        launch(
            update_kernel, (shape.updaters,),
            X, n, len(memory.current), weights, self.numbers, arena.bounds, memory.labels,
            arena.all_sums, self._n_limbs(), self.bits, arena.run_state, arena.changed_rows,
            arena.changed_old, arena.changed_new, arena.n_changed, shape.room, shape.n_lists,
            shape.n_replicas, shape.copies, interpreter_table,
            key=(X.dtype, d, weights is None, recover, table), d=d, RECOVER=recover,
            TABLE=table, num_warps=TABLE_THREADS // 32, **registers, **EXACT,
        )  # fmt: skip

    def means(self) -> None:
        """Queue the end of an iteration."""
        memory, arena, d = self.memory, self.memory.arena, self.rows.n_features
        shape, k, columns = memory.shape, len(memory.current), next_power(d + 1)
        clusters = PAIRS // columns
        programs = min(ceil_div(k, clusters), processors(self.rows.device))
        launch(
            means_kernel, (programs,),
            arena.all_sums, self._n_limbs(), self.bits, arena.bounds, self.numbers, k,
            shape.n_replicas, memory.current, arena.history, shape.n_slots, arena.report,
            arena.run_state, memory.empty_stops,
            arena.no_limit if self.variance is None else self.variance.limit, arena.table,
            key=(memory.current.dtype, d), d=d, COLUMNS=columns, CLUSTERS=clusters, **EXACT,
        )  # fmt: skip

    def _n_limbs(self) -> int:
        """Return the limbs of the sums; 0 if only the device knows them yet."""
        return 0 if self.fixed_point_grid is None else self.fixed_point_grid.grid.n_limbs

    def end(self, host: torch.Tensor | None, assigns: bool) -> None:
        """Queue what a run ends with; the host reads it with all else."""
        X, weights, memory, arena = self.rows.X, self.rows.weights, self.memory, self.memory.arena
        n, d = X.shape
        message = memory.message
        # Without host memory nothing is copied: a kernel has one form for both.
        size, to = (0, message) if host is None else (len(message), host)
        launch(
            end_kernel, (cost_programs(n, self.rows.device),),
            X, n, len(memory.current), memory.labels, 1, memory.current,
            *given(weights, arena.no_limit), arena.cost,
            exact.bits_a_limb(n), arena.seen, arena.report, memory.shape.n_slots, arena.run_state,
            arena.arrivals, int(assigns), message, size, to,
            key=(X.dtype, d, X.data_ptr() % 16), d=d, **EXACT, **resident(RESIDENT),
        )  # fmt: skip
