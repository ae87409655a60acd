"""Rows on a GPU as one part of a larger data set."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from lloydia.backends.cuda.dataset import Dataset
from lloydia.backends.cuda.multi_gpu.own_run import OwnRun
from lloydia.backends.cuda.placement import place_rows
from lloydia.backends.cuda.protocols import Run
from lloydia.backends.cuda.rows.distances import distances, own_distances
from lloydia.backends.cuda.rows.fixed_point_grid import FixedPointGrid, gather
from lloydia.backends.cuda.rows.totals import cost_limbs, largest_term
from lloydia.backends.cuda.runtime.own_device import on, on_own_device
from lloydia.backends.cuda.seeding import donors
from lloydia.backends.cuda.seeding.part_seeder import PartSeeder
from lloydia.backends.part import Step, Tally
from lloydia.backends.run_settings import RunSettings
from lloydia.exact import sums as exact

__all__ = ["CUDAPart", "PartRun", "place_part"]


class PartRun(Protocol):
    """A run over the rows of a part, which is its own, or whose memory blocks share.

    Attributes
    ----------
    run : Run
        The run that was started last.
    used : torch.Tensor of shape (k, d)
        The centres that the labels belong to.
    n_distances, n_rechecked : int
        Of the assignments of all runs; see :class:`lloydia.backends.engine.Engine`.
    """

    n_distances: int
    n_rechecked: int

    @property
    def run(self) -> Run: ...
    @property
    def used(self) -> torch.Tensor: ...

    def start(self, settings: RunSettings) -> None:
        """Begin a run."""

    def step(self, centers: NDArray) -> Step | None:
        """Assign the rows to these centres and keep the sums; None where others have them."""

    def conclude(self, centers: NDArray) -> None:
        """Assign the rows to these centres, without sums."""

    def classify(self, centers: NDArray) -> None:
        """Assign the rows to these centres, without a run."""


R = TypeVar("R", bound=PartRun)


@on_own_device
class CUDAPart(Generic[R]):
    """Rows on a GPU; see :class:`lloydia.backends.part.Part`.

    Parameters
    ----------
    data : Dataset
    own_run : PartRun
    stays : bool
        Whether the rows stay on the GPU.  If not, they are sent for each question, and the answer
        is on the device, so that the host waits once for all blocks.

    Attributes
    ----------
    D : torch.Tensor or None
        Each row's D, where it was measured for :meth:`cost`.
    """

    algorithm = "lloyd"

    def __init__(self, data: Dataset, own_run: R, stays: bool = True) -> None:
        self.data, self.own_run, self.stays = data, own_run, stays
        self.device, self.name, self.dtype = data.device, data.name, data.dtype
        self.n_samples, self.n_features = data.n_samples, data.n_features
        self.D: torch.Tensor | None = None
        self._seeder: PartSeeder | None = None

    def as_result(self, found: torch.Tensor) -> Any:
        """Return what a question is answered with: a tensor, or on the host a float or an array."""
        if not self.stays:
            return found
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
        return Tally(self.own_run.n_distances, self.own_run.n_rechecked, self.algorithm)

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
        self._seeder = PartSeeder(self.data, self.stays)
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

    def seed_extend_by(self, centers: Any, at_once: int | None = None) -> float:
        """Make several rows, on the host or on the device, seeds: all at once, or so many."""
        if isinstance(centers, np.ndarray):
            centers = self._there(centers)
        if not self.stays and self.data.fp16_rows is not None and len(centers) > 1:
            self.data.fp16_rows.store()
        found = [self.seeder.add_centers(some) for some in centers.split(at_once or len(centers))]
        return self.as_result(found[-1])

    def seed_loads(self) -> NDArray[np.int64]:
        return self.seeder.loads()

    # -- a run -------------------------------------------------------------------------------

    def start(self, settings: RunSettings) -> None:
        self._seeder = None
        self.own_run.start(settings)

    def step(self, centers: NDArray, measure: bool) -> Any:
        """Return a Step; only the largest cost where blocks share their sums."""
        step = self.own_run.step(centers)
        largest = self.measure() if measure else 0.0
        return largest if step is None else replace(step, largest_cost=largest)

    def conclude(self, centers: NDArray) -> float:
        self.own_run.conclude(centers)
        return self.measure()

    def measure(self) -> float:
        return self._measure_from(self._labels(), self.own_run.used)

    def cost(self, grid: tuple[int, int]) -> NDArray[np.int64]:
        assert self.D is not None
        limbs = self._total_limbs(self.D, self.data.weights, grid)
        self.D = None
        return limbs

    def counts(self) -> NDArray[np.int64]:
        return donors.counts(self._labels(), self.data.weights, len(self.own_run.used))

    def farthest(self, count: int) -> tuple[NDArray, NDArray, NDArray]:
        D = own_distances(self.data, self._labels(), self.own_run.used)
        return donors.farthest(D, self._labels(), self.data.weights, count)

    def labels_of(self, rows: NDArray[np.int64]) -> NDArray[np.int32]:
        return self._labels()[self._there(rows)].cpu().numpy()

    def labels(self) -> NDArray[np.int32]:
        return self._labels().cpu().numpy()

    def _labels(self) -> torch.Tensor:
        return self.own_run.run.memory.labels

    # -- without a run -----------------------------------------------------------------------

    def classify(self, centers: NDArray) -> None:
        self._seeder = None
        self.own_run.classify(centers)

    def distances(self, centers: NDArray) -> NDArray:
        return self.distances_there(centers).cpu().numpy()

    def distances_there(self, centers: NDArray) -> torch.Tensor:
        """Return the distances to all centres, on the GPU."""
        self.data.magnitudes()  # refuses NaN
        return distances(self.data, self._there(centers.astype(self.dtype)))


def place_part(X: Any, weights: NDArray | None, device: str) -> CUDAPart[OwnRun]:
    """Put rows on a GPU, as a part with a run of its own.

    Parameters
    ----------
    X : torch.Tensor or ndarray of shape (n, d)
    weights : ndarray of shape (n,), float64, or None
    device : str
    """
    with on(device):
        data = place_rows(X, weights, device)
    return CUDAPart(data, OwnRun(data))
