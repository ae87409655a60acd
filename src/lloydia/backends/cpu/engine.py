"""The CPU engine: a data set, a run on it, and a seeder."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cpu.rows.dataset import Dataset
from lloydia.backends.cpu.run import Run
from lloydia.backends.cpu.seeding.seeder import Seeder
from lloydia.backends.engine import Engine
from lloydia.backends.reports import DoneReport, Report
from lloydia.backends.run_settings import RunSettings
from lloydia.backends.seeded import Seeded
from lloydia.exact import sums

__all__ = ["CPU"]


class CPU(Seeded, Engine):
    """The engine for NumPy arrays and CSR matrices; see :class:`lloydia.backends.engine.Engine`.

    Parameters
    ----------
    X : ndarray of shape (n, d), or CSR matrix
    weights : ndarray of shape (n,), float64, or None
    n_threads : int or None
    spare : float
        Bytes per row that ``"auto"`` may take for bounds of groups of centres or of single centres,
        and that a seeding may take for sketches of the rows.
    """

    name = "cpu"
    seeder: Seeder

    def __init__(
        self, X: Any, weights: NDArray | None, n_threads: int | None, spare: float = np.inf
    ) -> None:
        self.dataset = Dataset(X, weights, n_threads)
        self.run = Run(self.dataset, spare)
        self.seeder = Seeder(self.dataset, self.run.nearest_of, spare)
        self.n_samples, self.n_features = X.shape
        self.dtype = X.dtype

    @property
    def is_compiled(self) -> bool:
        """Whether kernels of whole fits were compiled, in this process or an earlier one."""
        return all(part.is_compiled for part in (self.dataset, self.seeder, self.run))

    # -- the data set ------------------------------------------------------------------------

    def magnitudes(self) -> sums.Magnitudes:
        return self.dataset.magnitudes()

    def set_grid(self, magnitudes: sums.Magnitudes) -> None:
        self.dataset.set_grid(magnitudes)

    def rows(self, indices: NDArray[np.int64]) -> NDArray:
        return self.dataset.rows(indices)

    def seed_weights(self) -> NDArray[np.float64] | None:
        return self.dataset.seed_weights()

    def positive_rows(self, count: int) -> NDArray[np.int64]:
        return self.dataset.positive_rows(count)

    def distances(self, centers: NDArray) -> NDArray:
        return self.dataset.distances(centers)

    def subset(self, rows: NDArray[np.int64], weights: NDArray[np.float64]) -> CPU:
        return CPU(self.dataset.source[rows], weights, self.dataset.n_threads)

    # -- a run -------------------------------------------------------------------------------

    algorithm = property(lambda self: self.run.algorithm)
    n_distances = property(lambda self: self.run.n_distances)
    n_rechecked = property(lambda self: self.run.n_rechecked)

    def start_run(self, settings: RunSettings) -> None:
        self.seeder.forget()
        self.run.start(settings.centers, settings.algorithm, settings.max_iter)

    def iterate(self, inertia: bool) -> DoneReport:
        return DoneReport(self.run.iterate(inertia))

    def rewind(self, iteration: int) -> None:
        """Do nothing: no iteration is queued before the previous report is read."""

    def empty_clusters(self) -> NDArray[np.int64]:
        return self.run.empty_clusters()

    def farthest(self, count: int) -> tuple[NDArray, NDArray, NDArray]:
        return self.run.farthest(count)

    def counts(self) -> NDArray[np.int64]:
        return self.run.counts()

    def relocate(self, rows: NDArray[np.int64], clusters: NDArray[np.int64]) -> Report:
        return self.run.relocate(rows, clusters)

    def assign(self) -> None:
        self.run.assign()

    def mean_variance(self) -> float:
        return self.run.mean_variance()

    def inertia(self) -> float:
        return self.run.inertia()

    def labels(self) -> NDArray[np.int32]:
        return self.run.assigned

    def centers(self) -> NDArray:
        return self.run.current

    def classify(self, centers: NDArray) -> None:
        self.run.classify(centers)
