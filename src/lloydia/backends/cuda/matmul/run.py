"""One run with more than 8 features: its start, iterations and end, queued on the device."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import cached_property, partial
from typing import Any

import torch
from numpy.typing import NDArray

from lloydia.backends.cuda.device_functions.run_state import ITERATION, STOPPED
from lloydia.backends.cuda.dispatch import Kernels, Stage, Work, chosen
from lloydia.backends.cuda.matmul.buffer_maps import (
    iteration_buffers,
    scan_buffers,
    start_buffers,
    update_buffers,
)
from lloydia.backends.cuda.matmul.memory import TensorMemory, TensorRows
from lloydia.backends.cuda.matmul.pruning.run import ROWS_PER_CHANGE, Pruning
from lloydia.backends.cuda.matmul.starting import Start
from lloydia.backends.cuda.rows.ending import Ending
from lloydia.backends.cuda.runtime.launch_configs import LaunchConfigs, LaunchList
from lloydia.backends.cuda.runtime.recording import Recording
from lloydia.backends.cuda.runtime.relocation import (
    BufferMap,
    StagedWork,
    Stages,
    replay,
    replay_steps,
)
from lloydia.backends.cuda.runtime.upload import put
from lloydia.backends.cuda.update.all_reduce import queue_write_message
from lloydia.backends.cuda.update.means import NOT_PACKED, queue_finish
from lloydia.backends.cuda.update.reports import ContinuingIterations, IterationStatus, Reports
from lloydia.backends.engine import NEVER

__all__ = ["TensorRun"]

# A first iteration queues a start, a packing, an assignment and an update.  Which of these steps
# make up an iteration that packs its centres (FIRST), and one that finds them packed (PACKED).
FIRST, PACKED = (1, 4), (2, 4)
STEPS = (1, 3), (2, 3), FIRST, PACKED


class TensorRun:
    """A run: it queues the kernels of its start, of iterations and of its end, which are recorded.

    Parameters
    ----------
    rows : TensorRows
        Their grid is needed when rows are first added up: the device assigns rows while the host
        waits for their magnitudes.
    shape : tuple of two int
        Of the centres: k, d.
    lag : int
        How many iterations the host may queue beyond the one it waits for.
    empty_stops : bool
        Whether the run stops at an iteration with empty clusters.

    Attributes
    ----------
    memory : TensorMemory
    packed : bool
        Whether the next scan finds `current` packed.  A stopped device packs nothing, but changes
        no centres either: so whatever changes `current` between iterations, or restarts a stopped
        device, sets this to false.
    queued_with_start : int
        How many iterations, from the first on, were queued with the start, before :meth:`launch` is
        called for them.
    pruning : Pruning or None
        The bounds, while they prune rows.
    may_prune : bool
        Whether bounds are tried once few rows change.
    changed : int
        How many rows changed in the last iteration whose report was read.
    last : int
        The last iteration that was launched.
    work : Work
        By which its kernels are chosen.
    """

    def __init__(
        self, rows: TensorRows, shape: tuple[int, int], lag: int, empty_stops: bool
    ) -> None:
        self.rows = rows
        self.memory = TensorMemory(rows, (lag + 4, *shape), empty_stops)
        self.work = Work.over(rows, shape[0])
        self.scanning, self.updating = Recording(), Recording()
        # An iteration that packs its centres; an assignment and an iteration that find them packed.
        self.starting, self.assigning, self.iterating = Recording(), Recording(), Recording()
        # Iterations that are queued at once, and whose reports are copied at once.
        self.launches_per_batch = max(1, lag // 2)
        self.ending: Ending | None = None
        self.packed, self.queued_with_start, self.last, self.tolerance = False, 0, 0, NEVER
        self.pruning: Pruning | None = None
        self.may_prune = chosen(Stage.PRUNING, self.work).kernels is Kernels.BOUNDS
        self.changed = rows.n_samples

    @cached_property
    def reports(self) -> Reports:
        """The reports, which are copied to the host."""
        return Reports(self.memory.report, self.launches_per_batch)

    def begin(self, centers: NDArray | torch.Tensor, tolerance: float = NEVER) -> None:
        """Queue what the first iteration finds; that one, too, if it waits for nothing.

        Parameters
        ----------
        centers : ndarray of shape (k, d), or tensor of the rows' ``wide`` type on the device
            A tensor may hold what is not finite, or too large: then the rows' bounds are not
            finite.
        tolerance : float
            As of an engine.
        """
        self.tolerance, rows = tolerance, self.rows
        if isinstance(centers, torch.Tensor):
            start = Start(centers, rows.measured)
            assert start.bounds is not None
            if rows.guess():
                self._take(replay_steps(*self._first_works(start), STEPS))
                self.queued_with_start = 1
                return
        else:
            start = Start(self.memory.history[0], None)
            put(centers, start.centers)
        work = partial(self.memory.beginning, start)
        replay(work, rows.device, start_buffers(self.memory, start))

    def launch(self, first: int, last: int, ends: bool) -> None:
        """Queue the iterations `first` to `last`, and with `ends` the end of the run."""
        device, left = self.rows.device, last - first + 1
        self.last = last
        if self.queued_with_start:
            left -= self.queued_with_start
            self.queued_with_start = 0
        elif self.starting.times == 0:
            left -= 1
            if self.rows.knows_grid and self.scanning.times == 0:
                self._take(replay_steps(*self._first_works(None), STEPS))
            else:
                # The device is busy while the host waits for the grid.
                self.scanning.do(self._scan, device, partial(scan_buffers, self.memory))
                self.memory.limit = self.rows.limit(self.tolerance, self.memory.shape[1])
                self.updating.do(self.update, device, partial(update_buffers, self.memory))
                self.starting = self.iterating = self.scanning.followed_by(self.updating)
        elif self.memory.packs_next and not self.packed:
            self.starting.do(self._unpacked_iteration, device)
            left -= 1
        self.packed = self.memory.packs_next
        if self.may_prune and self.changed * ROWS_PER_CHANGE <= self.rows.n_samples:
            self.pruning, self.may_prune = Pruning.of(self.memory), False
        if self.pruning is None:
            self.iterating.do(self._iteration, device, times=left)
        else:
            self.pruning.iterate(self.memory, self.update, left)
        # The host reads the bounds while the device continues.
        self._ask()
        self.reports.ask(first, last)
        if ends:
            # Queued before the copy, which would delay it.
            self.end()
            self.reports.send()

    def _forget_bounds(self) -> None:
        """Mark the bounds as invalid for the labels and centres of the next iteration."""
        if self.pruning is not None:
            self.pruning.bounds_valid = False

    def _first_works(
        self, start: Start | None
    ) -> tuple[Sequence[StagedWork], torch.device, BufferMap]:
        """Return the works of the first iteration, for one record, and what they depend on.

        The start is the first of them, unless it was queued.
        """
        rows = self.rows
        memory = self.memory
        memory.limit = rows.limit(self.tolerance, memory.shape[1])
        # All with the scratch of one record: the end of an iteration may write what a scan reads.
        assert rows.fp16_rows is not None
        memory.packs_next = chosen(Stage.PACKING, self.work).kernels is Kernels.WITH_UPDATE
        works = partial(memory.beginning, start), self._packing, self._assignment, self.update
        buffer_map = iteration_buffers(memory)
        if start is not None:
            buffer_map = buffer_map.after(start_buffers(memory, start))
        return works, rows.device, buffer_map

    def _take(self, recorded: Sequence[LaunchConfigs | LaunchList]) -> None:
        """Take the recorded launches of the first iteration, by :data:`STEPS`."""
        scan, assignment, first, packs_next = recorded
        self.scanning.set(scan)
        self.assigning.set(assignment)
        self.starting.set(first)
        self.iterating.set(packs_next if self.memory.packs_next else first)

    def _ask(self) -> None:
        """Queue the copy of the rows' bounds, if those are to be looked at."""
        if self.rows.unchecked:
            self.rows.ask()

    @property
    def queued_work(self) -> tuple:
        """What was queued."""
        return self.last, self.ending is not None

    def verify(self) -> bool:
        """Return whether the rows need as many limbs as was guessed; waits for their bounds."""
        return self.rows.confirm_guess()

    def repeat(self, work: tuple) -> None:
        """Queue what another run has queued."""
        last, ends = work
        if last:
            self.launch(1, last, ends)

    def end(self) -> Ending:
        """Queue an assignment and the inertia."""
        self._forget_bounds()
        if self.packed:
            self.assigning.do(self._assignment, self.rows.device)
        else:
            self.assign()
        self.ending = Ending(self.rows, self.memory.labels, self.memory.current)
        return self.ending

    def assign(self) -> None:
        """Queue an assignment."""
        self._forget_bounds()
        self.scanning.do(self._scan, self.rows.device, partial(scan_buffers, self.memory))

    def _scan(self) -> Stages:
        """Return what queues an assignment; rows that change are listed."""
        return [*self._packing(), *self._assignment()]

    def _packing(self) -> Stages:
        """Return what queues the packing of the centres."""
        memory, scan = self.memory, self.memory.scan
        return [partial(scan.centers.pack, scan.fp16_rows, memory.current, memory.run_state)]

    def _assignment(self) -> Stages:
        """Return what queues an assignment to centres that are packed."""
        memory = self.memory
        return memory.scan.stages(memory.current, memory.changes)

    def accumulate(self) -> None:
        """Queue an assignment, and the moves of rows that changed from sum to sum."""
        self.assign()
        for queue in self._moves():
            queue()

    def over(self, rows: Any, labels: torch.Tensor) -> TensorRun:
        """Return a run over other rows, at most as many, in the same memory but for labels."""
        run = copy(self)
        run.rows, run.memory = rows, self.memory.over(rows, labels)
        return run

    def contribute(self, message: torch.Tensor) -> None:
        """Queue an iteration up to the message that other devices add up: always the same one."""
        self.assign()
        self.updating.do(partial(self._message, message), self.rows.device)

    def _message(self, message: torch.Tensor) -> Stages:
        """Return what queues the moves and the message."""
        memory = self.memory
        write = partial(queue_write_message, memory.sums, memory.run_state, message)
        return [*self._moves(), write]

    def _moves(self) -> Stages:
        """Return what queues the moves of rows that were listed from sum to sum."""
        memory = self.memory
        return memory.cluster_sums.stages(self.rows, memory.changes, memory.sums)

    def update(self) -> Stages:
        """Return what queues what follows an assignment: sums and centres."""
        rows, memory, packing = self.rows, self.memory, NOT_PACKED
        if memory.packs_next:
            packing = memory.scan.centers.arguments(rows.fp16_rows)
        grid, limit = rows.fixed_point_grid, memory.limit
        return [*self._moves(), partial(queue_finish, memory.sums, grid, memory, 1, packing, limit)]

    def _unpacked_iteration(self) -> Stages:
        """Return what queues an iteration from centres that are not packed."""
        return [*self._scan(), *self.update()]

    def _iteration(self) -> Stages:
        """Return what queues an iteration as those before it."""
        packing = [] if self.memory.packs_next else self._packing()
        return [*packing, *self._assignment(), *self.update()]

    def before(self, iteration: int) -> torch.Tensor:
        """Return the centres that rows were assigned to in an iteration."""
        return self.memory.history[self.memory.slot(iteration - 1)]

    def finish(self, sums: torch.Tensor, iteration: int) -> None:
        """Queue the end of an iteration: centres from these sums, whatever is empty."""
        self.packed = False
        self._forget_bounds()
        queue_finish(sums, self.rows.fixed_point_grid, self.memory, batch_size=1)
        self.memory.run_state[STOPPED.value] = 0
        self.reports.ask(iteration, iteration)

    def known(self, iteration: int) -> IterationStatus | None:
        """Return the report of an iteration that was launched, if it was read."""
        return self.reports.statuses.get(iteration % self.memory.shape[0])

    def status(self, iteration: int) -> IterationStatus:
        """Wait for the report of an iteration."""
        status = self.reports.status(iteration)
        self._look_at(status.changed, 1, status.pruned)
        return status

    def wait_continuing(self, first: int, most: int, limit: float) -> ContinuingIterations:
        """Wait for an iteration; return the iterations from there on that end nothing."""
        continuing = self.reports.wait_continuing(first, most, self.memory.empty_stops, limit)
        if continuing.count:
            self._look_at(continuing.changed, continuing.count, continuing.pruned)
        return continuing

    def _look_at(self, changed: int, count: int, pruned: int) -> None:
        """Note how many rows changed last; give up bounds that pruned too few rows."""
        self.changed = changed
        if self.pruning is not None and not self.pruning.pays(count, pruned):
            self.pruning = None

    def go_back(self, iteration: int) -> None:
        """Make the state after an iteration current; labels and sums must be those of it."""
        self.packed = False
        self._forget_bounds()
        memory = self.memory
        memory.current.copy_(self.before(iteration + 1))
        self.ending = None
        self.reports.forget()
        memory.report.zero_()
        memory.run_state.zero_()
        memory.run_state[ITERATION.value] = iteration
