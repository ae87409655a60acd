"""Rows in several places, whose contributions add up: what is asked of all of them.

Everything that a part sends is made of integers on the grid of the *whole* data set, of maxima, or
of a few rows, so neither the number of parts nor the order in which they answer changes a bit.
Everything that it receives is small: centres, candidates, a grid.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.group import Group
from lloydia.backends.part import Tally
from lloydia.exact import sums
from lloydia.exact.means import means

__all__ = ["PartedRows"]


class PartedRows:
    """The rows of a group of parts; see :class:`lloydia.backends.engine.Engine` for the methods.

    Parameters
    ----------
    group : Group

    Attributes
    ----------
    edges : ndarray
        Where each part begins, and the number of rows.
    magnitudes_of_all : Magnitudes
        Of all rows; `grid` is that of their sums.
    """

    def __init__(self, group: Group) -> None:
        self.group, self.dtype = group, group.dtype
        self.edges = np.cumsum([0, *group.lengths])
        self.n_samples, self.n_features = int(self.edges[-1]), group.n_features
        self.set_grid(self.magnitudes())

    def tallies(self) -> list[Tally]:
        """Return what each part's assignments did so far."""
        return self.group.each("tally")

    def magnitudes(self) -> sums.Magnitudes:
        return reduce(sums.Magnitudes.merge, self.group.each("magnitudes"))

    def set_grid(self, magnitudes: sums.Magnitudes) -> None:
        self.magnitudes_of_all, self.grid = magnitudes, sums.Grid.choose(magnitudes, self.dtype)
        self.group.each("set_grid", magnitudes)

    def mean_variance(self, totals: NDArray[np.int64] | None) -> float:
        """Return the mean variance, given the integers of all rows as one cluster, if known."""
        if totals is None:
            totals = self.group.total("all_sums")
        mean = means(totals, self.grid, self.dtype)
        cost = self.cost(max(self.group.each("measure_to", mean)))
        grid = sums.total_grid(self.n_samples, self.magnitudes_of_all.largest_weight)
        weight = sums.join(self.group.total("weight", grid).tolist(), *grid)
        return cost / (weight * self.n_features)

    def cost(self, largest: float) -> float:
        """Return the sum of what the parts have measured, none of it above `largest`."""
        grid = sums.total_grid(self.n_samples, largest)
        return sums.join(self.group.total("cost", grid).tolist(), *grid)

    def _places(self, rows: NDArray[np.int64]) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """Give each part that has some of the rows, and which of them these are."""
        places = np.searchsorted(self.edges, rows, side="right") - 1
        for p in np.unique(places).tolist():
            yield p, np.flatnonzero(places == p)

    def of_rows(self, method: str, rows: NDArray[np.int64]) -> list[Any]:
        """Ask for something of each row; return it row by row."""
        places = dict(self._places(rows))
        own = {p: (rows[which] - self.edges[p],) for p, which in places.items()}
        found: list[Any] = [None] * len(rows)
        for p, answer in self.group.some(method, own).items():
            for i, which in enumerate(places[p].tolist()):
                found[which] = answer[i]
        return found

    def rows(self, indices: NDArray[np.int64]) -> NDArray:
        found = self.of_rows("rows", indices)
        return np.vstack(found) if found else np.empty((0, self.n_features), dtype=self.dtype)

    def moved(
        self, rows: NDArray[np.int64], clusters: NDArray[np.int64], k: int
    ) -> NDArray[np.int64]:
        """Return by how much the sums of k clusters change when each row moves to a cluster."""
        weights = np.array(self.of_rows("weights_of", rows))
        labels = np.array(self.of_rows("labels_of", rows))
        limbs = sums.limbs(self.rows(rows), weights, self.grid)
        return sums.accumulate(limbs, clusters, k) - sums.accumulate(limbs, labels, k)
