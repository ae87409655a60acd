"""An engine of parts: rows in several places, whose contributions add up.

A :class:`Part` is what a worker on another machine, a second GPU or a chunk of a file has to be.
Everything that it sends is made of integers on the grid of the *whole* data set, of maxima, or of
a few rows, so neither the number of parts nor the order in which they answer changes a bit.
Everything that it receives is small: centres, candidates, a grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from lloydia.backends import UNLIMITED, Ready, Report
from lloydia.backends.part import Part
from lloydia.exact import distance, sums

__all__ = ["Parts"]


class Parts:
    """The engine of several parts; see :class:`lloydia.backends.Engine` for what methods mean.

    Parameters
    ----------
    parts : sequence of Part
        In the order of their rows.
    """

    lag = 0

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = list(parts)
        self.edges = np.cumsum([0, *(part.n_samples for part in parts)])
        self.n_samples = int(self.edges[-1])
        self.name, self.dtype = parts[0].name, parts[0].dtype
        self.n_features = parts[0].n_features
        self.set_grid(self.extent())

    n_distances = property(lambda self: sum(part.n_distances for part in self.parts))
    n_rechecked = property(lambda self: sum(part.n_rechecked for part in self.parts))
    algorithm = property(lambda self: self.parts[0].algorithm)

    def extent(self) -> sums.Extent:
        return reduce(sums.Extent.merge, (part.extent() for part in self.parts))

    def set_grid(self, extent: sums.Extent) -> None:
        self.grid = sums.Grid.choose(extent, self.dtype)
        for part in self.parts:
            part.set_grid(extent)

    def spread(self) -> float:
        plain = Parts([part.unweighted() for part in self.parts])
        plain.start(np.zeros((1, self.n_features), dtype=self.dtype), "lloyd")
        for part in plain.parts:
            part.gather()
        plain._finish(plain._sums())
        for part in plain.parts:
            part.classify(plain.current)
        return plain.inertia() / (self.n_samples * self.n_features)

    def _split(self, rows: NDArray[np.int64]) -> list[tuple[int, NDArray[np.int64]]]:
        """Return the place and the part's own number of each row, one by one."""
        places = np.searchsorted(self.edges, rows, side="right") - 1
        return [(int(p), np.array([row - self.edges[p]])) for p, row in zip(places, rows)]

    def rows(self, indices: NDArray[np.int64]) -> NDArray:
        return np.vstack([self.parts[p].rows(own) for p, own in self._split(indices)])

    # -- seeding -----------------------------------------------------------------------------

    def seed_weights(self) -> NDArray[np.float64]:
        return np.concatenate([part.seed_weights() for part in self.parts])

    def positive_rows(self, count: int) -> NDArray[np.int64]:
        found = [p.positive_rows(count) + edge for p, edge in zip(self.parts, self.edges)]
        return np.concatenate(found)[:count]

    def seed_start(self) -> None:
        self.candidates: list[int] = []
        self.n_seeds = 0
        for part in self.parts:
            part.seed_start()

    def _terms_grid(self) -> tuple[int, int]:
        return sums.total_grid(self.n_samples, max(part.largest_term for part in self.parts))

    def seed_draw(self, fractions: NDArray[np.float64]) -> NDArray[np.int64]:
        grid = self._terms_grid()
        totals = [part.seed_total(grid) for part in self.parts]
        cumulative = np.cumsum([0, *totals])
        total = int(cumulative[-1])
        rows = np.full(len(fractions), -1, dtype=np.int64)
        if total == 0:
            return rows
        targets = np.array([sums.fraction_of(u, total) for u in fractions.tolist()])
        places = np.searchsorted(cumulative, targets, side="right") - 1
        for p in np.unique(places).tolist():
            here = places == p
            own = self.parts[p].seed_find(targets[here] - cumulative[p], grid)
            rows[here] = self.edges[p] + own
        return rows

    def seed_farthest(self) -> int:
        best, distance_of_best = -1, 0.0
        for part, edge in zip(self.parts, self.edges.tolist()):
            row = part.seed_farthest()
            if row >= 0 and part.seed_distance(row) > distance_of_best:
                best, distance_of_best = edge + row, part.seed_distance(row)
        return best

    def _values(self, rows: NDArray[np.int64]) -> Any:
        """Return rows in the form that the parts take as candidates."""
        values = [self.parts[p].seed_values(own) for p, own in self._split(rows)]
        return (sp.vstack if sp.issparse(values[0]) else np.vstack)(values)

    def seed_potentials(self, candidates: NDArray[np.int64]) -> list[int]:
        self.candidates = candidates.tolist()
        values, grid = self._values(candidates), self._terms_grid()
        return reduce(np.add, (part.seed_weigh(values, grid) for part in self.parts)).tolist()

    def seed_add(self, row: int) -> None:
        self.n_seeds += 1
        if self.n_seeds == 1:
            values = self._values(np.array([row]))
            for part in self.parts:
                part.seed_first(values)
            return
        if row not in self.candidates:
            self.seed_potentials(np.array([row]))
        for part in self.parts:
            part.seed_adopt(self.candidates.index(row))
        self.candidates = []

    def seed_sample(self, key: int, factor: float) -> NDArray[np.int64]:
        grid = self._terms_grid()
        total = sum(part.seed_total(grid) for part in self.parts)
        found = [
            part.seed_choose(key, factor, total, edge, grid) + edge
            for part, edge in zip(self.parts, self.edges.tolist())
        ]
        return np.concatenate(found)

    def seed_extend(self, rows: NDArray[np.int64]) -> None:
        centers = self.rows(rows)
        for part in self.parts:
            part.seed_spread(centers)

    def seed_loads(self) -> NDArray[np.int64]:
        return reduce(np.add, (part.seed_loads() for part in self.parts))

    def subset(self, rows: NDArray[np.int64], weights: NDArray[np.float64]) -> Parts:
        cuts = np.searchsorted(rows, self.edges)
        return Parts(
            [
                part.subset(rows[a:b] - edge, weights[a:b])
                for part, edge, (a, b) in zip(self.parts, self.edges, pairwise(cuts.tolist()))
                if a < b
            ]
        )

    # -- a run -------------------------------------------------------------------------------

    def start(
        self, centers: NDArray, algorithm: str, settles: bool = True, max_iter: int = UNLIMITED
    ) -> None:
        self.current = self.used = np.ascontiguousarray(centers, dtype=self.dtype)
        self.iteration = self.n_changed = 0
        self.latest: float | None = None
        for part in self.parts:
            part.start(self.current, algorithm, settles, max_iter)

    def _sums(self) -> NDArray[np.int64]:
        return reduce(np.add, (part.integers() for part in self.parts))

    def iterate(self, inertia: bool) -> Ready:
        self.used = self.current
        for part in self.parts:
            part.adopt(self.used)
        self.n_changed = sum(part.step() for part in self.parts)
        self.iteration += 1
        self.latest = self.inertia() if inertia else None
        return Ready(self._finish(self._sums()))

    def _finish(self, totals: NDArray[np.int64]) -> Report:
        self.empty = (totals[:, :, -1] == 0).all(axis=0)
        means = sums.means(totals, self.grid, self.dtype)
        self.current = np.where(self.empty[:, None], self.used, means)
        return Report(
            self.iteration,
            self.n_samples,
            self.n_changed,
            int(self.empty.sum()),
            *distance.movement(self.used, self.current),
            self.latest,
        )

    def rewind(self, iteration: int) -> None:
        """Nothing is ever ahead here."""

    def empty_clusters(self) -> NDArray[np.int64]:
        return np.flatnonzero(self.empty)

    def farthest(self, count: int) -> tuple[NDArray, NDArray, NDArray]:
        found = [part.farthest(count) for part in self.parts]
        rows = np.concatenate([f[0] + edge for f, edge in zip(found, self.edges)])
        D, labels = (np.concatenate([f[i] for f in found]) for i in (1, 2))
        order = np.lexsort((rows, -D))[:count]
        return rows[order], D[order], labels[order]

    def counts(self) -> NDArray[np.int64]:
        return reduce(np.add, (part.counts() for part in self.parts))

    def relocate(self, rows: NDArray[np.int64], clusters: NDArray[np.int64]) -> Report:
        totals = self._sums()
        for (p, own), cluster in zip(self._split(rows), clusters):
            part = self.parts[p]
            limbs = part.limbs(own)[:, 0]
            totals[:, cluster] += limbs
            totals[:, part.labels()[own[0]]] -= limbs
        return self._finish(totals)

    def assign(self) -> None:
        for part in self.parts:
            part.adopt(self.current)
            part.assign()

    def inertia(self) -> float:
        grid = sums.total_grid(self.n_samples, max(part.measure() for part in self.parts))
        limbs = reduce(np.add, (part.cost(grid) for part in self.parts))
        return sums.join(limbs.tolist(), *grid)

    def labels(self) -> NDArray[np.int32]:
        return np.concatenate([part.labels() for part in self.parts])

    def centers(self) -> NDArray:
        return self.current

    # -- without a run -----------------------------------------------------------------------

    def classify(self, centers: NDArray) -> None:
        for part in self.parts:
            part.classify(centers)

    def distances(self, centers: NDArray) -> NDArray:
        return np.vstack([part.distances(centers) for part in self.parts])
