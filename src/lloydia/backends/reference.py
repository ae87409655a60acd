"""The oracle: every answer computed the obvious way, in NumPy.

It evaluates all distances whatever the algorithm is called, keeps nothing between iterations but
labels and centres, and sums every cluster anew.  Sparse rows are made dense first, since that is
how their distances are defined.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from lloydia.backends.engine import Engine
from lloydia.backends.reports import DoneReport, Report
from lloydia.backends.run_settings import RunSettings
from lloydia.data.weights import positive_rows
from lloydia.exact import counter, distance, sums
from lloydia.exact.means import means

__all__ = ["Reference"]


class Reference(Engine):
    """The NumPy engine: see :class:`lloydia.backends.engine.Engine` for what each method means."""

    name = "reference"

    def __init__(self, X: Any, weights: NDArray | None) -> None:
        self.X = X.toarray() if sp.issparse(X) else X
        self.weights = None if weights is None else weights.astype(np.float64)
        self.n_samples, self.n_features = self.X.shape
        self.dtype = self.X.dtype
        self.n_distances = self.n_rechecked = 0
        self.set_grid(self.magnitudes())

    def magnitudes(self) -> sums.Magnitudes:
        return sums.Magnitudes.of(self.X, self.weights)

    def set_grid(self, magnitudes: sums.Magnitudes) -> None:
        self.grid = sums.Grid.choose(magnitudes, self.dtype)

    def mean_variance(self) -> float:
        one = np.zeros(self.n_samples, dtype=np.int64)
        limbs = sums.limbs(self.X, self.weights, self.grid)
        mean = means(sums.accumulate(limbs, one, 1), self.grid, self.dtype)
        D = distance.squared_distances(self.X, mean)[:, 0]
        cost = sums.total(D if self.weights is None else self.weights * D)
        return cost / (sums.total_weight(self.weights, self.n_samples) * self.n_features)

    def rows(self, indices: NDArray[np.int64]) -> NDArray:
        return self.X[indices] + 0.0

    # -- seeding -----------------------------------------------------------------------------

    def seed_start(self) -> None:
        self.nearest = np.ones(self.n_samples)
        self.n_seeds = 0

    def seed_draw(self, fractions: NDArray[np.float64]) -> NDArray[np.int64]:
        cumulative = np.cumsum(self._integers(self.nearest))
        total = int(cumulative[-1])
        if total == 0:
            return np.full(len(fractions), -1, dtype=np.int64)
        targets = [sums.fraction_of(float(u), total) for u in fractions]
        return np.searchsorted(cumulative, targets, side="right").astype(np.int64)

    def seed_farthest(self) -> int:
        D = self.nearest if self.weights is None else self.nearest * (self.weights > 0)
        return int(D.argmax()) if D.any() else -1

    def seed_weights(self) -> NDArray[np.float64] | None:
        return self.weights

    def positive_rows(self, count: int) -> NDArray[np.int64]:
        return positive_rows(self.weights, self.n_samples, count)

    def seed_potentials(self, candidates: NDArray[np.int64]) -> list[int]:
        D = distance.squared_distances(self.X, self.X[candidates])
        return [
            int(self._integers(np.minimum(self.nearest, D[:, j])).sum())
            for j in range(len(candidates))
        ]

    def seed_add(self, row: int) -> None:
        D = distance.squared_distances(self.X, self.X[[row]])[:, 0]
        self.nearest = D if self.n_seeds == 0 else np.minimum(self.nearest, D)
        self.n_seeds += 1

    def seed_sample(self, key: int, factor: float) -> NDArray[np.int64]:
        terms = self._integers(self.nearest)
        return counter.chosen(terms, int(terms.sum()), key, factor)

    def seed_extend(self, rows: NDArray[np.int64]) -> None:
        labels, D = distance.nearest(self.X, self.X[rows])
        if self.n_seeds == 0:
            self.nearest, self.owners = D, labels
        else:
            self.owners = np.where(self.nearest > D, self.n_seeds + labels, self.owners)
            self.nearest = np.minimum(self.nearest, D)
        self.n_seeds += len(rows)

    def seed_loads(self) -> NDArray[np.int64]:
        weights = np.ones(self.n_samples) if self.weights is None else self.weights
        bits, exponent = sums.total_grid(self.n_samples, float(weights.max()))
        loads = np.zeros(self.n_seeds, dtype=np.int64)
        terms = np.rint(np.ldexp(weights, bits - exponent)).astype(np.int64)
        np.add.at(loads, self.owners, terms)
        return loads

    def subset(self, rows: NDArray[np.int64], weights: NDArray[np.float64]) -> Reference:
        return Reference(self.X[rows], weights)

    def _integers(self, D: NDArray) -> NDArray[np.int64]:
        """Round weight times `D` to the grid of the present weights times distances."""
        w = 1.0 if self.weights is None else self.weights
        bits, exponent = sums.total_grid(self.n_samples, float((w * self.nearest).max()))
        return np.rint(np.ldexp(w * D, bits - exponent)).astype(np.int64)

    # -- a run -------------------------------------------------------------------------------

    def start_run(self, settings: RunSettings) -> None:
        self.algorithm = "lloyd" if settings.algorithm == "auto" else settings.algorithm
        self.current = settings.centers.astype(self.dtype)
        self.assigned = np.full(self.n_samples, -1, dtype=np.int32)
        self.iteration = self.n_changed = 0
        self.cost: float | None = None

    def iterate(self, inertia: bool) -> DoneReport:
        old = self.assigned
        self.assign()
        self.iteration += 1
        self.n_changed = int((self.assigned != old).sum())
        self.cost = self.inertia() if inertia else None
        return DoneReport(self._update(self.assigned))

    def _update(self, labels: NDArray) -> Report:
        """Compute the centres of a partition; those of empty clusters stay."""
        totals = sums.accumulate(
            sums.limbs(self.X, self.weights, self.grid), labels, len(self.used)
        )
        self.empty = (totals[:, :, -1] == 0).all(axis=0)
        new = np.where(self.empty[:, None], self.used, means(totals, self.grid, self.dtype))
        shift, move = distance.movement(self.used, new)
        self.current = new
        return Report(
            self.iteration,
            self.n_samples,
            self.n_changed,
            int(self.empty.sum()),
            shift,
            move,
            self.cost,
        )

    def rewind(self, iteration: int) -> None:
        """Nothing is ever ahead here."""

    def empty_clusters(self) -> NDArray[np.int64]:
        return np.flatnonzero(self.empty)

    def farthest(self, count: int) -> tuple[NDArray, NDArray, NDArray]:
        rows = np.arange(self.n_samples)
        if self.weights is not None:
            rows = rows[self.weights > 0]
        rows = rows[np.lexsort((rows, -self.D[rows]))][:count]
        return rows, self.D[rows], self.assigned[rows]

    def counts(self) -> NDArray[np.int64]:
        labels = self.assigned if self.weights is None else self.assigned[self.weights > 0]
        return np.bincount(labels, minlength=len(self.used))

    def relocate(self, rows: NDArray[np.int64], clusters: NDArray[np.int64]) -> Report:
        moved = self.assigned.copy()
        moved[rows] = clusters
        return self._update(moved)

    def assign(self) -> None:
        self.used = self.current
        self.assigned, self.D = distance.nearest(self.X, self.used)
        self.n_distances += self.n_samples * len(self.used)

    def measure(self, labels: NDArray[np.int32], centers: NDArray) -> None:
        """Take labels, and the centres that they belong to, as those of the last assignment."""
        self.assigned, self.used = labels, centers
        self.D = distance.own_distances(self.X, labels, centers)

    def inertia(self) -> float:
        return sums.total(self.D if self.weights is None else self.weights * self.D)

    def labels(self) -> NDArray[np.int32]:
        return self.assigned

    def centers(self) -> NDArray:
        return self.current

    # -- without a run -----------------------------------------------------------------------

    def classify(self, centers: NDArray) -> None:
        self.start(centers, "lloyd")
        self.assign()

    def distances(self, centers: NDArray) -> NDArray:
        return np.sqrt(distance.squared_distances(self.X, centers)).astype(self.dtype)
