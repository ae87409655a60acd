"""The CPU engine: what the loop asks, by steps over blocks of rows."""

from __future__ import annotations

import time
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lloydia.algorithms import CLASSES
from lloydia.algorithms.auto import Auto, may_take
from lloydia.algorithms.filtering import MOST_FEATURES
from lloydia.algorithms.geometry import Padding
from lloydia.algorithms.lloyd import Lloyd
from lloydia.backends.cpu.clusters import Clusters
from lloydia.backends.cpu.rows.features import EVERY
from lloydia.backends.cpu.rows.placed import NONE
from lloydia.backends.cpu.scan import tile_scores
from lloydia.backends.cpu.scan.centers import Packed
from lloydia.backends.cpu.scan.held import Held
from lloydia.backends.cpu.scan.scanners import Leading
from lloydia.backends.cpu.steps import Tally, maker
from lloydia.backends.engine import UNLIMITED, Engine, Ready, Report
from lloydia.exact import sums as exact
from lloydia.imports import load
from lloydia.spelling import option

if TYPE_CHECKING:
    from lloydia.backends.cpu.accelerated.tiles import Tiles

__all__ = ["CPU"]

# k-means||, imported when it is first used.
OVERSAMPLING = "lloydia.backends.cpu.seeding.oversampling"


