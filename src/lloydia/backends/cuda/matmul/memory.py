"""The memory of a run with more than 8 features: labels, lists, sums and centres."""

from __future__ import annotations

from copy import copy
from functools import cached_property, lru_cache, partial
from typing import Any, Protocol

import torch

from lloydia.backends.cuda.device_functions.iteration_report import HEAD
from lloydia.backends.cuda.device_functions.run_state import SIZE
from lloydia.backends.cuda.matmul.scan import RowsWithFp16, TensorScan
from lloydia.backends.cuda.matmul.starting import Start, queue_start
from lloydia.backends.cuda.protocols import LabelChanges, RunRows
from lloydia.backends.cuda.runtime.arena import Arena, Offsets, offsets_of_parts
from lloydia.backends.cuda.runtime.async_copy import AsyncCopy
from lloydia.backends.cuda.runtime.relocation import ZEROED_BYTES, Stages
from lloydia.backends.cuda.update.cluster_sums import ClusterSums, SummedRows

__all__ = ["TensorMemory", "TensorRows"]


@lru_cache
def layout_of(n: int, shape: tuple[int, int, int], n_limbs: int, wide: torch.dtype) -> Offsets:
    """Return the offsets of the tensors of a :class:`TensorMemory` for n rows."""
    n_slots, k, d = shape
    int32, int64, clean = torch.int32, torch.int64, (torch.uint8, (ZEROED_BYTES,))
    return offsets_of_parts(
        report=(int64, (n_slots, HEAD.value + k)), run_state=(int32, (SIZE,)), scan=clean,
        update=clean, sums=(int64, (1, n_limbs, k, d + 1)), history=(wide, shape),
        rows=(int32, (n,)), old=(int32, (n,)),
    )  # fmt: skip


class TensorRows(SummedRows, RowsWithFp16, RunRows, Protocol):
    """Rows that a run iterates over; some facts about them may be guesses until the host checks.

    Attributes
    ----------
    expected : int or None
        How many limbs the sums will probably have.
    knows_grid : bool
        Whether the grid, or a guess of it, is available without waiting for the device.
    unchecked : bool
        Whether the host has yet to check what the device found about the rows.
    measured : int64 tensor, or None
        The bounds of the magnitudes, on the device.
    """

    unchecked: bool
    measured: torch.Tensor | None

    @property
    def expected(self) -> int | None: ...
    @property
    def knows_grid(self) -> bool: ...
    def guess(self) -> bool:
        """Return whether a guess is used as the grid."""

    def confirm_guess(self) -> bool:
        """Return whether the guess was right, and take the grid that the host knows."""

    def limit(self, tolerance: float, k: int) -> torch.Tensor | None:
        """Return the sum of squared movements at which a run of k clusters ends, on the device."""

    def ask(self) -> AsyncCopy:
        """Queue the copy of the bounds to the host."""


class TensorMemory:
    """The tensors of a run, most of which are parts of one arena, and what has scratch of its own.

    Parameters
    ----------
    rows : TensorRows
    shape : tuple of int
        n_slots, k, d.
    empty_stops : bool
        Whether the run stops at an iteration with empty clusters.

    Attributes
    ----------
    labels : int32 (n,)
        -1 before the first assignment.
    current : (k, d)
    history : (n_slots, k, d)
        The centres after iteration i in slot i modulo n_slots; those before the first in slot 0.
    report : int64 (n_slots, HEAD + k)
    run_state : int32 (SIZE,)
        See :mod:`lloydia.backends.cuda.device_functions.run_state`.
    limit : float64 (1,), or None
        The sum of squared movements at which the run ends, once it is queued.
    n_limbs : int
        How many limbs of sums the arena has room for.
    packs_next : bool
        Whether an iteration ends with the packing of the next one's centres.
    arena : Arena
        It begins with zeros, up to the history.
    """

    limit: torch.Tensor | None = None
    packs_next = False

    def __init__(self, rows: TensorRows, shape: tuple[int, int, int], empty_stops: bool) -> None:
        self.rows, self.shape, self.empty_stops = rows, shape, int(empty_stops)
        self.n_limbs = rows.expected or 0
        n = rows.n_samples
        offsets = layout_of(n, shape, self.n_limbs, rows.wide)
        # These two outlive the run.
        self.current = torch.empty(shape[1:], dtype=rows.wide, device=rows.device)
        self.labels = torch.empty(n, dtype=torch.int32, device=rows.device)
        self.arena = Arena(rows.device, offsets)

    def beginning(self, start: Start | None) -> Stages:
        """Return what queues a start, if there is one."""
        if start is None:
            return []
        zeros = self.arena.whole[: self.arena.begin("history")].view(torch.int64)
        return [
            partial(
                queue_start, start.centers, self.current, self.history, start.bounds, self.labels,
                zeros, self.rows.start_limit_bits,
            )
        ]  # fmt: skip

    def over(self, rows: Any, labels: torch.Tensor) -> TensorMemory:
        """Return the memory of a run over other rows: the same but for labels."""
        memory = copy(self)
        memory.rows, memory.labels, memory.scan = rows, labels, copy(self.scan)
        memory.scan.rows, memory.scan.fp16_rows = rows, rows.fp16_rows
        return memory

    @property
    def key(self) -> tuple:
        """What launches depend on, besides the addresses of the memory."""
        return self.shape, self.n_limbs, self.empty_stops, self.packs_next, self.limit is None

    @property
    def buffers(self) -> list[torch.Tensor]:
        """All memory that recorded launches refer to, except `scan`, `cluster_sums` and `sums`."""
        limit = [] if self.limit is None else [self.limit]
        return [self.current, self.labels, self.arena.whole, *limit]

    @property
    def changes(self) -> LabelChanges:
        """The labels, and the lists of rows that an assignment changes."""
        arena = self.arena
        return LabelChanges(self.labels, arena.rows, arena.old, arena.run_state)

    @property
    def history(self) -> torch.Tensor:
        return self.arena.history

    @property
    def report(self) -> torch.Tensor:
        return self.arena.report

    @property
    def run_state(self) -> torch.Tensor:
        return self.arena.run_state

    @cached_property
    def scan(self) -> TensorScan:
        """The scan, which assigns rows."""
        return TensorScan(self.rows, self.shape[1])

    @cached_property
    def cluster_sums(self) -> ClusterSums:
        """What adds changed rows to the sums of clusters."""
        return ClusterSums(self.rows, self.shape[1])

    @cached_property
    def sums(self) -> torch.Tensor:
        """The sums of the clusters: int64 (1, n_limbs, k, d + 1); waits for the grid."""
        n_limbs = self.rows.fixed_point_grid.grid.n_limbs
        if self.n_limbs == n_limbs:
            return self.arena.sums
        _, k, d = self.shape
        return torch.zeros((1, n_limbs, k, d + 1), dtype=torch.int64, device=self.rows.device)

    def slot(self, iteration: int) -> int:
        """Return the slot of an iteration's centres and report."""
        return iteration % self.shape[0]
