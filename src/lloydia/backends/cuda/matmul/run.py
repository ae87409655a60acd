"""One run with more than 8 features: its start, iterations and end, queued on the device."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from weakref import proxy

import torch
from numpy.typing import NDArray

from lloydia.backends.cuda.device_functions.run_state import ITERATION, STOPPED
from lloydia.backends.cuda.matmul.fp16_centers import packs_in_update
from lloydia.backends.cuda.matmul.memory import TensorMemory, TensorRows
from lloydia.backends.cuda.matmul.pruning.run import ROWS_PER_CHANGE, Pruning, may_pay
from lloydia.backends.cuda.matmul.starting import Start, queue_start
from lloydia.backends.cuda.rows.ending import Ending
from lloydia.backends.cuda.runtime.plans import Layout, Owner, Scratch, planned, planned_steps
from lloydia.backends.cuda.runtime.recording import Recording
from lloydia.backends.cuda.runtime.upload import put
from lloydia.backends.cuda.update.all_reduce import queue_write_message
from lloydia.backends.cuda.update.means import NOT_PACKED, queue_finish
from lloydia.backends.cuda.update.reports import ContinuingIterations, IterationStatus, Reports

__all__ = ["TensorRun"]

# A first iteration queues a start, a packing, an assignment and an update.  Which of these steps
# make up an iteration that packs its centres (FIRST), and one that finds them packed (PACKED).
FIRST, PACKED = (1, 4), (2, 4)
STEPS = (1, 3), (2, 3), FIRST, PACKED


class TensorRun(TensorMemory):
    """A run: it queues the kernels of its start, of iterations and of its end, which are recorded.

    Parameters
    ----------
    rows : TensorRows
        Their grid is needed when rows are first added up: the device assigns rows while the host
        waits for their magnitudes.
    centers : ndarray of shape (k, d), or tensor of the rows' ``wide`` type on the device
        A tensor may hold numbers that are not finite or too large: then the rows' bounds become
        infinite.
    lag : int
        How many iterations the host may queue beyond the one it waits for.
    settles : bool
        Whether the run stops at an iteration with empty clusters.

    Attributes
    ----------
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
    """

    packed: bool
    queued_with_start: int
    pruning: Pruning | None
    may_prune: bool
    changed: int

    def __init__(
        self,
        rows: TensorRows,
        centers: NDArray | torch.Tensor,
        lag: int,
        settles: bool,
    ) -> None:
        # A weak reference: the engine holds its run, and a cycle would keep memory for a while.
        self.rows, self.settles = proxy(rows), int(settles)
        self.shape = lag + 4, *centers.shape
        self.n_limbs = rows.expected or 0
        self._take()
        self.scanning, self.updating = Recording(), Recording()
        # An iteration that packs its centres; an assignment and an iteration that find them packed.
        self.starting, self.assigning, self.iterating = Recording(), Recording(), Recording()
        self.packs_next = False
        # Iterations that are queued at once, and whose reports are copied at once.
        self.launches_per_batch = max(1, lag // 2)
        self.ending: Ending | None = None
        self._score_all()
        self._begin(centers)

    @cached_property
    def reports(self) -> Reports:
        """The reports, which are copied to the host."""
        return Reports(self.report, self.launches_per_batch)

    def _begin(self, centers: NDArray | torch.Tensor) -> None:
        """Queue the start, and the first iteration too if nothing must be waited for."""
        self.packed, self.queued_with_start = False, 0
        rows = self.rows
        if isinstance(centers, torch.Tensor):
            start = Start(centers, rows.measured)
            assert start.bounds is not None
            if rows.guess():
                self._queue_first(start)
                self.queued_with_start = 1
                return
        else:
            start = Start(self.history[0], None)
            put(centers, start.centers)
        planned(partial(self._queue_start, start), rows.device, self._starting(start))

    def _queue_start(self, start: Start | None) -> None:
        """Queue a start, if there is one."""
        if start is not None:
            zeros = self.arena.whole[: self.arena.begin("history")].view(torch.int64)
            queue_start(
                start.centers, self.current, self.history, start.bounds, self.labels, zeros,
                self.rows.start_limit_bits,
            )  # fmt: skip

    def _starting(self, start: Start) -> Layout:
        """Return what the launch of a start depends on."""
        rows, (centers, bounds) = self.rows, start
        about = (
            rows.wide,
            centers.dtype,
            centers.data_ptr() % 16,
            bounds is None,
            rows.start_limit_bits,
        )
        key = "start", rows.n_samples, self.shape, self.n_limbs, *about
        # Whether there is a limit does not change these launches.
        parts = [self.current, self.labels, self.arena.whole]
        return Layout(key, [*parts, *(x for x in start if x is not None)])

    def restart(self, centers: NDArray) -> None:
        """Return to the state before the first iteration, from other centres."""
        self._begin(centers)
        # The sums are outside the arena where their shape was not known.
        self.sums.zero_()
        self.ending = None
        self.reports.forget()
        self._score_all()

    def launch(self, first: int, last: int, ends: bool) -> None:
        """Queue the iterations `first` to `last`, and with `ends` the end of the run."""
        device, left = self.rows.device, last - first + 1
        if self.queued_with_start:
            left -= self.queued_with_start
            self.queued_with_start = 0
        elif self.starting.times == 0:
            self._first()
            left -= 1
        elif self.packs_next and not self.packed:
            self.starting.do(self._start, device)
            left -= 1
        self.packed = self.packs_next
        if self.may_prune and self.changed * ROWS_PER_CHANGE <= self.rows.n_samples:
            self.pruning, self.may_prune = Pruning.of(self), False
        if self.pruning is None:
            self.iterating.do(self._iterate, device, times=left)
        else:
            self.pruning.iterate(self, left)
        # The host reads the bounds while the device continues.
        self._ask()
        self.reports.ask(first, last)
        if ends:
            # Queued before the copy, which would delay it.
            self.end()
            self.reports.send()

    def _score_all(self) -> None:
        """Score all rows from here on, until bounds are tried again."""
        self.pruning = None
        self.may_prune, self.changed = may_pay(self), self.rows.n_samples

    def _forget_bounds(self) -> None:
        """Mark the bounds as invalid for the labels and centres of the next iteration."""
        if self.pruning is not None:
            self.pruning.bounds_valid = False

    def _first(self) -> None:
        """Queue the first iteration."""
        if self.rows.knows_grid and self.scanning.times == 0:
            self._queue_first(None)
            return
        # The device is busy while the host waits for the grid.
        self.assign()
        self.limit = self.rows.limit()
        self.updating.do(self.update, self.rows.device, self._updating)
        self.starting = self.iterating = self.scanning.then(self.updating)

    def _queue_first(self, start: Start | None) -> None:
        """Queue the first iteration by one plan, with the start unless that was queued."""
        rows = self.rows
        self.limit = rows.limit()
        # All steps share the memory of one plan: an update may write what the next scan reads.
        assert rows.fp16_rows is not None
        self.packs_next = packs_in_update(self.shape[1], rows.fp16_rows.width)
        works = partial(self._queue_start, start), self._pack, self._assign, self.update
        layout = self._iterating()
        if start is not None:
            layout = layout.after(self._starting(start))
        scan, assignment, first, packs_next = planned_steps(works, rows.device, layout, STEPS)
        self.scanning.did(scan)
        self.assigning.did(assignment)
        self.starting.did(first)
        self.iterating.did(packs_next if self.packs_next else first)

    def _ask(self) -> None:
        """Queue the copy of the rows' bounds, if those are to be looked at."""
        if self.rows.unchecked:
            self.rows.ask()

    def end(self) -> Ending:
        """Queue an assignment and the inertia."""
        self._forget_bounds()
        if self.packed:
            self.assigning.do(self._assign, self.rows.device)
        else:
            self.assign()
        self.ending = Ending(self.rows, self.labels, self.current)
        return self.ending

    def assign(self) -> None:
        """Queue an assignment."""
        self._forget_bounds()
        self.scanning.do(self._scan, self.rows.device, self._scanning)

    def _scan(self) -> None:
        """Queue an assignment; rows that change are listed."""
        self._pack()
        self._assign()

    def _pack(self) -> None:
        """Queue the packing of the centres."""
        self.scan.pack(self.current, self.run_state)

    def _assign(self) -> None:
        """Queue an assignment to centres that are packed."""
        self.scan.assign(
            self.current, self.labels, self.changed_rows, self.changed_old, self.run_state
        )

    def _scanning(self) -> Layout:
        """Return what the launches of an assignment depend on."""
        rows = self.rows
        return Layout.of(
            "scan", rows.X, rows.fp16_rows, self,
            scratch=lambda: self.scan.memory, zeros=self.arena.address("scan"),
        )  # fmt: skip

    def _updating(self) -> Layout:
        """Return what the launches of an update depend on; waits for the grid."""
        return self._adding("update", scratch=lambda: self.cluster_sums.memory(self.rows))

    def _iterating(self) -> Layout:
        """Return what the launches of an iteration depend on; waits for the grid."""

        def scratch() -> Scratch:
            (every, clean), (more, others) = self.scan.memory, self.cluster_sums.memory(self.rows)
            return [*every, *more], [*clean, *others]

        return self._adding("iteration", self.rows.fp16_rows, scratch=scratch)

    def _adding(self, work: str, *owners: Owner, scratch: Callable[[], Scratch]) -> Layout:
        """Return what the launches of work that adds rows up depend on."""
        rows, fixed_point_grid = self.rows, self.rows.fixed_point_grid
        layout = Layout.of(
            work, rows.X, fixed_point_grid, self, *owners,
            scratch=scratch, zeros=self.arena.address("update"),
        )  # fmt: skip
        # The arena has no room for more limbs, or fewer: both are in the key.
        outside = fixed_point_grid.grid.n_limbs != self.n_limbs
        return layout._replace(parts=[self.sums, *layout.parts]) if outside else layout

    def contribute(self, message: torch.Tensor) -> None:
        """Queue an iteration up to the message that other devices add up: always the same one."""
        self.assign()
        self.updating.do(partial(self._write_message, message), self.rows.device)

    def _write_message(self, message: torch.Tensor) -> None:
        self.move()
        queue_write_message(self.sums, self.run_state, message)

    def move(self) -> None:
        """Queue the moves of rows that were listed from sum to sum."""
        lists = self.changed_rows, self.changed_old
        self.cluster_sums.queue(self.rows, self.labels, *lists, self.run_state, self.sums)

    def update(self) -> None:
        """Queue what follows an assignment: sums and centres."""
        self.move()
        packing = (
            self.scan.centers.arguments(self.rows.fp16_rows) if self.packs_next else NOT_PACKED
        )
        queue_finish(self.sums, self.rows.fixed_point_grid, self, 1, packing, self.limit)

    def _start(self) -> None:
        """Queue an iteration from centres that are not packed."""
        self._scan()
        self.update()

    def _iterate(self) -> None:
        """Queue an iteration as those before it."""
        if not self.packs_next:
            self._pack()
        self._assign()
        self.update()

    def finish(self, sums: torch.Tensor, iteration: int) -> None:
        """Queue the end of an iteration: centres from these sums, whatever is empty."""
        self.packed = False
        self._forget_bounds()
        queue_finish(sums, self.rows.fixed_point_grid, self, batch_size=1)
        self.run_state[STOPPED.value] = 0
        self.reports.ask(iteration, iteration)

    def known(self, iteration: int) -> IterationStatus | None:
        """Return the report of an iteration that was launched, if it was read."""
        return self.reports.statuses.get(iteration % self.shape[0])

    def status(self, iteration: int) -> IterationStatus:
        """Wait for the report of an iteration."""
        status = self.reports.status(iteration)
        self._look_at(status.changed, 1, status.pruned)
        return status

    def wait_continuing(self, first: int, most: int, limit: float) -> ContinuingIterations:
        """Wait for an iteration; return the iterations from there on that end nothing."""
        continuing = self.reports.wait_continuing(first, most, self.settles, limit)
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
        self.current.copy_(self.before(iteration + 1))
        self.ending = None
        self.reports.forget()
        self.report.zero_()
        self.run_state.zero_()
        self.run_state[ITERATION.value] = iteration
