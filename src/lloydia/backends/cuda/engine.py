"""The engine: what the loop asks, queued as kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from lloydia.backends import Report
from lloydia.backends.cuda import low_scan
from lloydia.backends.cuda.launching import EXACT, ceil_div, next_power, processors
from lloydia.backends.cuda.means import CHANGED, EMPTY, HEAD, MOVE, RECHECKED, finish_kernel
from lloydia.backends.cuda.picks import Picks
from lloydia.backends.cuda.run import Run
from lloydia.backends.cuda.sums import Lattice, gather
from lloydia.exact import distance
from lloydia.exact import sums as exact

__all__ = ["CUDA"]


@dataclass(frozen=True)
class Queued:
    """The report of an iteration that was queued."""

    engine: CUDA
    iteration: int
    inertia: float | None

    def result(self) -> Report:
        """Wait for it."""
        return self.engine.report(self.iteration, self.inertia)


class CUDA(Picks):
    """The engine for rows on a GPU; see :class:`lloydia.backends.Engine`.

    Parameters
    ----------
    X : torch.Tensor or ndarray of shape (n, d)
    weights : ndarray of shape (n,), float64, or None
    device : str
    """

    algorithm = "lloyd"

    def __init__(self, X: Any, weights: NDArray | None, device: str) -> None:
        super().__init__(X, weights, device)
        self.n_distances = self.n_rechecked = 0
        self.low = self.n_features <= low_scan.MOST_FEATURES
        self.lag = 8
        self._lattice: Lattice | None = None
        self.totals_grid: tuple[int, int] | None = None

    @property
    def lattice(self) -> Lattice:
        """The grid on the device."""
        if self._lattice is None or self._lattice.grid is not self.grid:
            self._lattice = Lattice.of(self.grid, self.weights, self.device)
        return self._lattice

    def spread(self) -> float:
        grid = exact.Grid.choose(self.extent().unweighted(), self.dtype)
        totals = gather(self.X, Lattice.of(grid, None, self.device))[0].cpu().numpy()
        mean = torch.from_numpy(exact.means(totals, grid, self.dtype)).to(self.device)
        none = torch.zeros(self.n_samples, dtype=torch.int32, device=self.device)
        return self.total_cost(none, mean, None) / (self.n_samples * self.n_features)

    # -- a run -------------------------------------------------------------------------------

    def start(self, centers: NDArray, algorithm: str, settles: bool = True) -> None:
        self.run = Run(self, self.lattice, centers.astype(self.dtype), self.lag + 4, settles)
        # Iterations queued by the loop, and those of them that the device was told of.
        self.queued = self.launched = 0
        self.told = self.run.report.cpu()
        self.used = self.run.current

    def iterate(self, inertia: bool) -> Queued:
        self.queued += 1
        cost = None
        if inertia:
            self._launch()
            cost = self.total_cost(self.run.labels, self._before(self.queued), self.weights)
        return Queued(self, self.queued, cost)

    def _before(self, iteration: int) -> torch.Tensor:
        """Return the centres that rows were assigned to in an iteration."""
        return self.run.history[self.run.slot(iteration - 1)]

    def _launch(self) -> None:
        """Queue on the device what the loop has queued here."""
        low_scan.iterate(self.run, self.queued - self.launched)
        self.launched = self.queued
        self.told = self.run.report.cpu()

    def report(self, iteration: int, inertia: float | None) -> Report:
        """Return the report of an iteration, launched if need be."""
        if iteration > self.launched:
            self._launch()
        told = self.told[self.run.slot(iteration)].numpy()
        self.n_distances += self.n_samples * len(self.run.current)
        self.n_rechecked += int(told[RECHECKED.value])
        return Report(
            iteration,
            self.n_samples,
            int(told[CHANGED.value]),
            int(told[EMPTY.value]),
            distance.in_order(told[HEAD.value :].view(np.float64)),
            float(told[MOVE.value : MOVE.value + 1].view(np.float64)[0]),
            inertia,
        )

    def rewind(self, iteration: int) -> None:
        if self.launched == iteration == self.queued:
            self.used = self._before(iteration)
            return
        self.queued = self.launched = iteration
        self.run.go_back(iteration)
        self.used = self._before(iteration)

    def empty_clusters(self) -> NDArray[np.int64]:
        weights = self.run.sums.sum(dim=0)[:, :, -1]
        return np.flatnonzero((weights == 0).all(dim=0).cpu().numpy())

    def relocate(self, rows: NDArray[np.int64], clusters: NDArray[np.int64]) -> Report:
        run, iteration = self.run, self.launched
        totals = run.sums.sum(dim=0, keepdim=True)
        weights = None if self.weights is None else self.weights.cpu().numpy()[rows]
        limbs = torch.from_numpy(exact.limbs(self.rows(rows), weights, self.grid)).to(self.device)
        old = run.labels[torch.from_numpy(rows).to(self.device)].tolist()
        for i, cluster in enumerate(clusters.tolist()):
            totals[0, :, cluster] += limbs[:, i]
            totals[0, :, old[i]] -= limbs[:, i]
        run.go_back(iteration - 1)
        self._finish(totals)
        run.flow[0] = 0
        self.told = run.report.cpu()
        return self.report(iteration, None)

    def _finish(self, sums: torch.Tensor) -> None:
        """Queue the end of an iteration: centres from these sums."""
        run, grid = self.run, self.grid
        n_replicas, n_limbs, k, m = sums.shape
        columns = min(128, next_power(m))
        rows = max(1, 512 // columns)
        finish_kernel[(min(ceil_div(k, rows), 4 * processors(self.device)),)](
            sums, n_limbs * k * m, n_replicas, n_limbs, grid.bits, self.lattice.exponents,
            k, m - 1, run.current, run.history, len(run.history), run.report, run.flow,
            run.settles, BLOCK_K=rows, BLOCK_D=columns, **EXACT,
        )  # fmt: skip

    def assign(self) -> None:
        self.used = self.run.current
        low_scan.iterate(self.run, 0)
        self.n_distances += self.n_samples * len(self.run.current)

    def inertia(self) -> float:
        return self.total_cost(self.run.labels, self.used, self.weights)

    def total_cost(
        self, labels: torch.Tensor, centers: torch.Tensor, weights: torch.Tensor | None
    ) -> float:
        """Return the weighted sum of D to the centres of these labels."""
        raise NotImplementedError

    def labels(self) -> NDArray[np.int32]:
        return self.run.labels.cpu().numpy()

    def centers(self) -> NDArray:
        return self.run.current.cpu().numpy()

    # -- without a run -----------------------------------------------------------------------

    def classify(self, centers: NDArray) -> None:
        self.start(centers, "lloyd")
        self.assign()
