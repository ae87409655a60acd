"""An engine of parts: rows in several places, whose contributions add up.

A :class:`~lloydia.backends.part.Part` is what a worker on another machine, a second GPU or a chunk
of a file has to be; a :class:`~lloydia.backends.group.Group` knows where they are.  Everything that
a part sends is made of integers on the grid of the *whole* data set, of maxima, or of a few rows,
so neither the number of parts nor the order in which they answer changes a bit.  Everything that it
receives is small: centres, candidates, a grid.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from lloydia.backends import choose
from lloydia.backends.engine import UNLIMITED, Engine, Late, Ready, Report
from lloydia.backends.group import Group
from lloydia.backends.part import Step, Tally
from lloydia.exact import distance, sums
from lloydia.exact.means import means

__all__ = ["Parts"]


class Parts(Engine):
    """The engine of several parts; see :class:`lloydia.backends.engine.Engine` for the methods."""

    # The inertia of the last assignment and, before it is known, the largest weight times D.
    latest: float | None
    largest_cost: float | None

    def __init__(self, group: Group) -> None:
        self.group = group
        self.edges = np.cumsum([0, *group.lengths])
        self.n_samples = int(self.edges[-1])
        self.name, self.dtype, self.n_features = group.name, group.dtype, group.n_features
        self.iteration = 0
        self.set_grid(self.magnitudes())

    n_distances = property(lambda self: sum(tally.n_distances for tally in self._tallies()))
    n_rechecked = property(lambda self: sum(tally.n_rechecked for tally in self._tallies()))
    algorithm = property(lambda self: self._tallies()[0].algorithm)

    def _tallies(self) -> list[Tally]:
        return self.group.each("tally")

    def magnitudes(self) -> sums.Magnitudes:
        return reduce(sums.Magnitudes.merge, self.group.each("magnitudes"))

    def set_grid(self, magnitudes: sums.Magnitudes) -> None:
        self.magnitudes_of_all, self.grid = magnitudes, sums.Grid.choose(magnitudes, self.dtype)
        self.group.each("set_grid", magnitudes)

    def mean_variance(self) -> float:
        # After an iteration every row is in one of the clusters.
        if self.iteration:
            totals = self.step.sums.sum(axis=1, keepdims=True)
        else:
            totals = self.group.total("all_sums")
        mean = means(totals, self.grid, self.dtype)
        cost = self._cost(max(self.group.each("measure_to", mean)))
        grid = sums.total_grid(self.n_samples, self.magnitudes_of_all.largest_weight)
        weight = sums.join(self.group.total("weight", grid).tolist(), *grid)
        return cost / (weight * self.n_features)

    def _cost(self, largest: float) -> float:
        """Return the sum of what the parts have measured, none of it above `largest`."""
        grid = sums.total_grid(self.n_samples, largest)
        return sums.join(self.group.total("cost", grid).tolist(), *grid)

    def _places(self, rows: NDArray[np.int64]) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """Give each part that has some of the rows, and which of them these are."""
        places = np.searchsorted(self.edges, rows, side="right") - 1
        for p in np.unique(places).tolist():
            yield p, np.flatnonzero(places == p)

    def _of_rows(self, method: str, rows: NDArray[np.int64]) -> list[Any]:
        """Ask for something of each row; return it row by row."""
        places = dict(self._places(rows))
        own = {p: (rows[which] - self.edges[p],) for p, which in places.items()}
        found: list[Any] = [None] * len(rows)
        for p, answer in self.group.some(method, own).items():
            for i, which in enumerate(places[p].tolist()):
                found[which] = answer[i]
        return found

    def rows(self, indices: NDArray[np.int64]) -> NDArray:
        found = self._of_rows("rows", indices)
        return np.vstack(found) if found else np.empty((0, self.n_features), dtype=self.dtype)

    # -- seeding -----------------------------------------------------------------------------

    def seed_weights(self) -> NDArray[np.float64] | None:
        # Either all parts have weights or none has.
        weights = self.group.each("seed_weights")
        return None if weights[0] is None else np.concatenate(weights)

    def positive_rows(self, count: int) -> NDArray[np.int64]:
        found = zip(self.group.each("positive_rows", count), self.edges)
        return np.concatenate([rows + edge for rows, edge in found])[:count]

    def _change(self, method: str, *arguments: Any) -> None:
        """Ask what changes the D of rows to the nearest seed."""
        self.largest_term = max(self.group.each(method, *arguments))

    def seed_start(self) -> None:
        self.candidates: list[int] = []
        self.n_seeds = 0
        self._change("seed_start")

    def _terms_grid(self) -> tuple[int, int]:
        return sums.total_grid(self.n_samples, self.largest_term)

    def seed_draw(self, fractions: NDArray[np.float64]) -> NDArray[np.int64]:
        grid = self._terms_grid()
        cumulative = np.cumsum([0, *self.group.each("seed_total", grid)])
        total = int(cumulative[-1])
        rows = np.full(len(fractions), -1, dtype=np.int64)
        if total == 0:
            return rows
        targets = np.array([sums.fraction_of(u, total) for u in fractions.tolist()])
        places = np.searchsorted(cumulative, targets, side="right") - 1
        here = {p: np.flatnonzero(places == p) for p in np.unique(places).tolist()}
        own = {p: (targets[which] - cumulative[p], grid) for p, which in here.items()}
        for p, found in self.group.some("seed_find", own).items():
            rows[here[p]] = self.edges[p] + found
        return rows

    def seed_farthest(self) -> int:
        best, distance_of_best = -1, 0.0
        for (row, D), edge in zip(self.group.each("seed_top"), self.edges.tolist()):
            if row >= 0 and distance_of_best < D:
                best, distance_of_best = edge + row, D
        return best

    def _values(self, rows: NDArray[np.int64]) -> Any:
        """Return rows in the form that the parts take as candidates."""
        values = self._of_rows("seed_values", rows)
        return (sp.vstack if sp.issparse(values[0]) else np.vstack)(values)

    def seed_potentials(self, candidates: NDArray[np.int64]) -> list[int]:
        self.candidates = candidates.tolist()
        values = self._values(candidates)
        return self.group.total("seed_potentials_of", values, self._terms_grid()).tolist()

    def seed_add(self, row: int) -> None:
        self.n_seeds += 1
        if self.n_seeds == 1:
            self._change("seed_first", self._values(np.array([row])))
            return
        if row not in self.candidates:
            self.seed_potentials(np.array([row]))
        self._change("seed_accept", self.candidates.index(row))
        self.candidates = []

    def seed_sample(self, key: int, factor: float) -> NDArray[np.int64]:
        grid, edges = self._terms_grid(), self.edges[:-1].tolist()
        total = self.group.total("seed_total", grid)
        own = {p: (key, factor, total, edge, grid) for p, edge in enumerate(edges)}
        found = self.group.some("seed_choose", own)
        return np.concatenate([found[p] + edge for p, edge in enumerate(edges)])

    def seed_extend(self, rows: NDArray[np.int64]) -> None:
        self._change("seed_extend_by", self.rows(rows))

    def seed_loads(self) -> NDArray[np.int64]:
        return self.group.total("seed_loads")

    def subset(self, rows: NDArray[np.int64], weights: NDArray[np.float64]) -> Engine:
        # A few for each cluster: they come here.
        return choose("cpu", self.rows(rows), weights, None)

    # -- a run -------------------------------------------------------------------------------

    def start(
        self, centers: NDArray, algorithm: str, settles: bool = True, max_iter: int = UNLIMITED
    ) -> None:
        self.current = self.used = np.ascontiguousarray(centers, dtype=self.dtype)
        self.iteration = 0
        self.group.each("start", self.current, algorithm, settles, max_iter)

    def iterate(self, inertia: bool) -> Late:
        self.used = self.current
        self.step: Step = self.group.total("step", self.used, inertia)
        self.iteration += 1
        self.largest_cost = None
        self.latest = self._cost(self.step.largest_cost) if inertia else None
        return Ready(self._finish(self.step.sums))

    def _finish(self, totals: NDArray[np.int64]) -> Report:
        """Compute the centres; those of empty clusters stay."""
        self.empty = (totals[:, :, -1] == 0).all(axis=0)
        found = means(totals, self.grid, self.dtype)
        self.current = np.where(self.empty[:, None], self.used, found)
        return Report(
            self.iteration,
            self.n_samples,
            self.step.n_changed,
            int(self.empty.sum()),
            *distance.movement(self.used, self.current),
            self.latest,
        )

    def rewind(self, iteration: int) -> None:
        """Nothing is ever ahead here."""

    def empty_clusters(self) -> NDArray[np.int64]:
        return np.flatnonzero(self.empty)

    def farthest(self, count: int) -> tuple[NDArray, NDArray, NDArray]:
        found = self.group.each("farthest", count)
        rows = np.concatenate([f[0] + edge for f, edge in zip(found, self.edges)])
        D, labels = (np.concatenate([f[i] for f in found]) for i in (1, 2))
        order = np.lexsort((rows, -D))[:count]
        return rows[order], D[order], labels[order]

    def counts(self) -> NDArray[np.int64]:
        return self.group.total("counts")

    def relocate(self, rows: NDArray[np.int64], clusters: NDArray[np.int64]) -> Report:
        return self._finish(self.step.sums + self._moved(rows, clusters, len(self.used)))

    def _moved(
        self, rows: NDArray[np.int64], clusters: NDArray[np.int64], k: int
    ) -> NDArray[np.int64]:
        """Return by how much the sums of k clusters change when each row moves to a cluster."""
        weights = np.array(self._of_rows("weights_of", rows))
        labels = np.array(self._of_rows("labels_of", rows))
        limbs = sums.limbs(self.rows(rows), weights, self.grid)
        return sums.accumulate(limbs, clusters, k) - sums.accumulate(limbs, labels, k)

    def assign(self) -> None:
        self.used, self.latest = self.current, None
        self.largest_cost = max(self.group.each("conclude", self.used))

    def inertia(self) -> float:
        if self.latest is None:
            if self.largest_cost is None:
                self.largest_cost = max(self.group.each("measure"))
            self.latest = self._cost(self.largest_cost)
        return self.latest

    def labels(self) -> NDArray[np.int32]:
        return self.group.labels()

    def centers(self) -> NDArray:
        return self.current

    # -- without a run -----------------------------------------------------------------------

    def classify(self, centers: NDArray) -> None:
        self.latest = self.largest_cost = None
        self.group.each("classify", np.ascontiguousarray(centers, dtype=self.dtype))

    def distances(self, centers: NDArray) -> NDArray:
        return self.group.distances(centers)
