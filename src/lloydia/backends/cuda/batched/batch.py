"""The iterations of a batch's items, computed together."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch

from lloydia.backends.cuda.batched.rows import BatchRows, alike
from lloydia.backends.cuda.batched.run import BatchRun, BatchStatus
from lloydia.backends.cuda.matmul.scan import TensorScan
from lloydia.backends.cuda.matmul.starting import queue_start
from lloydia.backends.cuda.rows.distances import own_distances
from lloydia.backends.cuda.rows.fp16_rows import padded
from lloydia.backends.cuda.rows.totals import cost_limbs, join_cost
from lloydia.backends.cuda.run_kinds import run_kind
from lloydia.backends.cuda.runtime.async_copy import AsyncCopy
from lloydia.backends.cuda.runtime.devices import free_bytes
from lloydia.backends.cuda.runtime.launching import place
from lloydia.backends.cuda.runtime.recording import Recording
from lloydia.backends.cuda.runtime.relocation import BufferMap, Stages
from lloydia.backends.cuda.runtime.upload import to_device
from lloydia.backends.cuda.update.cluster_sums import ClusterSums
from lloydia.backends.cuda.update.means import queue_finish
from lloydia.backends.run_settings import UNLIMITED

__all__ = ["LAG", "Batch", "batches"]

# Iterations that are queued while one is waited for, and those whose centres are kept.
LAG = 2
SLOTS = LAG + 4
# The third axis of a grid is no longer; memory beside rows and centres that an item takes.
MAX_GRID_Z, BYTES_PER_ITEM = 65535, 1 << 16


class Batch:
    """Items that are iterated by the same launches.

    Each has its own run state: an item that has ended does not change any more, whatever is
    launched for the others.  Where a rule ended it, that is known a few iterations late, and its
    centres are taken from their history.

    Parameters
    ----------
    k : int
    empty_stops : bool
        Whether empty clusters end what is queued of an item.
    starts : torch.Tensor of shape (batch_size, k, d), or None
        Where all items will be started, with :meth:`assign_ahead` before they are.
    rows : BatchRows
    bounds : torch.Tensor, or None
        Of the rows, which :func:`~lloydia.backends.cuda.matmul.starting.queue_start` raises; None
        where the rows are not all that the starts are for.
    """

    def __init__(
        self,
        k: int,
        empty_stops: bool,
        starts: torch.Tensor | None,
        rows: BatchRows,
        bounds: torch.Tensor | None,
    ) -> None:
        self.rows = rows
        self.run = BatchRun(rows, k, SLOTS, empty_stops)
        self.k, self.name = k, f"cuda:{rows.device.index or 0}"
        self.scanning, self.updating = Recording(), Recording()
        self.starts: list[Any] = [None] * rows.batch_size
        # Whether the starts are in place; whether rows were assigned to them, but not updated.
        self.begun = starts is not None and bounds is not None
        self.assigned = False
        if starts is not None and bounds is not None:
            queue_start(starts, self.run.current, self.run.history, bounds)
        # Iterations that some item has queued here, and those that are queued on the device.
        self.queued = self.launched = 0
        self.max_iter = UNLIMITED
        # Items that are to be stopped, with their last iteration; and to be assigned once more.
        self.ended: dict[int, int] = {}
        self.unassigned: list[int] = []
        # The inertia of all items: if they end with the last possible iteration, and in any case.
        self.ending: AsyncCopy | None = None
        self.final: AsyncCopy | None = None

    # Recorded launches have scratch of their own instead of these.

    @cached_property
    def scan(self) -> TensorScan:
        """What assigns rows."""
        return TensorScan(self.rows, self.k)

    @cached_property
    def cluster_sums(self) -> ClusterSums:
        """What moves rows that changed."""
        return ClusterSums(self.rows, self.k)

    def launch(self) -> None:
        """Queue on the device what items have queued here."""
        run = self.run
        if not self.begun:
            self._begin()
        if self.launched < self.queued:
            self._go_back()
            self.run.stop(list(self.ended))
            self.ended.clear()
        while self.launched < self.queued:
            self.launched += 1
            if not self.assigned:
                self._assign()
            self.assigned = False
            self.updating.do(self._update, self.rows.device, self._updating)
            run.ask(self.launched)
            if self.launched == self.max_iter:
                self.ending = self._end()

    def _begin(self) -> None:
        """Put the starts in place, on the host or on the device, in one copy."""
        run, starts = self.run, self.starts
        if isinstance(starts[0], torch.Tensor):
            torch.stack(starts, out=run.current)
        else:
            run.current.copy_(torch.from_numpy(np.stack(starts)), non_blocking=True)
        run.history[0] = run.current
        self.begun = True

    def assign_ahead(self) -> None:
        """Assign rows to the starts, if those are known, before any item asks for it."""
        if self.begun:
            self._assign()
            self.assigned = True

    def _assign(self) -> None:
        """Queue an assignment of all items."""
        self.scanning.do(self._scan, self.rows.device, self._scanning)

    def _scan(self) -> Stages:
        """Return what queues an assignment of all items; rows that change are listed."""
        return [partial(self.scan.scan, self.run.current, self.run.changes)]

    def _scanning(self) -> BufferMap:
        """Return what the launches of an assignment depend on."""
        return BufferMap.of(
            "scan of all", self.rows.X, self.rows.fp16_rows, self.run,
            scratch=lambda: self.scan.memory,
        )  # fmt: skip

    def _updating(self) -> BufferMap:
        """Return what the launches of an update depend on."""
        X, fixed_point_grid = self.rows.X, self.rows.fixed_point_grid
        buffer_map = BufferMap.of(
            "update of all",
            X,
            fixed_point_grid,
            self.run,
            scratch=lambda: self.cluster_sums.memory(self.rows),
        )
        return buffer_map.with_buffers(self.run.sums)

    def _update(self) -> Stages:
        """Return what queues what follows it: sums and centres."""
        rows, run = self.rows, self.run
        return [
            *self.cluster_sums.stages(rows, run.changes, run.sums),
            partial(queue_finish, run.sums, rows.fixed_point_grid, run, rows.batch_size),
        ]

    def status(self, iteration: int) -> BatchStatus:
        """Wait for the reports of an iteration."""
        if self.launched < iteration:
            self.launch()
        return self.run.status(iteration)

    def _go_back(self) -> None:
        """Give the items that have ended the centres of their last iteration again."""
        behind = {b: i for b, i in self.ended.items() if i < self.launched}
        if behind:
            self.run.go_back(list(behind), list(behind.values()))

    def _end(self) -> AsyncCopy:
        """Queue a last assignment of the items that go on, and the inertia of all."""
        self._assign()
        return AsyncCopy(self._totals(self.run.labels, self.run.current))

    def finish(self) -> AsyncCopy:
        """Return the inertia of each item, being copied to the host; all items must have ended.

        Labels and centres are the last ones after this call.
        """
        if self.final is None:
            if any(self.ended.get(b) != self.launched for b in self.unassigned):
                self.ending = None
            self.final = self.ending or self._end_separately()
        return self.final

    def _end_separately(self) -> AsyncCopy:
        """Queue the end of all items, some of which have ended before others."""
        run = self.run
        self._go_back()
        run.run_state.zero_()
        run.stop(sorted(set(range(self.rows.batch_size)) - set(self.unassigned)))
        return self._end()

    @cached_property
    def costs(self) -> list[float]:
        """The inertia of each item, once all have ended."""
        return self._joined(self.finish())

    @cached_property
    def mean_variances(self) -> list[float]:
        """The mean over features of the variance of each item, known after an iteration."""
        rows = self.rows
        # The centre of all rows as one cluster, whatever their labels: integers add up.
        one = BatchRun(rows, 1, SLOTS, empty_stops=False)
        sums = self.run.sums.sum(dim=2, keepdim=True)
        queue_finish(sums, rows.fixed_point_grid, one, rows.batch_size)
        totals = self._totals(torch.zeros_like(self.run.labels), one.current)
        costs = self._joined(AsyncCopy(totals))
        return [cost / (rows.n_samples * rows.n_features) for cost in costs]

    def _totals(self, labels: torch.Tensor, centers: torch.Tensor) -> torch.Tensor:
        """Queue each item's sum of D to the centres of these labels: see :func:`cost_limbs`."""
        rows = self.rows
        largest = torch.zeros(rows.batch_size, dtype=torch.float64, device=rows.device)
        D = own_distances(rows, labels, centers, largest=largest)
        return cost_limbs(D, None, largest, batch_size=rows.batch_size)

    def _joined(self, limbs: AsyncCopy) -> list[float]:
        """Wait for sums, and return them."""
        return [join_cost(own, self.rows.n_samples) for own in limbs.numpy().tolist()]


