"""What packages ask of each other, as protocols: so their types are imported in no circle.

There are eight protocols of rows.  Four are here, each with more than the one before, and four are
in the modules that need them:

* `Rows`: of the kernels that recheck some rows.
* `WholeRows`: of what measures, stores or scores all rows.
* `DataSetRows`: of the fixed-point grid and the mean variance.
* `RunRows`: of the runs of :mod:`low_dim`.
* `SummedRows`, in :mod:`update.cluster_sums`: `WholeRows` with a grid on the device.
* `RowsWithFp16`, in :mod:`matmul.scan`: `WholeRows` with a half-precision copy.
* `TensorRows`, in :mod:`matmul.memory`: `SummedRows`, `RowsWithFp16` and `RunRows` in one, of the
  runs of :mod:`matmul`.
* `SeededRows`, in :mod:`seeding.several`: `RowsWithFp16` and `RunRows` in one, of seedings.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, SupportsFloat

import numpy as np
import torch
from numpy.typing import NDArray

from lloydia.backends.cuda.update.reports import ContinuingIterations, IterationStatus
from lloydia.exact import sums as exact

__all__ = [
    "DataSetRows",
    "IterationState",
    "LabelChanges",
    "Rows",
    "Run",
    "RunEnding",
    "RunMemory",
    "RunRows",
    "WholeRows",
]


class Rows(Protocol):
    """Rows on a device: of a data set, of all items of a batch, or some of them.

    Attributes
    ----------
    X : torch.Tensor of shape (n, d), or (batch_size, n, d) for a batch
    n_samples : int
        Rows of an item.
    batch_size : int
        1 for a single data set.
    device : torch.device
    """

    @property
    def X(self) -> torch.Tensor: ...
    @property
    def n_samples(self) -> int: ...
    @property
    def batch_size(self) -> int: ...
    @property
    def device(self) -> torch.device: ...


class WholeRows(Rows, Protocol):
    """All rows of a data set or of a batch.

    Attributes
    ----------
    n_features : int
    wide : torch.dtype
        Of centres: float32 or float64.
    weights : torch.Tensor of shape (n,), float64, or None
    """

    @property
    def n_features(self) -> int: ...
    @property
    def wide(self) -> torch.dtype: ...
    @property
    def weights(self) -> torch.Tensor | None: ...


class DataSetRows(WholeRows, Protocol):
    """Rows of one data set.

    Attributes
    ----------
    total_weight : float
        The sum of the weights, or the number of rows.
    """

    @property
    def total_weight(self) -> float: ...

    def frame(self) -> NDArray[np.float64]:
        """Return the origin and the scale of float32 scores: shape (d + 1,)."""


class RunRows(DataSetRows, Protocol):
    """Rows that a run iterates over.

    Attributes
    ----------
    grid : Grid
        Of their sums, on the host.
    start_limit_bits : int
        The bits of a float64 number that starts are to be below.
    """

    @property
    def grid(self) -> exact.Grid: ...
    @property
    def start_limit_bits(self) -> int: ...
    def take_bounds(self, found: NDArray[np.int64]) -> None:
        """Take the bounds that a run has found of the rows: shape (1, 2, d)."""


class LabelChanges(NamedTuple):
    """The labels of rows, and the list of those that an assignment changes.

    Kernels take all of them, in this order.

    Attributes
    ----------
    labels : int32 tensor of shape (n,), or (batch_size n,)
    rows, old : int32 tensors of that shape
        The first ``run_state[N_CHANGED]`` of an item are rows that changed, and their old labels.
    run_state : int32 tensor
        See :mod:`device_functions.run_state`.
    """

    labels: torch.Tensor
    rows: torch.Tensor
    old: torch.Tensor
    run_state: torch.Tensor


class IterationState(Protocol):
    """Where the end of an iteration writes; of a batch, each for one item after the other.

    Attributes
    ----------
    current : torch.Tensor of shape (k, d)
        The centres.
    history : torch.Tensor of shape (n_slots, k, d)
        The centres of some iterations.
    report : int64 tensor of shape (n_slots, HEAD + k)
        See :mod:`device_functions.iteration_report`.
    run_state : int32 tensor
        See :mod:`device_functions.run_state`.
    empty_stops : int
        1: iterations end at one with empty clusters; or 0.
    """

    @property
    def current(self) -> torch.Tensor: ...
    @property
    def history(self) -> torch.Tensor: ...
    @property
    def report(self) -> torch.Tensor: ...
    @property
    def run_state(self) -> torch.Tensor: ...
    @property
    def empty_stops(self) -> int: ...


class RunEnding(SupportsFloat, Protocol):
    """What a run ends with, being copied to the host: as a float it is the inertia."""

    def full(self) -> bool:
        """Return whether every cluster has a row."""


class RunMemory(IterationState, Protocol):
    """The tensors of a run.

    Attributes
    ----------
    labels : int32 tensor of shape (n,)
    sums : int64 tensor of shape (n_replicas, n_limbs, k, d + 1)
        The sums of the clusters, once the grid is known.
    """

    @property
    def labels(self) -> torch.Tensor: ...
    @property
    def sums(self) -> torch.Tensor: ...


class Run(Protocol):
    """The state of one run on the device: of few features, or of more.

    Attributes
    ----------
    memory : RunMemory
    launches_per_batch : int
        Iterations that are launched together.
    ending : RunEnding or None
        What it ends with, if that was queued, or the device has reached the end.
    queued_work
        What was queued, for :meth:`repeat`.
    """

    launches_per_batch: int

    @property
    def memory(self) -> RunMemory: ...
    @property
    def ending(self) -> RunEnding | None: ...
    @property
    def queued_work(self) -> tuple: ...

    def launch(self, first: int, last: int, ends: bool) -> None:
        """Queue some iterations, and with `ends` what the run ends with if they are its last."""

    def assign(self) -> None:
        """Queue an assignment."""

    def accumulate(self) -> None:
        """Queue an assignment, and the moves of rows that changed from sum to sum."""

    def over(self, rows: Any, labels: torch.Tensor) -> Run:
        """Return a run over other rows, at most as many, in the same memory but for labels."""

    def end(self) -> RunEnding:
        """Queue an assignment and the inertia."""

    def verify(self) -> bool:
        """Return whether the run has the limbs that its rows need.

        Of few features: whether they fit in its room; of more: whether the guess of their number
        was right.  Waits for what the run found of its rows, if it did, and hands it to them.
        """

    def repeat(self, work: tuple) -> None:
        """Queue the work of another run, from the start on."""

    def known(self, iteration: int) -> IterationStatus | None:
        """Return the status of an iteration that was launched, if it was read."""

    def status(self, iteration: int) -> IterationStatus:
        """Wait for the status of an iteration."""

    def wait_continuing(self, first: int, most: int, limit: float) -> ContinuingIterations:
        """Wait for an iteration; return the iterations from there on that end nothing."""

    def before(self, iteration: int) -> torch.Tensor:
        """Return the centres that rows were assigned to in an iteration."""

    def go_back(self, iteration: int) -> None:
        """Make the state after an iteration current; labels and sums must be those of it."""

    def finish(self, sums: torch.Tensor, iteration: int) -> None:
        """Queue the end of an iteration: centres from these sums, whatever is empty."""

    def contribute(self, message: torch.Tensor) -> None:
        """Queue an iteration up to what the other parts of the data are sent of it."""
