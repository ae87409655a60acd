"""Iterations late in a run with many rows, features and centres: most rows are not scored.

When few rows change, most centres hardly move.  Rows have bounds of their distances
(:mod:`bounds`).  Only rows whose bounds allow another label are *active* and scored for all centres
(:mod:`active_rows`); the other rows are scored for the :mod:`largest_moves` alone
(:mod:`pruned_rows`).  The later stages are unchanged, and so are the labels: bounds prune a row
only where its canonical label is certain to stay.
"""

from __future__ import annotations

from functools import partial
from typing import Protocol

import torch

from lloydia.backends.cuda.device_functions.fp16_scores import HALF_NORM_WIDTH
from lloydia.backends.cuda.matmul.pruning.active_rows import certify_active, scan_active
from lloydia.backends.cuda.matmul.pruning.largest_moves import (
    N_LARGEST,
    queue_largest_moves,
)
from lloydia.backends.cuda.matmul.pruning.pruned_rows import queue_prune
from lloydia.backends.cuda.matmul.scan import TensorScan
from lloydia.backends.cuda.protocols import IterationState, LabelChanges
from lloydia.backends.cuda.rows.fp16_rows import padded
from lloydia.backends.cuda.runtime.devices import free_bytes
from lloydia.backends.cuda.runtime.recording import Recording
from lloydia.backends.cuda.runtime.relocation import StagedWork, Stages
from lloydia.backends.cuda.update.cluster_sums import ClusterSums, SummedRows

__all__ = ["ALGORITHM", "DISTANCES_OF_PRUNED", "Pruning"]

# The algorithm that a run has used if bounds have pruned rows, and how many distances are computed
# for such a row: those to the centres that moved most.
ALGORITHM, DISTANCES_OF_PRUNED = "hamerly", N_LARGEST

# Bytes for each row: two bounds, a place in the list of active rows, and the scratch of the scan
# and of the sorted updates, which recorded iterations had before.
BYTES = 64
# Bounds are tried when at most one of so many rows changes.
ROWS_PER_CHANGE = 128
# Iterations after which bounds must prune at least one of so many rows.
TRIED, WORTH = 32, 16


class PrunedMemory(IterationState, Protocol):
    """What this module needs of the memory of a run; see :class:`matmul.memory.TensorMemory`."""

    shape: tuple[int, int, int]

    @property
    def rows(self) -> SummedRows: ...
    @property
    def scan(self) -> TensorScan: ...
    @property
    def cluster_sums(self) -> ClusterSums: ...
    @property
    def labels(self) -> torch.Tensor: ...
    @property
    def changes(self) -> LabelChanges: ...


class Pruning:
    """The bounds of a run's rows, and the iterations that use them.

    Parameters
    ----------
    n, k : int
    device : torch.device

    Attributes
    ----------
    bounds : float32 tensor of shape (2, n)
        The upper bounds, then the lower bounds.
    bounds_valid : bool
        Whether they belong to the labels and centres that the next iteration finds.
    renewed : int
        How many iterations had been queued when every row was last active.
    """

    def __init__(self, n: int, k: int, device: torch.device) -> None:
        self.bounds = torch.empty((2, n), dtype=torch.float32, device=device)
        self.active_rows = torch.empty(n, dtype=torch.int32, device=device)
        self.movements = torch.empty(k + 1, dtype=torch.float32, device=device)
        # -1 until a running device writes names; a stopped device reads them too.
        self.largest = torch.full((N_LARGEST,), -1, dtype=torch.int32, device=device)
        self.bounds_valid = False
        self.iterating, self.renewed = Recording(), 0

    @classmethod
    def of(cls, memory: PrunedMemory) -> Pruning | None:
        """Return the pruning of a run from here on; None if the GPU has too little memory."""
        rows, (_, k, d) = memory.rows, memory.shape
        center = 2 * padded(d) + 2 * HALF_NORM_WIDTH.value + 2 * d * memory.current.itemsize
        needed = BYTES * rows.n_samples + k * center
        if free_bytes(rows.device, needed) < needed:
            return None
        try:
            # Allocates the scratch, in whose place recorded iterations had some of their own.
            memory.scan.memory, memory.cluster_sums.memory(rows)
            return cls(rows.n_samples, k, rows.device)
        except torch.OutOfMemoryError:
            return None

    def pays(self, count: int, n_pruned: int) -> bool:
        """Return whether to go on after `count` iterations that pruned `n_pruned` rows."""
        every = count * self.active_rows.numel()
        return self.iterating.times < self.renewed + TRIED or n_pruned * WORTH >= every

    def iterate(self, memory: PrunedMemory, update: StagedWork, times: int) -> None:
        """Queue iterations, which find their centres not packed and end with `update`."""
        if not self.bounds_valid:
            # Makes every row active.
            self.bounds[0].fill_(float("inf"))
            self.bounds[1].zero_()
            self.bounds_valid, self.renewed = True, self.iterating.times
        work = partial(self._iteration, memory, update)
        self.iterating.do(work, memory.rows.device, times=times)

    def _iteration(self, memory: PrunedMemory, update: StagedWork) -> Stages:
        rows, scan, run_state = memory.rows, memory.scan, memory.run_state
        fp16_rows, centers = scan.fp16_rows, scan.centers
        some, changes = (scan.ambiguous, scan.unresolved, scan.candidates), memory.changes
        return [
            partial(centers.pack, fp16_rows, memory.current, run_state),
            partial(
                queue_largest_moves, memory.report, rows.n_features, fp16_rows.numbers,
                self.movements, self.largest, run_state,
            ),
            partial(
                queue_prune, fp16_rows, centers, memory.labels, self.movements, self.largest,
                self.bounds, self.active_rows, run_state,
            ),
            partial(scan_active, scan, self.active_rows, run_state),
            partial(certify_active, scan, self.bounds, self.active_rows, changes),
            partial(scan.nominate, run_state),
            *scan.rechecking(rows, memory.current, *some, changes),
            *update(),
        ]  # fmt: skip
