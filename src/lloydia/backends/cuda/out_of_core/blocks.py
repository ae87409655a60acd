"""A block of rows on a GPU, a run over it, and what the blocks of a GPU share.

A block's own is what belongs to its rows, and is small: labels, weights, the D to the nearest seed,
the frame of its half-precision copy.  That copy is made again whenever the rows arrive: the device
writes it many times faster than the bus sends rows.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from lloydia.backends.cuda.dataset import WIDE, Dataset
from lloydia.backends.cuda.device_functions.run_state import ITERATION
from lloydia.backends.cuda.low_dim.run import LowRun
from lloydia.backends.cuda.matmul.run import TensorRun
from lloydia.backends.cuda.matmul.scan import TensorScan
from lloydia.backends.cuda.out_of_core.counted import COUNTED, queue_tally
from lloydia.backends.cuda.out_of_core.transfer_dtype import narrowest_dtype
from lloydia.backends.cuda.protocols import Run
from lloydia.backends.cuda.rows.fixed_point_grid import FixedPointGrid
from lloydia.backends.cuda.rows.fp16_rows import Fp16Rows
from lloydia.backends.cuda.run_kinds import LOW_DIM
from lloydia.backends.cuda.runtime.recording import Recording
from lloydia.backends.cuda.runtime.relocation import replay
from lloydia.backends.part import Step
from lloydia.backends.run_settings import RunSettings
from lloydia.exact.certificate import max_scale_exponent, scale_of

__all__ = ["Block", "Shared"]


class Unrecorded:
    """Work that the block records, together with what precedes and follows it."""

    def do(self, work: Any, device: torch.device, buffer_map: Any = None) -> None:
        """Queue the work."""
        for queue in work():
            queue()


class Shared:
    """What the blocks of a device have in common.

    Attributes
    ----------
    fp16_rows : tuple of tensors, or None
        Memory for the half-precision copy of a block: for the first, which no other exceeds.
    run : Run
        The sums, the centres, and what is needed of a block while it is here.
    runs : list of TensorRun
        It and another one, for two blocks that are in progress; see :mod:`listed`.
    counts : int64 tensor of shape (COUNTED,)
        What the blocks of a pass have counted; see :mod:`counted`.
    known : bool
        Whether rows have labels, since there was an iteration.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.counts = torch.zeros(COUNTED, dtype=torch.int64, device=device)
        self.fp16_rows: tuple[torch.Tensor, ...] | None = None
        self.known = False
        self.forget_run()

    def forget_run(self) -> None:
        """Release what the last run needed."""
        self._run: Run | None = None
        self._grid: FixedPointGrid | None = None
        self.runs: list[TensorRun] = []

    @property
    def run(self) -> Run:
        """The run that was begun last."""
        assert self._run is not None, "A run begins before its blocks do."
        return self._run

    def begin(self, first: Dataset, centers: NDArray, n_runs: int) -> None:
        """Begin a run, for blocks that are not larger than the first; the last one is forgotten."""
        self.known = False
        self._grid = grid = FixedPointGrid.of(first, first.grid, None)
        centers = np.array(centers, dtype=first.dtype, order="C")
        if first.kind is LOW_DIM:
            self._run = LowRun(first, grid, centers, 1, False)
            return
        first.use_grid(grid)
        self.runs = [TensorRun(first, centers.shape, 0, False) for _ in range(n_runs)]
        self._run = run = self.runs[0]
        run.scanning = run.updating = Unrecorded()
        # Both runs, and copies of them, have these in common.
        for one in self.runs:
            one.begin(centers)
            own, common = one.memory, run.memory
            own.current, own.sums, own.cluster_sums = (
                common.current,
                common.sums,
                common.cluster_sums,
            )
            own.scan = TensorScan(first, len(centers))

    def run_of(self, data: Dataset, labels: torch.Tensor) -> Run:
        """Return the run of a block, in the same memory; its rows get the grid of all."""
        assert self._grid is not None
        scaled = None
        if data.weights is not None:
            by = torch.tensor(-data.grid.weight_exponent, device=self.device)
            scaled = torch.ldexp(data.weights, by)
        data.use_grid(replace(self._grid, grid=data.grid, weights=scaled))
        return self.run.over(data, labels)

    def end_pass(self) -> NDArray[np.int64]:
        """Return what was counted in a pass: waits for it."""
        counts = self.counts.cpu().numpy().copy()
        self.counts.zero_()
        return counts

    def end_iteration(self, largest_cost: float) -> tuple[Step, int]:
        """Return the result of an iteration, and how many rows were rechecked."""
        self.known = True
        memory = self.run.memory
        memory.run_state[ITERATION.value] = 1
        sums = memory.sums.sum(dim=0).cpu().numpy()
        counts = self.end_pass()
        return Step(int(counts[0]), sums, largest_cost), int(counts[-1])


