"""The CPU engine as one part of a larger data set."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cpu.clusters import Clusters
from lloydia.backends.cpu.memory import RunMemory
from lloydia.backends.cpu.rows.dataset import NONE, Dataset
from lloydia.backends.cpu.run import Run
from lloydia.backends.cpu.seeding.seeder import Seeder
from lloydia.backends.part import Step, Tally
from lloydia.backends.run_settings import RunSettings
from lloydia.exact import sums

__all__ = ["CPUPart"]


class CPUPart:
    """Rows in this process's memory; see :class:`lloydia.backends.part.Part`.

    Parameters
    ----------
    X : ndarray of shape (n, d), or CSR matrix
    weights : ndarray of shape (n,), float64, or None
    n_threads : int or None
    memory : RunMemory, optional
        The arrays of labels and sums; by default nothing else uses them.
    """

    name = "cpu"

    def __init__(
        self,
        X: Any,
        weights: NDArray | None,
        n_threads: int | None,
        memory: RunMemory | None = None,
    ) -> None:
        self.dataset = Dataset(X, weights, n_threads)
        # The memory of bounds per centre is checked for all rows at once, and a part has only some
        # rows.
        self.run = Run(self.dataset, bounds_per_center=False, memory=memory)
        self.seeder = Seeder(self.dataset, self.run.nearest_of)
        self.n_samples, self.n_features = X.shape
        self.dtype = X.dtype

    # -- the data set ------------------------------------------------------------------------

    def attach(self, rows: NDArray | None) -> None:
        """Replace dense rows; None releases them until the same rows are attached again."""
        self.dataset.attach(rows)

    def magnitudes(self) -> sums.Magnitudes:
        return self.dataset.magnitudes()

    def set_grid(self, magnitudes: sums.Magnitudes) -> None:
        self.dataset.set_grid(magnitudes)

    def all_sums(self) -> NDArray[np.int64]:
        return Clusters.of_all_rows(self.dataset).integers()

    def integers(self) -> NDArray[np.int64]:
        """Return the sums of the clusters: shape (n_limbs, k, d + 1)."""
        return self.run.clusters.integers()

    def measure_to(self, mean: NDArray) -> float:
        return self.run.measure_to(mean)

    def weight(self, grid: tuple[int, int]) -> NDArray[np.int64]:
        if self.dataset.weights is NONE:
            return self.n_samples * np.array(sums.total_limbs(np.ones(1), *grid))
        return self.dataset.total_limbs(self.dataset.weights, NONE, grid)

    def rows(self, indices: NDArray[np.int64]) -> NDArray:
        return self.dataset.rows(indices)

    def weights_of(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        return self.dataset.weights_of(rows)

    def tally(self) -> Tally:
        return Tally(self.run.n_distances, self.run.n_rechecked, self.run.algorithm)

    def distances(self, centers: NDArray) -> NDArray:
        return self.dataset.distances(centers)

    # -- seeding -----------------------------------------------------------------------------

    def seed_weights(self) -> NDArray[np.float64] | None:
        return self.dataset.seed_weights()

    def positive_rows(self, count: int) -> NDArray[np.int64]:
        return self.dataset.positive_rows(count)

    def seed_start(self) -> float:
        return self.seeder.seed_start()

    def seed_total(self, grid: tuple[int, int]) -> int:
        return self.seeder.seed_total(grid)

    def seed_find(self, targets: NDArray[np.int64], grid: tuple[int, int]) -> NDArray[np.int64]:
        return self.seeder.seed_find(targets, grid)

    def seed_top(self) -> tuple[int, float]:
        return self.seeder.seed_top()

    def seed_values(self, rows: NDArray[np.int64]) -> Any:
        return self.seeder.seed_values(rows)

    def seed_first(self, values: Any) -> float:
        return self.seeder.seed_first(values)

    def seed_potentials_of(self, values: Any, grid: tuple[int, int]) -> NDArray[np.int64]:
        return self.seeder.seed_potentials_of(values, grid)

    def seed_accept(self, j: int) -> float:
        return self.seeder.seed_accept(j)

    def seed_choose(
        self, key: int, factor: float, total: int, before: int, grid: tuple[int, int]
    ) -> NDArray[np.int64]:
        return self.seeder.seed_choose(key, factor, total, before, grid)

    def seed_extend_by(self, centers: NDArray) -> float:
        return self.seeder.seed_extend_by(centers)

    def seed_loads(self) -> NDArray[np.int64]:
        return self.seeder.seed_loads()

    # -- a run -------------------------------------------------------------------------------

    def start(self, settings: RunSettings) -> None:
        self.seeder.forget()
        self.run.start(settings.centers, settings.algorithm, settings.max_iter)

    def step(self, centers: NDArray, measure: bool) -> Step:
        run = self.run
        run.current = centers
        run.assign_and_choose()
        # The caller adds up shared sums once, for all parts.
        shared = run.memory.shares_sums
        totals = np.zeros((), np.int64) if shared else self.integers()
        return Step(run.n_changed, totals, run.measure() if measure else 0.0)

    def conclude(self, centers: NDArray) -> float:
        self.run.current = centers
        self.run.assign()
        return self.run.measure()

    def measure(self) -> float:
        return self.run.measure()

    def cost(self, grid: tuple[int, int]) -> NDArray[np.int64]:
        return self.run.cost(grid)

    def counts(self) -> NDArray[np.int64]:
        return self.run.counts()

    def farthest(self, count: int) -> tuple[NDArray, NDArray, NDArray]:
        return self.run.farthest(count)

    def labels_of(self, rows: NDArray[np.int64]) -> NDArray[np.int32]:
        return self.run.assigned[rows]

    def labels(self) -> NDArray[np.int32]:
        return self.run.assigned

    def classify(self, centers: NDArray) -> None:
        self.run.classify(centers)
