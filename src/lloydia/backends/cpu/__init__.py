"""The CPU engine: Numba kernels over blocks of rows, on the threads of :mod:`pool`."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lloydia.algorithms import CLASSES
from lloydia.backends import Ready, Report
from lloydia.backends.cpu import sums
from lloydia.backends.cpu.filtering import labels_by_row
from lloydia.backends.cpu.picks import Picks
from lloydia.backends.cpu.placed import NONE
from lloydia.backends.cpu.rows import EVERY
from lloydia.backends.cpu.steps import STEPS, Tally
from lloydia.backends.cpu.tiles import Tiles
from lloydia.exact import sums as exact
from lloydia.exact.distance import in_order

__all__ = ["CPU"]


class CPU(Picks):
    """The engine for NumPy arrays and CSR matrices; see :class:`lloydia.backends.Engine`."""

    lag = 0

    def __init__(self, X: Any, weights: NDArray | None, n_threads: int | None) -> None:
        super().__init__(X, weights, n_threads)
        self.n_distances = self.n_rechecked = 0
        # Whether there are labels in the order of the tiles that are not in `_assigned` yet.
        self.behind = False

    def spread(self) -> float:
        # The rows as one cluster, unweighted: D to its mean.
        plain = self.unweighted()
        if self.weights is NONE:
            plain._extent, plain._grid = self.extent(), self.grid
        else:
            plain.set_grid(self.extent().unweighted())
        plain.start(np.zeros((1, self.n_features), dtype=self.dtype), "lloyd")
        plain.gather()
        plain.finish(plain.sums)
        plain.used = plain.current
        return plain.inertia() / (self.n_samples * self.n_features)

    def unweighted(self) -> CPU:
        """Return the same rows with weights of 1."""
        return CPU(self.source, None, self.n_threads)

    @cached_property
    def tiles(self) -> Tiles:
        """The rows in the order of a space-filling curve."""
        if self.sparse:
            raise ValueError(
                "algorithm='filtering' takes dense data: use algorithm='lloyd' for sparse data."
            )
        return Tiles.of(self)

    @property
    def assigned(self) -> NDArray[np.int32]:
        """The labels by row, -1 before the first assignment."""
        if self.behind:
            self.behind = False
            tiles, b = self.tiles, self.bounds
            self.each_block(
                lambda t, start, stop: labels_by_row(
                    tiles.levels, b.owner, b.held, tiles.order, start, stop, self._assigned
                ), 5.0,
            )  # fmt: skip
        return self._assigned

    @assigned.setter
    def assigned(self, labels: NDArray[np.int32]) -> None:
        self.behind = False
        self._assigned: NDArray[np.int32] = labels

    def start(self, centers: NDArray, algorithm: str, settles: bool = True) -> None:
        k, d, grid = len(centers), self.n_features, self.grid
        self.algorithm = algorithm
        # The last assignment needs no sums.
        self.last = False
        self.bounds: Any = CLASSES[algorithm](self.n_samples, d, k, self.dtype)
        self.current = self.used = np.ascontiguousarray(centers, dtype=self.dtype)
        self.assigned = np.full(self.n_samples, -1, dtype=np.int32)
        self.iteration = self.n_changed = 0
        self.latest: float | None = None
        self.empty = np.zeros(k, dtype=np.bool_)
        # A few clusters too many keep the threads' sums out of each other's cache lines.
        padded = k + 32 // (d + 1) + 1
        self.sums = np.zeros((self.n_threads, grid.n_limbs, padded, d + 1), dtype=np.int64)
        weighted = self.weights is not NONE
        self.scaled = np.ldexp(self.weights, -grid.weight_exponent) if weighted else NONE
        quantum = grid.quantum
        self.lattice = (grid.scale, quantum, 1.0 / quantum, 2.0**grid.bits, grid.recover)
        self.powers = np.ldexp(1.0, grid.exponents)

    def move(self, thread: int, rows: NDArray, start: int, stop: int, fresh: NDArray) -> int:
        """Move a block of a list of rows to their fresh labels; return how many changed."""
        if self.last:
            self.assigned[slice(start, stop) if rows is EVERY else rows[start:stop]] = fresh[
                : stop - start
            ]
            return 0
        kernel = sums.sparse_accumulate if self.sparse else sums.accumulate
        own = self.sums[thread]
        return kernel(
            self.X, rows, start, stop, self.scaled, self.lattice, fresh, self.assigned, own
        )

    def gather(self) -> None:
        """Put every row into cluster 0."""
        one = np.zeros(self.n_samples, dtype=np.int32)

        def task(thread: int, start: int, stop: int) -> None:
            self.move(thread, EVERY, start, stop, one[start:stop])

        self.each_block(task, 5.0 + 2.0 * self.width)

    def adopt(self, centers: NDArray) -> None:
        """Take the centres of the next assignment."""
        self.current = centers

    def step(self) -> int:
        """Assign every row, keep the sums, return how many rows changed."""
        self._assign()
        return self.n_changed

    def integers(self) -> NDArray[np.int64]:
        """Return the sums of the clusters: shape (n_limbs, k, d + 1)."""
        return self.sums.sum(axis=0)[:, : len(self.used)]

    def assign(self) -> None:
        self.last = True
        self._assign()

    def classify(self, centers: NDArray) -> None:
        self.algorithm = "lloyd"
        self.current = self.used = np.ascontiguousarray(centers, dtype=self.dtype)
        self.assigned = np.full(self.n_samples, -1, dtype=np.int32)
        self.assign()

    def _assign(self) -> None:
        before, self.used = self.used, self.current
        cost = 10.0 + self.width * (0.3 + len(self.used) / 40.0)
        tally = Tally(self.n_threads, min(self.block(cost), self.n_samples))
        step = STEPS[self.algorithm](self, before, tally)

        def task(thread: int, start: int, stop: int) -> None:
            tally.changed[thread] += step(thread, start, stop)

        self.each_block(task, cost)
        self.n_changed = int(tally.changed.sum())
        self.n_distances += int(tally.evaluated.sum())
        self.n_rechecked += int(tally.rechecked.sum())

    def iterate(self, inertia: bool) -> Ready:
        self._assign()
        self.iteration += 1
        self.latest = self.inertia() if inertia else None
        return Ready(self.finish(self.sums))

    def finish(self, parts: NDArray[np.int64]) -> Report:
        """Compute the centres from the threads' sums; those of empty clusters stay."""
        k = len(self.used)
        new = np.empty_like(self.used)
        square, move = np.empty(k), np.empty(k)
        grid, double = self.grid, self.dtype == np.float64
        self.each_block(
            lambda t, start, stop: sums.finish(
                parts, start, stop, grid.bits, grid.exponents, self.powers, double,
                self.used, new, self.empty, square, move,
            ), 4.0 * parts[:, :, 0].size, k,
        )  # fmt: skip
        self.current = new
        return Report(
            self.iteration,
            self.n_samples,
            self.n_changed,
            int(np.count_nonzero(self.empty)),
            in_order(square),
            float(move.max()),
            self.latest,
        )

    def rewind(self, iteration: int) -> None:
        """Nothing is ever ahead here."""

    def empty_clusters(self) -> NDArray[np.int64]:
        return np.flatnonzero(self.empty)

    def farthest(self, count: int) -> tuple[NDArray, NDArray, NDArray]:
        D = self.own_distances(self.assigned, self.used)
        rows = self.positive_rows(self.n_samples)
        if count < len(rows):
            # All rows at least as far as the count-th: ties are settled by the sort.
            least = np.partition(D[rows], len(rows) - count)[len(rows) - count]
            rows = rows[D[rows] >= least]
        rows = rows[np.lexsort((rows, -D[rows]))][:count]
        return rows, D[rows], self.assigned[rows]

    def counts(self) -> NDArray[np.int64]:
        labels = self.assigned if self.weights is NONE else self.assigned[self.weights > 0]
        return np.bincount(labels, minlength=len(self.used))

    def relocate(self, rows: NDArray[np.int64], clusters: NDArray[np.int64]) -> Report:
        limbs, k = self.limbs(rows), self.sums.shape[2]
        parts = self.sums.copy()
        parts[0] += exact.accumulate(limbs, clusters, k)
        parts[0] -= exact.accumulate(limbs, self.assigned[rows], k)
        return self.finish(parts)

    def measure(self) -> float:
        """Compute every row's D to its centre; return the largest weight times D."""
        self.D = self.own_distances(self.assigned, self.used)
        return self.largest_cost(self.D)

    def cost(self, grid: tuple[int, int]) -> NDArray[np.int64]:
        """Return the limbs of the sum of weight times D, as measured."""
        limbs = self.cost_limbs(self.D, grid)
        del self.D
        return limbs

    def inertia(self) -> float:
        grid = exact.total_grid(self.n_samples, self.measure())
        return exact.join(self.cost(grid).tolist(), *grid)

    def labels(self) -> NDArray[np.int32]:
        return self.assigned

    def centers(self) -> NDArray:
        return self.current
