"""The engine: what the loop asks, queued as kernels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, SupportsFloat

import numpy as np
import torch
from numpy.typing import NDArray

from lloydia.backends import UNLIMITED, Report
from lloydia.backends.cuda import donors, low_scan
from lloydia.backends.cuda.devices import check_memory, row_bytes
from lloydia.backends.cuda.distances import distances, own_distances
from lloydia.backends.cuda.flow import MOST_FEATURES
from lloydia.backends.cuda.halves import padded
from lloydia.backends.cuda.low_cost import low_cost
from lloydia.backends.cuda.means import queue_finish
from lloydia.backends.cuda.moves import Moves
from lloydia.backends.cuda.own_device import on_own_device
from lloydia.backends.cuda.picks import Picks
from lloydia.backends.cuda.recording import Recording
from lloydia.backends.cuda.reports import Reports
from lloydia.backends.cuda.run import SPARE, Run
from lloydia.backends.cuda.sums import Lattice, gather
from lloydia.backends.cuda.tensor_scan import TensorScan
from lloydia.backends.cuda.totals import Cost, cost_limbs, largest_term
from lloydia.exact import sums as exact

__all__ = ["CUDA"]


@dataclass(frozen=True)
class Queued:
    """The report of an iteration that was queued."""

    engine: CUDA
    iteration: int
    inertia: SupportsFloat | None

    def begin(self) -> None:
        """Queue it on the device, with all that was queued here."""
        self.engine.launch(self.iteration)

    def result(self) -> Report:
        """Wait for it."""
        return self.engine.report(self.iteration, self.inertia)


@on_own_device
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
        # What the data hold is asked at once: NaN is refused before anything else.
        self.set_grid(self.extent())
        self.low = self.n_features <= MOST_FEATURES
        self.lag = 0
        self._lattice: Lattice | None = None
        self.renewed = False
        self.fixed: tuple | None = None

    def lag_of(self, k: int) -> int:
        """Return how many iterations of k clusters to have in flight.

        Many where they are short, since then the host is what they wait for; what is queued past
        the end is lost.
        """
        n, d = self.n_samples, self.n_features
        if self.low:
            microseconds = 4.0 + n * (4 * d + 8) / 3e6 + n * k * (d + 6) / 1e7
        else:
            microseconds = 50.0 + n * d / 5e5 + n * k * d / 2e8
        return max(1, min(15, int(2000.0 / microseconds)))

    @property
    def lattice(self) -> Lattice:
        """The grid on the device."""
        if self._lattice is None or self._lattice.grid is not self.grid:
            self._lattice = Lattice.of(self, self.grid, self.weights)
        return self._lattice

    def spread(self) -> float:
        grid = exact.Grid.choose(self.extent().unweighted(), self.dtype)
        totals = gather(self.X, Lattice.of(self, grid, None))[0].cpu().numpy()
        mean = torch.from_numpy(exact.means(totals, grid, self.dtype)).to(self.device)
        none = torch.zeros(self.n_samples, dtype=torch.int32, device=self.device)
        return float(self.total_cost(none, mean, None)) / (self.n_samples * self.n_features)

    # -- a run -------------------------------------------------------------------------------

    def start(
        self, centers: NDArray, algorithm: str, settles: bool = True, max_iter: int = UNLIMITED
    ) -> None:
        self.forget_seeds()
        k = len(centers)
        if self.renewed and self.fixed == self._fixed(k, settles):
            self.run.begin_again(centers)
        else:
            self._build(centers, settles)
        self.renewed = False
        self.used = self.run.current
        # Iterations queued by the loop, and those that the device was told of.
        self.queued = self.launched = 0

    def _build(self, centers: NDArray, settles: bool) -> None:
        """Make what a run needs."""
        self.forget_run()
        k = len(centers)
        self.lag = self.lag_of(k)
        check_memory(self.needed(k), self.device)
        self.scan = None
        if not self.low:
            self.scan = TensorScan(self, k)
            self.moves = Moves(self.n_samples, k, self.device)
            self.scanning, self.updating = Recording(), Recording()
        self.run = Run(self, self.lattice, centers.astype(self.dtype), self.lag + 4, settles)
        self.reports = Reports(self.run.report)
        self.fixed = self._fixed(k, settles)

    def _fixed(self, k: int, settles: bool) -> tuple:
        """Return what is part of a recording, beside addresses and the shape of the rows."""
        return k, settles, self.grid.bits, self.grid.n_limbs, self.grid.recover

    def renew(self, X: torch.Tensor) -> None:
        """Copy other rows, of the same shape and type, over those that are here; none is weighted.

        The next run may use the memory of the last one and what it recorded: what
        :meth:`labels` and :meth:`centers` returned is overwritten then.
        """
        self.X.copy_(X)
        self._extent = None
        self.set_grid(self.extent())
        if self._lattice is not None:
            self._lattice = self._lattice.renewed(self, self.grid)
        if self.halves is not None:
            self.halves.renew()
        self.renewed = True

    def forget_run(self) -> None:
        """Give back what the last run needed, but for what :meth:`labels` and others returned."""
        for name in ("run", "used", "scan", "moves", "scanning", "updating", "reports"):
            self.__dict__.pop(name, None)

    def needed(self, k: int) -> int:
        """Return the bytes that a run of k clusters takes, beside the rows."""
        n, d = self.n_samples, self.n_features
        width = padded(d) if self.halves is None else 0
        n_limbs = self.lattice.grid.n_limbs
        center = (self.lag + 5) * self.dtype.itemsize
        if self.low:
            center += 8 * n_limbs * self.lattice.replicas(n, k)
        else:
            center += 8 * n_limbs + 4 + self.dtype.itemsize
        spare = 12 * SPARE if self.low else 0
        return n * row_bytes(d, width) + k * (d + 1) * center + spare

    def iterate(self, inertia: bool) -> Queued:
        self.queued += 1
        cost = None
        if inertia or not self.low:
            self.launch(self.queued)
        if inertia:
            cost = self.total_cost(self.run.labels, self._before(self.queued), self.weights)
        return Queued(self, self.queued, cost)

    def _before(self, iteration: int) -> torch.Tensor:
        """Return the centres that rows were assigned to in an iteration."""
        return self.run.history[self.run.slot(iteration - 1)]

    def launch(self, iteration: int) -> None:
        """Queue on the device what the loop has queued here, unless it has this iteration."""
        if iteration <= self.launched:
            return
        first, self.launched = self.launched + 1, self.queued
        count = self.queued - first + 1
        if self.low:
            low_scan.iterate(self.run, count)
        else:
            for _ in range(count):
                self.scanning.do(self._scan, self.device)
                self.updating.do(self._update, self.device)
        self.reports.ask(first, self.queued)

    def _scan(self) -> None:
        """Queue an assignment; rows that change are listed."""
        run = self.run
        assert self.scan is not None
        self.scan.scan(run.current, run.labels, run.changed_rows, run.changed_old, run.flow)

    def _update(self) -> None:
        """Queue what follows it: sums and centres."""
        run = self.run
        self.moves.add(
            self.X, self.lattice, run.labels, run.changed_rows, run.changed_old, run.flow, run.sums
        )
        self._finish(run.sums)

    def report(self, iteration: int, inertia: SupportsFloat | None) -> Report:
        """Return the report of an iteration, launched if need be."""
        self.launch(iteration)
        told = self.reports.answer(iteration)
        self.n_distances += self.n_samples * len(self.run.current)
        self.n_rechecked += told.rechecked
        cost = None if inertia is None else float(inertia)
        return Report(
            iteration, self.n_samples, told.changed, told.empty, told.shift, told.move, cost
        )

    def rewind(self, iteration: int) -> None:
        told = self.reports.answer(iteration)
        if told.empty or not self.launched == iteration == self.queued:
            self.queued = self.launched = iteration
            # Where nothing changed the device stopped, and no more is asked of this run.
            if told.changed or told.empty:
                self.run.go_back(iteration)
        self.used = self._before(iteration)

    def empty_clusters(self) -> NDArray[np.int64]:
        weights = self.run.sums.sum(dim=0)[:, :, -1]
        return np.flatnonzero((weights == 0).all(dim=0).cpu().numpy())

    def relocate(self, rows: NDArray[np.int64], clusters: NDArray[np.int64]) -> Report:
        run, iteration = self.run, self.launched
        changed = self.reports.answer(iteration).changed
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
        self.reports.ask(iteration, iteration)
        report = self.report(iteration, None)
        return replace(report, n_changed=changed)

    def _finish(self, sums: torch.Tensor) -> None:
        """Queue the end of an iteration: centres from these sums."""
        queue_finish(sums, self.lattice, self.run, members=1)

    def assign(self) -> None:
        self.used = self.run.current
        if self.low:
            low_scan.iterate(self.run, 0)
        else:
            self.scanning.do(self._scan, self.device)
        self.n_distances += self.n_samples * len(self.run.current)

    def inertia(self) -> Cost:
        return self.total_cost(self.run.labels, self.used, self.weights)

    def total_cost(
        self, labels: torch.Tensor, centers: torch.Tensor, weights: torch.Tensor | None
    ) -> Cost:
        """Return the weighted sum of D to the centres of these labels."""
        if self.low:
            return low_cost(self, labels, centers, weights)
        D = own_distances(self, labels, centers)
        return Cost(cost_limbs(D, weights, largest_term(D, weights)), self.n_samples)

    def labels(self) -> torch.Tensor:
        return self.run.labels

    def centers(self) -> torch.Tensor:
        return self.run.current

    def counts(self) -> NDArray[np.int64]:
        return donors.counts(self.run.labels, self.weights, len(self.run.current))

    def farthest(self, count: int) -> tuple[NDArray, NDArray, NDArray]:
        D = own_distances(self, self.run.labels, self.used)
        return donors.farthest(D, self.run.labels, self.weights, count)

    # -- without a run -----------------------------------------------------------------------

    def classify(self, centers: NDArray) -> None:
        self.start(np.asarray(centers), "lloyd")
        self.assign()

    def distances(self, centers: NDArray) -> torch.Tensor:
        return distances(self, torch.from_numpy(centers.astype(self.dtype)).to(self.device))
