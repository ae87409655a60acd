"""A block of rows on a GPU as a part, and what the blocks of a GPU share.

A block keeps only what belongs to its rows and is small: labels, weights, D to the nearest seed,
and the frame of its half-precision copy.  The copy is made again whenever the rows arrive: the
device writes it many times faster than the bus sends the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from lloydia.backends.cuda.device_functions.run_state import ITERATION
from lloydia.backends.cuda.low_dim.run import LowRun
from lloydia.backends.cuda.matmul.run import TensorRun
from lloydia.backends.cuda.matmul.scan import TensorScan
from lloydia.backends.cuda.multi_gpu.part import CUDAPart
from lloydia.backends.cuda.out_of_core.counted import COUNTED, queue_tally
from lloydia.backends.cuda.out_of_core.transfer_dtype import narrowest_dtype
from lloydia.backends.cuda.rows.fixed_point_grid import FixedPointGrid
from lloydia.backends.cuda.rows.fp16_rows import Fp16Rows
from lloydia.backends.cuda.rows.placed import WIDE
from lloydia.backends.cuda.runtime.recording import Recording
from lloydia.backends.engine import UNLIMITED
from lloydia.backends.part import Step
from lloydia.exact.certificate import max_scale_exponent, scale_of

__all__ = ["Block", "Shared"]


class Unrecorded:
    """A stand-in for Recording: the block records the work, with what precedes and follows it."""

    def do(self, work: Any, device: torch.device, layout: Any = None) -> None:
        """Queue the work."""
        work()


class Shared:
    """What the blocks of a device share.

    Attributes
    ----------
    fp16_rows : tuple of tensors, or None
        Memory for the half-precision copy of one block; the first block is the largest.
    run : LowRun or TensorRun
        The sums, the centres, and the memory that a block needs while it is computed.
    lanes : list of TensorRun
        That run and another one, for two blocks in progress; see :mod:`listed`.
    counts : int64 tensor of shape (COUNTED,)
        What the blocks of a pass have counted; see :mod:`counted`.
    known : bool
        Whether rows have labels, because there was an iteration.
    """

    run: LowRun | TensorRun
    fixed_point_grid: FixedPointGrid
    lanes: list[TensorRun]
    fp16_rows: tuple[torch.Tensor, ...] | None = None
    known = False

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.counts = torch.zeros(COUNTED, dtype=torch.int64, device=device)

    def forget_run(self) -> None:
        """Free the memory of the last run."""
        for name in ("run", "lanes"):
            self.__dict__.pop(name, None)

    def begin(self, first: Block, centers: NDArray, n_lanes: int) -> None:
        """Begin a run, for blocks no larger than the first; the last run is forgotten."""
        self.known = False
        self.fixed_point_grid = FixedPointGrid.of(first, first.grid, None)
        centers = np.array(centers, dtype=first.dtype, order="C")
        if first.low:
            self.run = LowRun(first, self.fixed_point_grid, centers, 1, False, stay=False)
        else:
            self.lanes = [TensorRun(first, centers, 0, False) for _ in range(n_lanes)]
            self.run = run = self.lanes[0]
            run.scanning = run.updating = Unrecorded()
            # Lanes, and copies of the run, share these.
            for lane in self.lanes:
                lane.current, lane.sums, lane.cluster_sums = run.current, run.sums, run.cluster_sums
                lane.scan = TensorScan(first, len(centers))

    def run_of(self, block: Block) -> LowRun | TensorRun:
        """Return the run of a block: a copy that shares all memory except rows and labels."""
        run = copy(self.run)
        run.rows, run.labels = block, block.assigned
        if block.weights is not None:
            by = torch.tensor(-block.grid.weight_exponent, device=self.device)
            block.scaled = torch.ldexp(block.weights, by)
        if isinstance(run, LowRun):
            run.fixed_point_grid = block.fixed_point_grid
        else:
            run.scan = copy(run.scan)
            run.scan.rows, run.scan.fp16_rows = block, block.fp16_rows
        return run

    def end_pass(self) -> NDArray[np.int64]:
        """Wait for what a pass has counted, and return it."""
        counts = self.counts.cpu().numpy().copy()
        self.counts.zero_()
        return counts

    def end_iteration(self, largest_cost: float) -> tuple[Step, int]:
        """Return the result of an iteration, and the number of rechecked rows."""
        self.known = True
        self.run.run_state[ITERATION.value] = 1
        sums = self.run.sums.sum(dim=0).cpu().numpy()
        counts = self.end_pass()
        return Step(int(counts[0]), sums, largest_cost), int(counts[-1])


class Block(CUDAPart):
    """The part whose rows come and go; its results stay on the device for all blocks.

    Parameters
    ----------
    X : torch.Tensor of shape (m, d)
        On the device, in the type of the data; it is measured, but not kept.
    weights : ndarray of shape (m,), float64, or None
    shared : Shared

    Attributes
    ----------
    transfer_dtype : torch.dtype
        The type in which the rows are sent and stored.
    assigned : int32 tensor of shape (m,)
        The labels.
    returns : bool
        Whether the rows are at an address where other blocks' rows were and will be, not converted.
    halving, halved : bool
        Whether the half-precision copy is to be kept when it is made next, and whether it was kept.
    scaled : float64 tensor of shape (m,), or None
        The weights on the grid of a run.
    recordings : dict of Recording
        The launches of a run, which are repeated.
    """

    halving = halved = False
    scaled: torch.Tensor | None = None

    def __init__(self, X: torch.Tensor, weights: NDArray | None, shared: Shared) -> None:
        self.shared, self.device = shared, shared.device
        self.name = f"cuda:{self.device.index or 0}"
        self._hold(X)
        if weights is not None:
            self.weights = torch.as_tensor(weights).to(self.device)
        self.magnitudes()
        self.transfer_dtype = narrowest_dtype(X)
        if self.low:
            self.frame()
        else:
            self.fp16_rows = Fp16Rows(self, shared.fp16_rows)
            self.scratch = self.fp16_rows.memory
            shared.fp16_rows = shared.fp16_rows or self.scratch
        self.assigned = torch.empty(len(X), dtype=torch.int32, device=self.device)
        self.recordings: dict[Hashable, Recording] = {}
        self.attach(None)

    @property
    def n_bytes(self) -> int:
        """The bytes of the rows, as they are sent."""
        return self.n_samples * self.n_features * self.transfer_dtype.itemsize

    @property
    def n_bytes_fp16(self) -> int:
        """The bytes of the half-precision copy; with few features there is none."""
        return 0 if self.fp16_rows is None else sum(part.nbytes for part in self.fp16_rows.memory)

    def keep_fp16_rows(self, keep: bool) -> None:
        """Keep the half-precision copy when it is made next, or release it."""
        if self.fp16_rows is not None and self.halved and not keep:
            self.fp16_rows.memory = self.scratch
            self.halved = False
        self.halving = keep
        # Recordings refer to the memory of rows, which may be released.
        self.recordings.clear()

    def attach(self, X: torch.Tensor | None) -> None:
        """Attach the rows, or detach them."""
        self.X = None if X is None else self.in_compute_dtype(X)
        self.returns = self.X is X
        self.columns = None if X is None else self.X.T

    def in_compute_dtype(self, X: torch.Tensor) -> torch.Tensor:
        """Return rows in a type that kernels take: float16 only if the centres are float32."""
        return X if WIDE[X.dtype] == self.wide else X.to(self.wide)

    def as_result(self, found: torch.Tensor) -> torch.Tensor:
        return found

    @property
    def fixed_point_grid(self) -> FixedPointGrid:
        """The grid on the device, with the weights of this block."""
        return replace(self.shared.fixed_point_grid, weights=self.scaled)

    def frame(self) -> NDArray[np.float64]:
        """Return a frame that all blocks share: each of their rows is within 1 of the origin."""
        origin = super().frame()[:-1]
        reach = float((self.magnitudes().largest + np.abs(origin)).max())
        return np.append(origin, scale_of(reach, max_scale_exponent(self.dtype)))

    def _columns(self) -> None:
        """Return nothing: the columns come with the rows."""

    # -- a run: results of all blocks are added up in shared memory of the device ----------------

    def start(
        self, centers: NDArray, algorithm: str, settles: bool = True, max_iter: int = UNLIMITED
    ) -> None:
        self.forget_seeds()
        self.k = len(centers)
        self.assigned.fill_(-1)
        self.run = self.shared.run_of(self)
        self.used = self.run.current

    def step(self, centers: NDArray, measure: bool) -> Any:
        """Add to the sums of all blocks; return the largest weight times D, 0 if not measured."""
        self._assign(updates=True)
        return self.measure() if measure else 0.0

    def conclude(self, centers: NDArray) -> Any:
        self.classify(centers)
        return self.measure()

    def classify(self, centers: NDArray) -> None:
        self._assign(updates=False)

    def _assign(self, updates: bool) -> None:
        """Queue an assignment, with `updates` the update of the sums, and the counts."""
        self.n_distances += self.n_samples * self.k
        run, absent = self.run, None if self.halved else self.fp16_rows
        if isinstance(run, LowRun):
            if updates:
                run.queue(-1, assigns=False, inertia=False)
            else:
                run.assign()
            queue_tally(run.run_state, self.shared.counts)
            return
        if absent is not None and self.halving:
            absent.memory = tuple(torch.empty_like(part) for part in self.scratch)
            self.halved = True

        def work() -> None:
            if absent is not None:
                absent.store()
            run.assign()
            if updates:
                run.move()
            queue_tally(run.run_state, self.shared.counts)

        if self.returns:
            self.record((self.X.data_ptr(), absent is None, updates), work)
        else:
            work()

    def record(self, key: Hashable, work: Callable[[], None]) -> None:
        """Queue work that is the same for a key throughout a run."""
        self.recordings.setdefault(key, Recording()).do(work, self.device)
