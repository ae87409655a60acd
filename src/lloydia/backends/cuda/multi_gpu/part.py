"""The GPU engine as one part of a larger data set."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from lloydia.backends.cuda.device_functions.run_state import ITERATION
from lloydia.backends.cuda.engine import CUDA
from lloydia.backends.cuda.rows.distances import own_distances
from lloydia.backends.cuda.rows.fixed_point_grid import FixedPointGrid, gather
from lloydia.backends.cuda.rows.totals import cost_limbs, largest_term
from lloydia.backends.cuda.runtime.launching import EXACT, next_power
from lloydia.backends.cuda.runtime.own_device import on_own_device
from lloydia.backends.cuda.runtime.recording import Recording
from lloydia.backends.cuda.seeding import oversampling, plusplus_kernels
from lloydia.backends.cuda.seeding.state import MAX_CANDIDATES
from lloydia.backends.cuda.update.all_reduce import COUNTS, queue_read_message
from lloydia.backends.cuda.update.means import queue_finish
from lloydia.backends.engine import UNLIMITED
from lloydia.backends.part import Step, Tally
from lloydia.exact import sums as exact

__all__ = ["CUDAPart"]


@on_own_device
class CUDAPart(CUDA):
    """Rows on a GPU; see :class:`lloydia.backends.part.Part`, whose results are on the host.

    With several GPUs of one host, iterations do not pass through the host: see
    :class:`lloydia.backends.cuda.multi_gpu.gpus.GPUs`.

    Attributes
    ----------
    message, total : int64 tensor of shape (n_limbs k (d + 1) + COUNTS,)
        The sums and counts of this part in an iteration, and those of all parts.
    values : ndarray of shape (m, d)
        The candidates evaluated last; those from number `evaluated_from` on are in `table`.
    """

    def all_sums(self) -> NDArray[np.int64]:
        return self.as_result(gather(self.X, FixedPointGrid.of(self, self.grid, self.weights))[0])

    def measure_to(self, mean: NDArray) -> float:
        none = torch.zeros(self.n_samples, dtype=torch.int32, device=self.device)
        self.D = own_distances(self, none, self._there(mean))
        return self.as_result(largest_term(self.D, self.weights)[0])

    def weight(self, grid: tuple[int, int]) -> NDArray[np.int64]:
        if self.weights is None:
            return self.n_samples * np.array(exact.total_limbs(np.ones(1), *grid))
        return self._total_limbs(self.weights, None, grid)

    def weights_of(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        if self.weights is None:
            return np.ones(len(rows))
        return self.weights[self._there(rows)].cpu().numpy()

    def tally(self) -> Tally:
        return Tally(self.n_distances, self.n_rechecked, self.algorithm)

    def as_result(self, found: torch.Tensor) -> Any:
        """Return a result on the host: a float, or an array."""
        return found.cpu().numpy() if found.ndim else float(found)

    def _there(self, array: NDArray) -> torch.Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device)

    # -- seeding -----------------------------------------------------------------------------

    def seed_start(self) -> float:
        super().seed_start()
        return self.as_result(self.largest[0])

    def _use(self, grid: tuple[int, int]) -> None:
        """Make kernels round to this grid, which they derive from the largest term."""
        self.bits = grid[0]
        self.largest.fill_(math.ldexp(0.5, grid[1]))

    def seed_total(self, grid: tuple[int, int]) -> int:
        self._use(grid)
        plusplus_kernels.sum_tiles[(len(self.totals),)](
            self.nearest, self.weights, self.largest, self.totals, self.n_samples, self.bits,
            num_warps=4, **EXACT,
        )  # fmt: skip
        return int(self.totals.sum())

    def seed_find(self, targets: NDArray[np.int64], grid: tuple[int, int]) -> NDArray[np.int64]:
        wanted, ends = self._there(targets), self.totals.cumsum(0)
        tile = torch.searchsorted(ends, wanted, right=True)
        first = (tile * plusplus_kernels.TILE.value)[:, None]
        rows = first + torch.arange(plusplus_kernels.TILE.value, device=self.device)
        # Past the end the running sum is above the target, so no row is skipped.
        rows = rows.clamp(max=self.n_samples - 1)
        weights = None if self.weights is None else self.weights[rows]
        terms = oversampling.integers(self.nearest[rows], weights, grid).to(torch.int64)
        running = (ends - self.totals)[tile][:, None] + terms.cumsum(1)
        return (first[:, 0] + (running <= wanted[:, None]).sum(1)).cpu().numpy()

    def seed_values(self, rows: NDArray[np.int64]) -> NDArray:
        return self.rows(rows)

    def _tabulate(self, values: NDArray) -> None:
        """Write values as the candidates of kernels; the table is filled by repeating them."""
        every = values[np.arange(next_power(len(values))) % len(values)]
        self.table = self._there(every.T.astype(np.float64))

    def seed_first(self, values: NDArray) -> float:
        self.nearest.fill_(math.inf)
        self._tabulate(values)
        self._accept_candidate(None)
        self.n_seeds = 1
        return self.as_result(self.largest[0])

    def seed_potentials_of(self, values: NDArray, grid: tuple[int, int]) -> NDArray[np.int64]:
        self._use(grid)
        self.values = values
        found = [
            self._compute_potentials_from(first) for first in range(0, len(values), MAX_CANDIDATES)
        ]
        return self.as_result(torch.cat(found))

    def _compute_potentials_from(self, first: int) -> torch.Tensor:
        """Evaluate the candidates from a number on, as many as one evaluation takes."""
        self.evaluated_from, some = first, self.values[first : first + MAX_CANDIDATES]
        self._tabulate(some)
        self._compute_table_potentials(
            torch.zeros(len(some), dtype=torch.int64, device=self.device)
        )
        return self.potentials

    def seed_accept(self, j: int) -> float:
        if self.evaluated_from != j - j % MAX_CANDIDATES:
            self._compute_potentials_from(j - j % MAX_CANDIDATES)
        # The candidate with the smallest potential is accepted.
        chosen = torch.ones_like(self.potentials)
        chosen[j % MAX_CANDIDATES] = 0
        self._accept_candidate(chosen)
        self.n_seeds += 1
        return self.as_result(self.largest[0])

    def seed_choose(
        self, key: int, factor: float, total: int, before: int, grid: tuple[int, int]
    ) -> NDArray[np.int64]:
        terms = oversampling.integers(self.nearest, self.weights, grid)
        return oversampling.chosen(terms, key, factor, total, before).cpu().numpy()

    def seed_extend_by(self, centers: NDArray) -> float:
        self._add_seeds(self._there(centers))
        return self.as_result(self.largest[0])

    # -- a run -------------------------------------------------------------------------------

    def start(
        self, centers: NDArray, algorithm: str, settles: bool = True, max_iter: int = UNLIMITED
    ) -> None:
        super().start(centers, algorithm, settles, max_iter)
        self.run.history[0] = self.run.current
        size = self.run.sums[0].numel() + COUNTS
        self.message, self.total = torch.empty((2, size), dtype=torch.int64, device=self.device)
        self.concluding = Recording()

    def contribute(self) -> None:
        """Queue an iteration up to the message."""
        self.run.contribute(self.message)

    def step(self, centers: NDArray, measure: bool) -> Step:
        run = self.run
        run.current.copy_(self._there(centers))
        self.used = run.current
        self.contribute()
        message = self.message.cpu().numpy()
        n_changed, n_rechecked = message[-COUNTS:].tolist()
        self.n_distances += self.n_samples * len(centers)
        self.n_rechecked += n_rechecked
        run.run_state.zero_()
        run.run_state[ITERATION.value] = 1
        sums = message[:-COUNTS].reshape(run.sums.shape[1:])
        return Step(n_changed, sums, self.measure() if measure else 0.0)

    def conclude(self, centers: NDArray) -> float:
        self.used = self.run.current
        self.used.copy_(self._there(centers))
        self.run.assign()
        self.n_distances += self.n_samples * len(centers)
        return self.measure()

    def measure(self) -> float:
        self.D = own_distances(self, self.run.labels, self.used)
        return self.as_result(largest_term(self.D, self.weights)[0])

    def cost(self, grid: tuple[int, int]) -> NDArray[np.int64]:
        limbs = self._total_limbs(self.D, self.weights, grid)
        del self.D
        return limbs

    def _total_limbs(
        self, D: torch.Tensor, weights: torch.Tensor | None, grid: tuple[int, int]
    ) -> NDArray[np.int64]:
        bits, exponent = grid
        scale = torch.full((1,), math.ldexp(0.5, exponent), dtype=D.dtype, device=self.device)
        return self.as_result(cost_limbs(D, weights, scale, bits=bits)[: exact.TOTAL_LIMBS])

    def labels_of(self, rows: NDArray[np.int64]) -> NDArray[np.int32]:
        return self.run.labels[self._there(rows)].cpu().numpy()

    def labels(self) -> Any:
        return super().labels().cpu().numpy()

    def distances(self, centers: NDArray) -> Any:
        return super().distances(centers).cpu().numpy()

    # -- in a run of several GPUs, which compute the same centres from the same sums ---------------

    def finish(self) -> None:
        """Queue the end of an iteration: centres from the sums of all parts."""
        self.concluding.do(self._conclude, self.device)

    def _conclude(self) -> None:
        queue_read_message(self.total, self.run.run_state)
        queue_finish(self.total_sums(), self.fixed_point_grid, self.run, batch_size=1)

    def total_sums(self) -> torch.Tensor:
        """Return the sums of all parts: int64 of shape (1, n_limbs, k, d + 1)."""
        return self.total[:-COUNTS].view(1, *self.run.sums.shape[1:])

    def return_to(self, iteration: int) -> None:
        """Make the state after an iteration current."""
        self.run.go_back(iteration)

    def finish_corrected(self, iteration: int, moved: NDArray[np.int64]) -> None:
        """Queue the end of an iteration again, with sums that are corrected by `moved`."""
        self.run.go_back(iteration - 1)
        queue_finish(
            self.total_sums() + self._there(moved), self.fixed_point_grid, self.run, batch_size=1
        )
        # No row changed, which must not stop the run here.
        self.run.run_state[0] = 0

    def look_back(self, iteration: int) -> None:
        """Measure rows to the centres that they were assigned to in an iteration."""
        self.used = self.run.before(iteration)