class Block:
    """Rows that are sent when they are needed, and a run over them in memory that blocks share.

    See :class:`lloydia.backends.cuda.multi_gpu.part.PartRun`.

    Parameters
    ----------
    X : torch.Tensor of shape (m, d)
        On the device, in the type of the data; it is measured and released.
    weights : ndarray of shape (m,), float64, or None
    shared : Shared

    Attributes
    ----------
    data : Dataset
    transfer_dtype : torch.dtype
        In which the rows can travel, and stay.
    labels : int32 tensor of shape (m,)
    returns : bool
        Whether the rows are in memory that is used for rows again, not converted.
    halving, halved : bool
        Whether the half-precision copy is to stay when it is made next, and whether it has stayed.
    recordings : dict of Recording
        What has been queued in a run, and will be again.
    """

    def __init__(self, X: torch.Tensor, weights: NDArray | None, shared: Shared) -> None:
        there = None if weights is None else torch.as_tensor(weights).to(shared.device)
        self.data = data = Dataset(X, there)
        self.shared, self._run = shared, None
        self.n_distances = self.n_rechecked = 0
        data.magnitudes()
        self.transfer_dtype = narrowest_dtype(X)
        if data.kind.stores_fp16:
            data.fp16_rows = Fp16Rows(data, shared.fp16_rows)
            replay(*data.fp16_rows.storing)
            self.scratch = data.fp16_rows.memory
            shared.fp16_rows = shared.fp16_rows or self.scratch
        else:
            data.use_frame(shared_frame(data))
        self.labels = torch.empty(len(X), dtype=torch.int32, device=data.device)
        self.recordings: dict[Hashable, Recording] = {}
        self.halving = self.halved = self.returns = False
        self.attach(None)

    @property
    def n_bytes(self) -> int:
        """What the rows take, as they travel."""
        data = self.data
        return data.n_samples * data.n_features * self.transfer_dtype.itemsize

    @property
    def n_bytes_fp16(self) -> int:
        """What their half-precision copy takes; there is none of few features."""
        fp16_rows = self.data.fp16_rows
        return 0 if fp16_rows is None else sum(part.nbytes for part in fp16_rows.memory)

    def keep_fp16_rows(self, keep: bool) -> None:
        """Keep the half-precision copy when it is made next, or release it."""
        fp16_rows = self.data.fp16_rows
        if fp16_rows is not None and self.halved and not keep:
            fp16_rows.memory = self.scratch
            self.halved = False
        self.halving = keep
        # They refer to memory of rows that may be released.
        self.recordings.clear()

    def attach(self, X: torch.Tensor | None) -> None:
        """Take the rows, or release them."""
        if X is None:
            self.data.detach()
            return
        self.data.X = rows = self.in_compute_dtype(X)
        self.returns = rows is X

    def in_compute_dtype(self, X: torch.Tensor) -> torch.Tensor:
        """Return rows as kernels read them: in half precision only if their centres are float32."""
        return X if WIDE[X.dtype] == self.data.wide else X.to(self.data.wide)

    # -- a run: all blocks have their sums and centres in the same memory ------------------------

    @property
    def run(self) -> Run:
        """The run that was started last."""
        assert self._run is not None, "A run begins with start."
        return self._run

    @property
    def used(self) -> torch.Tensor:
        """The centres of the last assignment, which all blocks have in common."""
        return self.run.memory.current

    def start(self, settings: RunSettings) -> None:
        self.labels.fill_(-1)
        self._run = self.shared.run_of(self.data, self.labels)

    def forget_run(self) -> None:
        """Release what the last run needed."""
        self._run = None

    def step(self, centers: NDArray) -> None:
        """Add to the sums of all blocks."""
        self._assign(updates=True)

    def conclude(self, centers: NDArray) -> None:
        self._assign(updates=False)

    def classify(self, centers: NDArray) -> None:
        self._assign(updates=False)

    def _assign(self, updates: bool) -> None:
        """Queue an assignment, perhaps the updates from sum to sum, and what is counted."""
        run, absent = self.run, None if self.halved else self.data.fp16_rows
        self.n_distances += self.data.n_samples * len(self.used)
        if absent is not None and self.halving:
            absent.memory = tuple(torch.empty_like(part) for part in self.scratch)
            self.halved = True

        def work() -> None:
            if absent is not None:
                absent.store()
            if updates:
                run.accumulate()
            else:
                run.assign()
            queue_tally(run.memory.run_state, self.shared.counts)

        # A run over few features records its own launches.
        if self.returns and self.data.kind is not LOW_DIM:
            self.record((self.data.X.data_ptr(), absent is None, updates), work)
        else:
            work()

    def record(self, key: Hashable, work: Callable[[], None]) -> None:
        """Queue work that in a run is always the same for a key."""
        self.recordings.setdefault(key, Recording()).do(lambda: [work], self.data.device)


def shared_frame(data: Dataset) -> NDArray[np.float64]:
    """Return a frame that all blocks can share: any of their rows is within 1 of the origin."""
    origin = data.frame()[:-1]
    reach = float((data.magnitudes().largest + np.abs(origin)).max())
    return np.append(origin, scale_of(reach, max_scale_exponent(data.dtype)))
