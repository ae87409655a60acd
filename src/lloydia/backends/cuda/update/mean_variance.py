"""The mean of the features' weighted variances, and the limit that the stop rule derives from it.

scikit-learn's rule ends a run where the sum of the centres' squared movements is at most `tol`
times that mean.  A device that has the limit stops by itself where the comparison is certain:
iterations that are queued beyond change nothing and take no time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from itertools import accumulate

import numpy as np
import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.device_functions.exact_numbers import power_of_two
from lloydia.backends.cuda.device_functions.iteration_report import HEAD
from lloydia.backends.cuda.device_functions.run_state import SIZE
from lloydia.backends.cuda.protocols import DataSetRows, WholeRows
from lloydia.backends.cuda.rows.distances import own_distances
from lloydia.backends.cuda.rows.fixed_point_grid import FixedPointGrid, queue_gather
from lloydia.backends.cuda.rows.low_cost import COST, queue_low_cost
from lloydia.backends.cuda.rows.totals import cost_limbs, join_cost, largest_term, scaled
from lloydia.backends.cuda.run_kinds import run_kind
from lloydia.backends.cuda.runtime.async_copy import AsyncCopy
from lloydia.backends.cuda.runtime.launching import EXACT, launch
from lloydia.backends.cuda.runtime.relocation import Stages
from lloydia.backends.cuda.update.means import queue_finish
from lloydia.exact import sums as exact

__all__ = ["TOTAL", "MeanVariance", "room_for"]

# The limbs of a sum, and their exponent.
TOTAL = 4


@triton.jit(do_not_specialize=["bits", "tol", "count"])
def limit_kernel(found, bits, tol, count, limit):
    """Write `tol` times a sum over `count`, up to a few roundings.

    `tol` and `count` are passed as the bits of float64 numbers, since Triton would pass float32.
    """
    factor = tol.to(tl.int64).to(tl.float64, bitcast=True)
    divisor = count.to(tl.int64).to(tl.float64, bitcast=True)
    small = power_of_two(-bits.to(tl.int64))
    total = tl.load(found + 2).to(tl.float64) * small
    total = (total + tl.load(found + 1).to(tl.float64)) * small
    total = (total + tl.load(found).to(tl.float64)) * small
    total = scaled(total, tl.load(found + 3).to(tl.int32))
    tl.store(limit, total / divisor * factor)


@lru_cache
def edges(d: int, n_limbs: int) -> tuple[int, ...]:
    """Return the offset of each part, in 64-bit integers, aligned for vectors; and the end."""
    wanted = COST + 1, 2 * (HEAD.value + 1), SIZE // 2, 1, d, 2 * d, n_limbs * (d + 1)
    return tuple(accumulate((size + size % 2 for size in wanted), initial=0))


def room_for(d: int, n_limbs: int) -> int:
    """Return how many 64-bit integers hold the mean variance of d features with n limbs."""
    return edges(d, n_limbs)[-1]


class MeanVariance:
    """The mean variance: the inertia of all rows as one cluster, over d times their weight.

    Parameters
    ----------
    rows : DataSetRows
    fixed_point_grid : FixedPointGrid
        The grid of the rows, which is on the device by the time that this is queued.
    tol : float
    bounds : int64 tensor of shape (2 d + 1,), optional
        If the grid has room for more limbs than the sums have, the last element is their number.
    memory : int64 tensor of :func:`room_for` zeros, optional

    Attributes
    ----------
    limit : float64 (1,)
        `tol` times the mean variance.
    limbs : list of int
        The limbs of the inertia, and their exponent, once they are on the host.
    """

    # Empty clusters do not stop the update of this one cluster.
    empty_stops = 0

    def __init__(
        self,
        rows: DataSetRows,
        fixed_point_grid: FixedPointGrid,
        tol: float,
        bounds: torch.Tensor | None = None,
        memory: torch.Tensor | None = None,
    ) -> None:
        self.n, self.d, self.weights = rows.n_samples, rows.n_features, rows.weights
        self.divisor = rows.total_weight * rows.n_features
        self.wide, self.n_limbs, self.bounds = rows.wide, fixed_point_grid.grid.n_limbs, bounds
        # A run that passes memory reads it back with its own.
        self.own_memory = memory is None
        if memory is None:
            size = room_for(self.d, self.n_limbs)
            memory = torch.zeros(size, dtype=torch.int64, device=rows.device)
        self.memory = memory
        self.fixed_point_grid: FixedPointGrid | None = fixed_point_grid
        self.tol, self.D = tol, None
        self.queued = False
        self.coming: AsyncCopy | None = None
        self.limbs: list[int] = []

    def part_with(self) -> None:
        """Copy what is in memory that belongs to a run."""
        if not self.own_memory:
            self.memory, self.own_memory = self.memory.clone(), True

    def aim(self, tol: float) -> None:
        """Queue the limit for another `tol`."""
        if tol != self.tol:
            self.tol = tol
            self._queue_limit(exact.bits_a_limb(self.n))

    def _part(self, i: int) -> torch.Tensor:
        begin, end = edges(self.d, self.n_limbs)[i : i + 2]
        return self.memory[begin:end]

    # The attributes that :func:`lloydia.backends.cuda.update.means.queue_finish` needs of a run.

    @property
    def report(self) -> torch.Tensor:
        return self._part(1).view(2, -1)

    @property
    def run_state(self) -> torch.Tensor:
        return self._part(2).view(torch.int32)

    @property
    def current(self) -> torch.Tensor:
        return self._part(4).view(self.wide)[: self.d].view(1, self.d)

    @property
    def history(self) -> torch.Tensor:
        return self._part(5).view(self.wide)[: 2 * self.d].view(2, 1, self.d)

    @property
    def found(self) -> torch.Tensor:
        return self._part(0)

    @property
    def limit(self) -> torch.Tensor:
        return self._part(3)[:1].view(torch.float64)

    @property
    def key(self) -> tuple:
        """What its launches depend on, besides memory and rows."""
        if self.fixed_point_grid is None:
            return ()
        return *self.fixed_point_grid.key, self.bounds is None, self.tol, self.divisor

    @property
    def buffers(self) -> list[torch.Tensor]:
        """All memory that its launches use."""
        # With float32 scores D of each row needs no memory.
        if not self.queued and self.D is None and run_kind(self.d).stores_fp16:
            self.D = self.memory.new_empty(self.n, dtype=torch.float64)
        given = [] if self.fixed_point_grid is None else self.fixed_point_grid.buffers
        more = self.D, self.bounds, self.weights
        return [self.memory, *given, *(x for x in more if x is not None)]

    def stages(self, rows: WholeRows) -> Stages:
        """Return what queues the mean variance and the limit."""
        assert self.fixed_point_grid is not None
        found, bits = self.found, self.fixed_point_grid.grid.bits
        size = self.n_limbs * (self.d + 1)
        sums = self._part(6)[:size].view(1, self.n_limbs, 1, self.d + 1)
        out: list[Callable[[], object]] = [
            partial(queue_gather, rows.X, self.fixed_point_grid, sums, self.bounds),
            partial(queue_finish, sums, self.fixed_point_grid, self, batch_size=1),
        ]
        if self.D is None:
            out.append(partial(queue_low_cost, rows.X, None, self.current, self.weights, found))
        else:
            largest = found[TOTAL : TOTAL + 1].view(torch.float64)
            out += [
                partial(own_distances, rows, None, self.current, out=self.D),
                partial(largest_term, self.D, self.weights, largest),
                partial(cost_limbs, self.D, self.weights, largest, found[:TOTAL]),
            ]
        return [*out, partial(self._queue_limit, bits)]

    def _queue_limit(self, bits: int) -> None:
        tol, count = np.array([self.tol, self.divisor], dtype=np.float64).view(np.int64).tolist()
        launch(
            limit_kernel, (1,), self.found, bits, tol, count, self.limit, num_warps=1, **EXACT
        )  # fmt: skip

    def done(self) -> None:
        """Note that it is queued, and release what was needed for that."""
        if self.own_memory and not self.queued:
            self.coming = AsyncCopy(self.found)
        self.queued, self.D, self.bounds, self.fixed_point_grid = True, None, None, None

    def __float__(self) -> float:
        if not self.limbs:
            found = self.found if self.coming is None else self.coming.numpy()
            self.limbs = found[:TOTAL].tolist()
        return join_cost(self.limbs, self.n) / self.divisor
