"""An engine of parts: rows in several places, whose contributions add up.

A :class:`~lloydia.backends.part.Part` is what a worker on another machine, a second GPU or a chunk
of a file has to be; a :class:`~lloydia.backends.group.Group` reaches them;
:mod:`parted_rows` asks all of them, and :mod:`parted_run` iterates.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from lloydia.backends import choose
from lloydia.backends.engine import Engine, ExpectedRun
from lloydia.backends.group import Group
from lloydia.backends.parted_rows import PartedRows
from lloydia.backends.parted_run import HostRun, PartedRun
from lloydia.backends.reports import PendingReport, Report
from lloydia.backends.run_settings import RunSettings
from lloydia.exact import sums

__all__ = ["Parts"]


class Parts(Engine):
    """The engine of several parts; see :class:`lloydia.backends.engine.Engine` for the methods.

    Parameters
    ----------
    group : Group
    parted : PartedRows, optional
        Its rows, with the `run` over them that has its state elsewhere.

    Attributes
    ----------
    candidates : list of int
        The rows that were weighed last.
    largest_term : float
        The largest weight times D to the nearest seed.
    """

    def __init__(
        self, group: Group, parted: PartedRows | None = None, run: PartedRun | None = None
    ) -> None:
        self.group, self.parted = group, PartedRows(group) if parted is None else parted
        self.run: PartedRun = HostRun(self.parted) if run is None else run
        self.name, self.dtype, self.n_features = group.name, group.dtype, group.n_features
        self.n_samples = self.parted.n_samples
        self.candidates: list[int] = []
        self.n_seeds, self.largest_term = 0, 0.0

    grid = property(lambda self: self.parted.grid)
    n_distances = property(lambda self: sum(t.n_distances for t in self.parted.tallies()))
    n_rechecked = property(lambda self: sum(t.n_rechecked for t in self.parted.tallies()))
    algorithm = property(lambda self: self.parted.tallies()[0].algorithm)

    def magnitudes(self) -> sums.Magnitudes:
        return self.parted.magnitudes()

    def set_grid(self, magnitudes: sums.Magnitudes) -> None:
        self.parted.set_grid(magnitudes)

    def mean_variance(self) -> float:
        return self.parted.mean_variance(self.run.all_sums())

    def rows(self, indices: NDArray[np.int64]) -> NDArray:
        return self.parted.rows(indices)

    # -- seeding -----------------------------------------------------------------------------

    def seed_weights(self) -> NDArray[np.float64] | None:
        # Either all parts have weights or none has.
        weights = self.group.each("seed_weights")
        return None if weights[0] is None else np.concatenate(weights)

    def positive_rows(self, count: int) -> NDArray[np.int64]:
        found = zip(self.group.each("positive_rows", count), self.parted.edges)
        return np.concatenate([rows + edge for rows, edge in found])[:count]

    def _change(self, method: str, *arguments: Any) -> None:
        """Ask what changes the D of rows to the nearest seed."""
        self.largest_term = max(self.group.each(method, *arguments))

    def seed_start(self) -> None:
        self.candidates = []
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
            rows[here[p]] = self.parted.edges[p] + found
        return rows

    def seed_farthest(self) -> int:
        best, distance_of_best = -1, 0.0
        for (row, D), edge in zip(self.group.each("seed_top"), self.parted.edges.tolist()):
            if row >= 0 and distance_of_best < D:
                best, distance_of_best = edge + row, D
        return best

    def _values(self, rows: NDArray[np.int64]) -> Any:
        """Return rows in the form that the parts take as candidates."""
        values = self.parted.of_rows("seed_values", rows)
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
        grid, edges = self._terms_grid(), self.parted.edges[:-1].tolist()
        total = self.group.total("seed_total", grid)
        own = {p: (key, factor, total, edge, grid) for p, edge in enumerate(edges)}
        found = self.group.some("seed_choose", own)
        return np.concatenate([found[p] + edge for p, edge in enumerate(edges)])

    def seed_extend(self, rows: NDArray[np.int64]) -> None:
        self._change("seed_extend_by", self.parted.rows(rows))

    def seed_loads(self) -> NDArray[np.int64]:
        return self.group.total("seed_loads")

    def subset(self, rows: NDArray[np.int64], weights: NDArray[np.float64]) -> Engine:
        # A few for each cluster: they come here.
        return choose(self.group.few_rows_device, self.parted.rows(rows), weights, None)

    # -- a run -------------------------------------------------------------------------------

    def expecting(self, run: ExpectedRun) -> AbstractContextManager[None]:
        return self.run.expecting(run)

    def start_run(self, settings: RunSettings) -> None:
        self.run.start(settings)
        self.lag = self.run.lag

    def iterate(self, inertia: bool) -> PendingReport:
        return self.run.iterate(inertia)

    def rewind(self, iteration: int) -> None:
        self.run.rewind(iteration)

    def empty_clusters(self) -> NDArray[np.int64]:
        return self.run.empty_clusters()

    def farthest(self, count: int) -> tuple[NDArray, NDArray, NDArray]:
        found = self.group.each("farthest", count)
        rows = np.concatenate([f[0] + edge for f, edge in zip(found, self.parted.edges)])
        D, labels = (np.concatenate([f[i] for f in found]) for i in (1, 2))
        order = np.lexsort((rows, -D))[:count]
        return rows[order], D[order], labels[order]

    def counts(self) -> NDArray[np.int64]:
        return self.group.total("counts")

    def relocate(self, rows: NDArray[np.int64], clusters: NDArray[np.int64]) -> Report:
        return self.run.relocate(rows, clusters)

    def assign(self) -> None:
        self.run.assign()

    def inertia(self) -> float:
        return self.run.inertia()

    def labels(self) -> NDArray[np.int32]:
        return self.group.labels()

    def centers(self) -> Any:
        return self.run.centers()

    # -- without a run -----------------------------------------------------------------------

    def classify(self, centers: NDArray) -> None:
        self.run.forget_inertia()
        self.group.each("classify", np.ascontiguousarray(centers, dtype=self.dtype))

    def distances(self, centers: NDArray) -> NDArray:
        return self.group.distances(centers)
