"""Rows on a GPU as one part of a larger data set."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from lloydia.backends.cuda import run_setup
from lloydia.backends.cuda.dataset import Dataset, place_rows
from lloydia.backends.cuda.device_functions.run_state import ITERATION
from lloydia.backends.cuda.protocols import Run
from lloydia.backends.cuda.rows.distances import distances, own_distances
from lloydia.backends.cuda.rows.fixed_point_grid import FixedPointGrid, gather
from lloydia.backends.cuda.rows.totals import cost_limbs, largest_term
from lloydia.backends.cuda.runtime.own_device import on_own_device
from lloydia.backends.cuda.runtime.recording import Recording
from lloydia.backends.cuda.seeding import donors
from lloydia.backends.cuda.seeding.part_seeder import PartSeeder
from lloydia.backends.cuda.update.all_reduce import COUNTS, queue_read_message
from lloydia.backends.cuda.update.means import queue_finish
from lloydia.backends.engine import UNLIMITED
from lloydia.backends.part import Step, Tally
from lloydia.exact import sums as exact

__all__ = ["CUDAPart"]


@on_own_device
class CUDAPart:
    """Rows on a GPU; see :class:`lloydia.backends.part.Part`, whose answers are on the host.

    Beside GPUs of the same host nothing of an iteration needs to come to the host: see
    :mod:`lloydia.backends.cuda.multi_gpu.gpus`.

    Parameters
    ----------
    X : torch.Tensor or ndarray of shape (n, d)
    weights : ndarray of shape (n,), float64, or None
    device : str

    Attributes
    ----------
    data : Dataset
    run : Run
        The run that was started last.
    lag : int
        Iterations of it that may be in flight.
    used : torch.Tensor of shape (k, d)
        The centres that the labels belong to.
    D : torch.Tensor or None
        Each row's D, where it was measured for :meth:`cost`.
    rows_stay : bool
        Whether the rows stay here between questions.
    message, total : int64 tensor of shape (n_limbs k (d + 1) + COUNTS,)
        What this part adds to an iteration, and what all parts do together.
    """

    algorithm = "lloyd"
    rows_stay = True

    def __init__(self, X: Any, weights: NDArray | None, device: str) -> None:
        self._hold(place_rows(X, weights, device))

    def _hold(self, data: Dataset) -> None:
        """Begin with these rows."""
        self.data, self.device, self.name, self.dtype = data, data.device, data.name, data.dtype
        self.n_samples, self.n_features = data.n_samples, data.n_features
        self.n_distances = self.n_rechecked = self.lag = 0
        self.D: torch.Tensor | None = None
        self._seeder: PartSeeder | None = None
        self._run: Run | None = None

    def as_result(self, found: torch.Tensor) -> Any:
        """Return what a question is answered with, on the host: a float, or an array."""
        return found.cpu().numpy() if found.ndim else float(found)

    def _there(self, array: NDArray) -> torch.Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device)

    # -- the data ----------------------------------------------------------------------------

    def magnitudes(self) -> exact.Magnitudes:
        return self.data.magnitudes()

    def set_grid(self, magnitudes: exact.Magnitudes) -> None:
        self.data.set_grid(magnitudes)

    def all_sums(self) -> NDArray[np.int64]:
        data = self.data
        grid = FixedPointGrid.of(data, data.grid, data.weights)
        return self.as_result(gather(data.X, grid)[0])

    def measure_to(self, mean: NDArray) -> float:
        none = torch.zeros(self.n_samples, dtype=torch.int32, device=self.device)
        return self._measure_from(none, self._there(mean))

    def _measure_from(self, labels: torch.Tensor, centers: torch.Tensor) -> float:
        self.D = own_distances(self.data, labels, centers)
        return self.as_result(largest_term(self.D, self.data.weights)[0])

    def weight(self, grid: tuple[int, int]) -> NDArray[np.int64]:
        if self.data.weights is None:
            return self.n_samples * np.array(exact.total_limbs(np.ones(1), *grid))
        return self._total_limbs(self.data.weights, None, grid)

    def _total_limbs(
        self, D: torch.Tensor, weights: torch.Tensor | None, grid: tuple[int, int]
    ) -> NDArray[np.int64]:
        bits, exponent = grid
        scale = torch.full((1,), math.ldexp(0.5, exponent), dtype=D.dtype, device=self.device)
        return self.as_result(cost_limbs(D, weights, scale, bits=bits)[: exact.TOTAL_LIMBS])

    def rows(self, indices: NDArray[np.int64]) -> NDArray:
        return self.data.rows(indices)

    def weights_of(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        weights = self.data.weights
        return np.ones(len(rows)) if weights is None else weights[self._there(rows)].cpu().numpy()

    def tally(self) -> Tally:
        return Tally(self.n_distances, self.n_rechecked, self.algorithm)

    # -- seeding -----------------------------------------------------------------------------

    @property
    def seeder(self) -> PartSeeder:
        """The seeding that was started last."""
        assert self._seeder is not None, "A seeding begins with seed_start."
        return self._seeder

    def seed_weights(self) -> NDArray[np.float64] | None:
        return self.data.seed_weights()

    def positive_rows(self, count: int) -> NDArray[np.int64]:
        return self.data.positive_rows(count)

    def seed_start(self) -> float:
        self._seeder = None  # Its memory is for the next one.
        self._seeder = PartSeeder(self.data, self.rows_stay)
        return self.as_result(self.seeder.state.largest[0])

    def seed_total(self, grid: tuple[int, int]) -> int:
        return self.seeder.total(grid)

    def seed_find(self, targets: NDArray[np.int64], grid: tuple[int, int]) -> NDArray[np.int64]:
        return self.seeder.find(targets, grid)

    def seed_top(self) -> tuple[int, float]:
        return self.seeder.state.top()

    def seed_values(self, rows: NDArray[np.int64]) -> NDArray:
        return self.data.rows(rows)

    def seed_first(self, values: NDArray) -> float:
        return self.as_result(self.seeder.first(values))

    def seed_potentials_of(self, values: NDArray, grid: tuple[int, int]) -> NDArray[np.int64]:
        return self.as_result(self.seeder.evaluate(values, grid))

    def seed_accept(self, j: int) -> float:
        return self.as_result(self.seeder.accept(j))

    def seed_choose(
        self, key: int, factor: float, total: int, before: int, grid: tuple[int, int]
    ) -> NDArray[np.int64]:
        return self.seeder.choose(key, factor, total, before, grid)

    def seed_extend_by(self, centers: NDArray) -> float:
        return self.extend_by(self._there(centers))

    def extend_by(self, centers: torch.Tensor) -> float:
        """Make several rows, which are on the device, seeds."""
        return self.as_result(self.seeder.add_centers(centers))

    def seed_loads(self) -> NDArray[np.int64]:
        return self.seeder.loads()

    # -- a run -------------------------------------------------------------------------------

    @property
    def run(self) -> Run:
        """The run that was started last."""
        assert self._run is not None, "A run begins with start."
        return self._run

    def start(
        self,
        centers: NDArray,
        algorithm: str,
        empty_stops: bool = True,
        max_iter: int = UNLIMITED,
    ) -> None:
        self._begin(centers, empty_stops, max_iter)
        self.run.history[0] = self.run.current
        size = self.run.sums[0].numel() + COUNTS
        self.message = torch.empty(size, dtype=torch.int64, device=self.device)
        self.total = torch.empty_like(self.message)
        self.concluding = Recording()

    def _begin(self, centers: NDArray, empty_stops: bool = True, max_iter: int = UNLIMITED) -> None:
        """Make what a run needs, in the memory of the last one."""
        self._seeder = self._run = None
        # The grid is known: that of the total.
        request = run_setup.request_run(self.data, centers, empty_stops, max_iter)
        self._run, self.lag = run_setup.build(self.data, request)
        self.used = self.run.current

    def step(self, centers: NDArray, measure: bool) -> Step:
        run = self.run
        run.current.copy_(self._there(centers))
        self.used = run.current
        run.contribute(self.message)
        message = self.message.cpu().numpy()
        n_changed, n_rechecked = message[-COUNTS:].tolist()
        self.n_distances += self.n_samples * len(centers)
        self.n_rechecked += n_rechecked
        run.run_state.zero_()
        run.run_state[ITERATION.value] = 1
        sums = message[:-COUNTS].reshape(run.sums.shape[1:])
        return Step(n_changed, sums, self.measure() if measure else 0.0)

    def conclude(self, centers: NDArray) -> float:
        self.run.current.copy_(self._there(centers))
        self.assign()
        return self.measure()

    def assign(self) -> None:
        """Assign all rows to the current centres."""
        self.used = self.run.current
        self.run.assign()
        self.n_distances += self.n_samples * len(self.used)

    def measure(self) -> float:
        return self._measure_from(self.run.labels, self.used)

    def cost(self, grid: tuple[int, int]) -> NDArray[np.int64]:
        assert self.D is not None
        limbs = self._total_limbs(self.D, self.data.weights, grid)
        self.D = None
        return limbs

    def counts(self) -> NDArray[np.int64]:
        return donors.counts(self.run.labels, self.data.weights, len(self.run.current))

    def farthest(self, count: int) -> tuple[NDArray, NDArray, NDArray]:
        D = own_distances(self.data, self.run.labels, self.used)
        return donors.farthest(D, self.run.labels, self.data.weights, count)

    def labels_of(self, rows: NDArray[np.int64]) -> NDArray[np.int32]:
        return self.run.labels[self._there(rows)].cpu().numpy()

    def labels(self) -> NDArray[np.int32]:
        return self.run.labels.cpu().numpy()

    # -- without a run -----------------------------------------------------------------------

    def classify(self, centers: NDArray) -> None:
        self._begin(np.asarray(centers))
        self.assign()

    def distances(self, centers: NDArray) -> NDArray:
        return self.distances_there(centers).cpu().numpy()

    def distances_there(self, centers: NDArray) -> torch.Tensor:
        """Return the distances to all centres, on the GPU."""
        self.data.magnitudes()  # refuses NaN
        return distances(self.data, self._there(centers.astype(self.dtype)))

    # -- in a run of several GPUs, which compute the same centres from the same sums ---------------

    def contribute(self) -> None:
        """Queue an iteration up to the message."""
        self.run.contribute(self.message)

    def finish(self) -> None:
        """Queue the end of an iteration: centres from the sums of the whole."""
        self.concluding.do(self._conclude, self.device)

    def _conclude(self) -> None:
        queue_read_message(self.total, self.run.run_state)
        queue_finish(self.total_sums(), self.data.fixed_point_grid, self.run, batch_size=1)

    def total_sums(self) -> torch.Tensor:
        """Return the sums of all parts: int64 of shape (1, n_limbs, k, d + 1)."""
        return self.total[:-COUNTS].view(1, *self.run.sums.shape[1:])

    def return_to(self, iteration: int) -> None:
        """Make the state after an iteration current."""
        self.run.go_back(iteration)

    def finish_corrected(self, iteration: int, moved: NDArray[np.int64]) -> None:
        """Queue the end of an iteration again, with other sums; `moved` is by how much."""
        self.run.go_back(iteration - 1)
        sums = self.total_sums() + self._there(moved)
        queue_finish(sums, self.data.fixed_point_grid, self.run, batch_size=1)
        # No row changed: that is not the end this time.
        self.run.run_state[0] = 0

    def look_back(self, iteration: int) -> None:
        """Have rows measured to the centres that they were assigned to in an iteration."""
        self.used = self.run.before(iteration)