def batches(
    device: str, X: Any, k: int, empty_stops: bool, starts: torch.Tensor | None
) -> Iterator[tuple[list[int], Batch]]:
    """Yield the batches that items are fitted in, with their numbers.

    An item is in none where it has to be fitted by itself: rows of few features, or a start or
    rows that are not finite, or more limbs than the others need, or memory for one item only.

    Parameters
    ----------
    device : str
    X : torch.Tensor on the device, or ndarray: shape (batch_size, n, d)
    k : int
    empty_stops : bool
        As of :class:`Batch`.
    starts : float32 tensor on the device, of shape (batch_size, k, d), or None
        Where items will be started, if that is known.
    """
    home = place(device)
    there = isinstance(X, torch.Tensor) and X.device == home
    if not run_kind(X.shape[2]).in_batches:
        return
    size = largest_batch(X, k, home, copied=not (there and X.is_contiguous()))
    for first in range(0, len(X) if size > 1 else 0, size):
        part = X[first : first + size]
        rows = part.contiguous() if there else to_device(np.asarray(part), home)
        own = None if starts is None else starts[first : first + size].contiguous()
        made_of = partial(Batch, k, empty_stops, own)
        for numbers, batch in alike(rows, made_of, Batch.assign_ahead):
            yield [first + i for i in numbers], batch


def largest_batch(X: Any, k: int, device: torch.device, copied: bool) -> int:
    """Return how many items fit in the device's memory, and in what kernels count."""
    batch_size, n, d = X.shape
    kind = run_kind(d)
    row = kind.row_bytes(padded(d)) + (d * X.dtype.itemsize if copied else 0)
    # Centres: their history, those in half precision, and sums of, as a rule, two limbs.
    each = n * row + k * (d + 1) * (8 * (SLOTS + 2) + 32) + BYTES_PER_ITEM
    free = free_bytes(device, batch_size * each)
    return min(batch_size, MAX_GRID_Z, kind.max_rows // n, free // each)