class CPU(Clusters, Engine):
    """The engine for NumPy arrays and CSR matrices; see :class:`lloydia.backends.engine.Engine`.

    Parameters
    ----------
    X : ndarray of shape (n, d), or CSR matrix
    weights : ndarray of shape (n,), float64, or None
    n_threads : int or None
    spare : float
        Bytes a row that ``"auto"`` may take for bounds of groups of centres, or of single ones.
    """

    held: Held | None = None
    # Whether auto may keep a bound for each centre of each row.
    single = True

    def __init__(
        self, X: Any, weights: NDArray | None, n_threads: int | None, spare: float = np.inf
    ) -> None:
        super().__init__(X, weights, n_threads)
        self.spare = spare
        self.bounds: Any = None
        self.n_distances = self.n_rechecked = self.iteration = 0
        self.algorithm = "lloyd"
        self.auto: Auto | None = None
        self.packed: Packed | None = None
        # The scan of the rows that are held, and what centres are packed into for it.
        self.scan: tuple[Any, Any, Any] = None, None, None
        self.leading = Leading()
        # As last measured.
        self.D: NDArray[np.float64] = NONE
        self.fresh: NDArray[np.int32] = np.empty((self.n_threads, 0), dtype=np.int32)
        # Whether there are labels in the order of the tiles that are not in `_assigned` yet.
        self.behind = False

    def mean_variance(self) -> float:
        n, d = self.n_samples, self.n_features
        # The rows as one cluster; after an iteration the sums of all clusters are known.
        one = self if self.iteration else self.as_one()
        sums = one.sums.sum(axis=(0, 2), keepdims=True)
        all_of_it, none = np.ones((1, 1), dtype=np.bool_), np.zeros(1, dtype=np.bool_)
        mean, _ = one.means(sums, all_of_it, np.zeros((1, d), dtype=self.dtype), none)
        grid = exact.total_grid(n, self.measure_to(mean))
        cost = exact.join(self.cost(grid).tolist(), *grid)
        return cost / (self.total_weight() * d)

    def as_one(self) -> CPU:
        """Return the same rows on the same grid, all in cluster 0."""
        one = CPU(self.source, self.given_weights, self.n_threads)
        one.set_grid(self.magnitudes())
        one.start(np.zeros((1, self.n_features), dtype=self.dtype), "lloyd")
        zeros = np.zeros(self.n_samples, dtype=np.int32)
        one.each_block(lambda t, a, b: one.move(t, EVERY, a, b, zeros[a:b]), 5.0 + 2.0 * self.width)
        return one

    def seed_choose(
        self, key: int, factor: float, total: int, before: int, grid: tuple[int, int]
    ) -> NDArray[np.int64]:
        """Choose rows, each on its own; `before` rows of other parts come first."""
        return load(OVERSAMPLING).sample(self, key, factor, total, before, grid)

    def seed_spread(self, centers: NDArray) -> float:
        """Make several rows, dense, seeds; return the largest weight times D."""
        load(OVERSAMPLING).extend(self, np.ascontiguousarray(centers, dtype=self.dtype))
        return self.look()

    def seed_sample(self, key: int, factor: float) -> NDArray[np.int64]:
        grid = self.terms_grid()
        return self.seed_choose(key, factor, self.seed_total(grid), 0, grid)

    def seed_extend(self, rows: NDArray[np.int64]) -> None:
        self.seed_spread(self.rows(rows))

    def seed_loads(self) -> NDArray[np.int64]:
        return load(OVERSAMPLING).loads(self)

    def subset(self, rows: NDArray[np.int64], weights: NDArray[np.float64]) -> CPU:
        return CPU(self.source[rows], weights, self.n_threads)

    @cached_property
    def tiles(self) -> Tiles:
        """The rows in the order of a space-filling curve."""
        if self.sparse:
            raise ValueError(
                f"{option('algorithm', 'filtering')} takes dense data: use "
                f"{option('algorithm', 'lloyd')} for sparse data."
            )
        if self.n_features > MOST_FEATURES:
            raise ValueError(
                f"{option('algorithm', 'filtering')} takes at most {MOST_FEATURES} features and X "
                f"has {self.n_features}: use {option('algorithm', 'auto')}."
            )
        return load("lloydia.backends.cpu.accelerated.tiles").Tiles.of(self)

    @property
    def assigned(self) -> NDArray[np.int32]:
        """The labels by row, -1 before the first assignment."""
        if self.behind:
            self.behind = False
            tiles, b = self.tiles, self.bounds
            write = load("lloydia.backends.cpu.accelerated.filtering").labels_by_row
            self.each_block(
                lambda t, start, stop: write(
                    tiles.levels, b.owner, b.held, tiles.order, start, stop, self._assigned
                ), 5.0,
            )  # fmt: skip
        return self._assigned

    @assigned.setter
    def assigned(self, labels: NDArray[np.int32]) -> None:
        self.behind = False
        self._assigned: NDArray[np.int32] = labels

    def start(
        self, centers: NDArray, algorithm: str, settles: bool = True, max_iter: int = UNLIMITED
    ) -> None:
        self.forget_seeds()
        # Those of the last run, before memory for others is looked for.
        self.bounds = None
        self.leading = Leading()
        k, d = len(centers), self.n_features
        self.auto = None
        if algorithm == "auto":
            units = tile_scores.WHOLE and d >= tile_scores.COARSE
            ordered = "tiles" in self.__dict__
            n, row = self.n_samples, d * self.dtype.itemsize
            # Of numbers alone: what knew of this would keep it in memory.
            allows = partial(may_take, n, k, row, self.spare, self.single)
            self.auto = Auto(n, d, k, self.sparse, ordered, units, max_iter, allows)
        self.algorithm = self.auto.using if self.auto else algorithm
        self.initial = centers
        self.begin_bounds()
        self.current = self.used = np.ascontiguousarray(centers, dtype=self.dtype)
        self.assigned = self.new_labels()
        self.iteration, self.n_changed = 0, self.n_samples
        self.latest: float | None = None
        self.empty = np.zeros(k, dtype=np.bool_)
        self.begin_sums(k)
        self.hold()

    def hold(self) -> None:
        """Hold the rows of this run in their frame, if they are few."""
        if self.held is None and not self.sparse:
            self.held = Held.of(self.source)

    def new_labels(self) -> NDArray[np.int32]:
        """Return labels before the first assignment."""
        return np.full(self.n_samples, -1, dtype=np.int32)

    def begin_bounds(self) -> None:
        """Begin with the state of the algorithm, of which nothing is known yet."""
        # Two are never in memory.
        self.bounds = None
        kind, k = CLASSES[self.algorithm], len(self.initial)
        if kind is Lloyd:
            self.bounds = kind()
            return
        # Every later centre is a mean of rows, or one of the initial ones.
        magnitudes = np.maximum(self.magnitudes().largest, np.abs(self.initial).max(axis=0))
        self.bounds = kind(self.n_samples, k, Padding.of(magnitudes, self.dtype))

    def assign(self) -> None:
        self.last = True
        self._assign()

    def classify(self, centers: NDArray) -> None:
        self.algorithm = "lloyd"
        self.current = self.used = np.ascontiguousarray(centers, dtype=self.dtype)
        self.assigned = self.new_labels()
        self.assign()

    def _assign(self) -> None:
        before, self.used = self.used, self.current
        # At most about as many rows change as last time.
        changing = 0.0 if self.last else self.n_changed / self.n_samples
        cost = 1.0 + 0.2 * self.width + len(self.used) * (0.02 + 0.012 * self.width)
        cost += changing * (8.0 + self.width)
        n = self.n_samples
        block = min(self.block(cost), n)
        tally = Tally(self.room(block))
        step = maker(self.algorithm)(self, before, tally)
        if block == n:
            # Few rows take less time than what follows.
            self.n_changed = step(0, 0, n)
            self.n_distances += tally.evaluated[0]
            self.n_rechecked += tally.rechecked[0]
            return

        def task(thread: int, start: int, stop: int) -> None:
            tally.changed[thread] += step(thread, start, stop)

        self.each_block(task, cost)
        self.n_changed = sum(tally.changed)
        self.n_distances += sum(tally.evaluated)
        self.n_rechecked += sum(tally.rechecked)

    def room(self, block: int) -> NDArray[np.int32]:
        """Return memory for a block's labels for each thread: mostly the same as before.

        To be given new pages takes the system half as long as a scan of few centres takes.
        """
        if self.fresh.shape[1] < block:
            self.fresh = np.empty((self.n_threads, block), dtype=np.int32)
        return self.fresh[:, :block]

    def change(self, algorithm: str) -> None:
        """Go on with another algorithm."""
        # In the order of the rows, whatever the old one's is.
        self.assigned = self.assigned
        self.algorithm = algorithm
        self.begin_bounds()

    def assign_and_choose(self) -> None:
        """Assign every row, and choose how the next time."""
        began = time.perf_counter()
        self._assign()
        seconds, moving = time.perf_counter() - began, self.n_changed / self.n_samples
        if self.auto and (chosen := self.auto.after(seconds, moving)) != self.algorithm:
            self.change(chosen)

    def iterate(self, inertia: bool) -> Ready:
        self.assign_and_choose()
        self.iteration += 1
        self.latest = self.inertia() if inertia else None
        return Ready(self.finish(self.sums))

    def finish(self, parts: NDArray[np.int64]) -> Report:
        """Compute the centres from the threads' sums; those of empty clusters stay."""
        self.current, summary = self.means(parts, self.touched, self.used, self.empty)
        return Report(self.iteration, self.n_samples, self.n_changed, *summary, self.latest)

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
        limbs, k, m = self.limbs(rows), len(self.used), self.n_features + 1
        parts = self.sums.copy()
        parts[0, :, :, :m] += exact.accumulate(limbs, clusters, k)
        parts[0, :, :, :m] -= exact.accumulate(limbs, self.assigned[rows], k)
        self.touched[:] = True
        report = self.finish(parts)
        # These centres are not the means of the sums that stay.
        self.touched[:] = True
        return report

    def measure_to(self, mean: NDArray) -> float:
        """Compute every row's D to one point; return the largest weight times D."""
        self.D = self.own_distances(np.zeros(self.n_samples, dtype=np.int32), mean, self.D)
        return self.largest_cost(self.D)

    def measure(self) -> float:
        """Compute every row's D to its centre; return the largest weight times D."""
        self.D = self.own_distances(self.assigned, self.used, self.D)
        return self.largest_cost(self.D)

    def cost(self, grid: tuple[int, int]) -> NDArray[np.int64]:
        """Return the limbs of the sum of weight times D, as measured."""
        return self.total_limbs(self.D, self.weights, grid)

    def inertia(self) -> float:
        grid = exact.total_grid(self.n_samples, self.measure())
        return exact.join(self.cost(grid).tolist(), *grid)

    def labels(self) -> NDArray[np.int32]:
        return self.assigned

    def centers(self) -> NDArray:
        return self.current
