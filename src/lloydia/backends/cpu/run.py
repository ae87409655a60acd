"""A run on the CPU: labels, bounds and centres, by steps over blocks of rows."""

from __future__ import annotations

import time
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lloydia.algorithms import CLASSES
from lloydia.algorithms.auto import Auto, may_take
from lloydia.algorithms.filtering import MAX_FEATURES
from lloydia.algorithms.geometry import Padding
from lloydia.algorithms.lloyd import Lloyd
from lloydia.backends.cpu.clusters import Clusters
from lloydia.backends.cpu.memory import OwnMemory, RunMemory
from lloydia.backends.cpu.rows.dataset import NONE, Dataset
from lloydia.backends.cpu.rows.features import EVERY
from lloydia.backends.cpu.runtime.compiled import is_compiled
from lloydia.backends.cpu.scan import tile_scores
from lloydia.backends.cpu.scan.framed_cache import FramedCache
from lloydia.backends.cpu.scan.scanners import Bf16Prefilter
from lloydia.backends.cpu.steps import Tally, maker
from lloydia.backends.reports import Report
from lloydia.exact import sums as exact
from lloydia.exact.means import center_magnitudes
from lloydia.imports import load
from lloydia.spelling import option

if TYPE_CHECKING:
    from lloydia.backends.cpu.accelerated.tiles import Tiles

__all__ = ["Run"]


class Run:
    """The labels and centres of a run, and its other state between iterations.

    Methods of :class:`lloydia.backends.engine.Engine` or :class:`lloydia.backends.part.Part` have
    the same meaning here.

    Parameters
    ----------
    dataset : Dataset
    spare : float
        Bytes per row that ``"auto"`` may take for bounds of groups of centres or of single centres.
    bounds_per_center : bool
        Whether ``"auto"`` may keep a bound for each centre of each row.
    memory : RunMemory, optional
        The arrays of labels and sums; by default nothing else uses them.

    Attributes
    ----------
    clusters : Clusters
    current, used : ndarray of shape (k, d)
        The centres, and those that the rows were last assigned to.
    bounds : object
        The state of the algorithm, of :mod:`lloydia.algorithms`.
    last : bool
        Whether the rows are assigned for the last time: sums then stay as they are.
    scan : tuple
        The rows in the framed cache, the packed centres, and the scan made for both.
    framed_cache : FramedCache or None
    bf16_prefilter : Bf16Prefilter
    D : ndarray of shape (n,), float64
        The distances that were last measured.
    labels_in_tiles : bool
        Whether `bounds` has newer labels than `assigned`, in the order of the tiles.
    """

    def __init__(
        self,
        dataset: Dataset,
        spare: float = np.inf,
        bounds_per_center: bool = True,
        memory: RunMemory | None = None,
    ) -> None:
        self.dataset, self.clusters = dataset, Clusters(dataset)
        self.spare, self.bounds_per_center = spare, bounds_per_center
        self.memory: RunMemory = OwnMemory() if memory is None else memory
        self.bounds: Any = None
        self.n_distances = self.n_rechecked = self.iteration = 0
        self.algorithm = "lloyd"
        self.auto: Auto | None = None
        self.last = False
        self.framed_cache: FramedCache | None = None
        self.scan: tuple[Any, Any, Any] = None, None, None
        self.bf16_prefilter = Bf16Prefilter()
        self.D: NDArray[np.float64] = NONE
        self._fresh: NDArray[np.int32] = np.empty((dataset.n_threads, 0), dtype=np.int32)
        self.labels_in_tiles = False

    @cached_property
    def tiles(self) -> Tiles:
        """The rows in the order of a space-filling curve."""
        if self.dataset.sparse:
            raise ValueError(
                f"{option('algorithm', 'filtering')} takes dense data: use "
                f"{option('algorithm', 'lloyd')} for sparse data."
            )
        if self.dataset.n_features > MAX_FEATURES:
            raise ValueError(
                f"{option('algorithm', 'filtering')} takes at most {MAX_FEATURES} features and X "
                f"has {self.dataset.n_features}: use {option('algorithm', 'auto')}."
            )
        return load("lloydia.backends.cpu.accelerated.tiles").Tiles.of(self.dataset)

    @property
    def assigned(self) -> NDArray[np.int32]:
        """The labels by row, -1 before the first assignment."""
        if self.labels_in_tiles:
            self.labels_in_tiles = False
            tiles, b = self.tiles, self.bounds
            write = load("lloydia.backends.cpu.accelerated.filtering").labels_by_row
            self.dataset.each_block(
                lambda t, start, stop: write(tiles, b, start, stop, self._assigned), 5.0
            )
        return self._assigned

    @assigned.setter
    def assigned(self, labels: NDArray[np.int32]) -> None:
        self.labels_in_tiles = False
        self._assigned: NDArray[np.int32] = labels

    @property
    def is_compiled(self) -> bool:
        """Whether kernels of runs were compiled, in this process or an earlier one."""
        return is_compiled(self.clusters.kernel)

    def start(self, centers: NDArray, algorithm: str, max_iter: int) -> None:
        """Begin a run from these centres."""
        # Frees the bounds of the previous run, so that `allows` counts their memory as free.
        self.bounds = None
        self.bf16_prefilter = Bf16Prefilter()
        dataset, k, d = self.dataset, len(centers), self.dataset.n_features
        self.auto = None
        if algorithm == "auto":
            matrix_units = tile_scores.AMX and d >= tile_scores.PREFILTER_FEATURES
            ordered = "tiles" in self.__dict__
            n, row_bytes = dataset.n_samples, d * dataset.dtype.itemsize
            # No reference to self, which a cycle would keep in memory.
            allows = partial(may_take, n, k, row_bytes, self.spare, self.bounds_per_center)
            self.auto = Auto(n, d, k, dataset.sparse, ordered, matrix_units, max_iter, allows)
        self.algorithm = self.auto.using if self.auto else algorithm
        self.initial = centers
        self._begin_bounds()
        self.current = self.used = np.ascontiguousarray(centers, dtype=dataset.dtype)
        self.assigned = self.memory.new_labels(dataset.n_samples)
        self.iteration, self.n_changed = 0, dataset.n_samples
        self.latest: float | None = None
        self.empty = np.zeros(k, dtype=np.bool_)
        self.memory.begin_sums(self.clusters, k)
        self.last = False
        if self.framed_cache is None:
            self.framed_cache = self.memory.framed_cache(dataset)

    def _begin_bounds(self) -> None:
        """Begin with the state of the algorithm, without any bound."""
        # Frees the old state first, so that two are never in memory.
        self.bounds = None
        kind, k = CLASSES[self.algorithm], len(self.initial)
        if kind is Lloyd:
            self.bounds = kind()
            return
        magnitudes = center_magnitudes(self.dataset.magnitudes().largest, self.initial)
        self.bounds = kind(self.dataset.n_samples, k, Padding.of(magnitudes, self.dataset.dtype))

    def assign(self) -> None:
        self.last = True
        self._assign()

    def classify(self, centers: NDArray) -> None:
        self.algorithm = "lloyd"
        self.current = self.used = np.ascontiguousarray(centers, dtype=self.dataset.dtype)
        self.assigned = self.memory.new_labels(self.dataset.n_samples)
        self.assign()

    def nearest_of(self, centers: NDArray) -> NDArray[np.int32]:
        """Return the label of every row's nearest centre."""
        self.classify(centers)
        return self.assigned

    def _assign(self) -> None:
        before, self.used = self.used, self.current
        dataset = self.dataset
        n, width = dataset.n_samples, dataset.width
        # Estimates that no more rows change than in the last assignment.
        changing = 0.0 if self.last else self.n_changed / n
        cost = 1.0 + 0.2 * width + len(self.used) * (0.02 + 0.012 * width)
        cost += changing * (8.0 + width)
        block = min(dataset.block(cost), n)
        tally = Tally(self._fresh_labels(block))
        step = maker(self.algorithm)(self, before, tally)
        if block == n:
            # For few rows, handing out blocks would take longer than the step.
            self.n_changed = step(0, 0, n)
            self.n_distances += tally.evaluated[0]
            self.n_rechecked += tally.rechecked[0]
            return

        def task(thread: int, start: int, stop: int) -> None:
            tally.changed[thread] += step(thread, start, stop)

        dataset.each_block(task, cost)
        self.n_changed = sum(tally.changed)
        self.n_distances += sum(tally.evaluated)
        self.n_rechecked += sum(tally.rechecked)

    def _fresh_labels(self, block: int) -> NDArray[np.int32]:
        """Return scratch for a block's labels for each thread.

        The memory is reused: new pages would take half as long as a scan of few centres.
        """
        if self._fresh.shape[1] < block:
            self._fresh = np.empty((self.dataset.n_threads, block), dtype=np.int32)
        return self._fresh[:, :block]

    def move(self, thread: int, rows: NDArray, start: int, stop: int, fresh: NDArray) -> int:
        """Give a block of a list of rows their fresh labels; return how many changed."""
        if self.last:
            self.assigned[slice(start, stop) if rows is EVERY else rows[start:stop]] = fresh[
                : stop - start
            ]
            return 0
        return self.clusters.move(thread, rows, start, stop, fresh, self.assigned)

    def change(self, algorithm: str) -> None:
        """Continue with another algorithm."""
        # Copies the labels first: the bounds, which may hold them, are replaced.
        self.assigned = self.assigned
        self.algorithm = algorithm
        self._begin_bounds()

    def assign_and_choose(self) -> None:
        """Assign every row; ``"auto"`` then chooses the algorithm of the next assignment."""
        began = time.perf_counter()
        self._assign()
        seconds, changed = time.perf_counter() - began, self.n_changed / self.dataset.n_samples
        if self.auto and (chosen := self.auto.after(seconds, changed)) != self.algorithm:
            self.change(chosen)

    def iterate(self, inertia: bool) -> Report:
        """Assign every row and update the centres."""
        self.assign_and_choose()
        self.iteration += 1
        self.latest = self.inertia() if inertia else None
        return self._finish(self.clusters.sums)

    def _finish(self, parts: NDArray[np.int64]) -> Report:
        """Compute the centres from the threads' sums; those of empty clusters stay."""
        clusters = self.clusters
        self.current, summary = clusters.means(parts, clusters.touched, self.used, self.empty)
        n = self.dataset.n_samples
        return Report(self.iteration, n, self.n_changed, *summary, self.latest)

    def empty_clusters(self) -> NDArray[np.int64]:
        return np.flatnonzero(self.empty)

    def farthest(self, count: int) -> tuple[NDArray, NDArray, NDArray]:
        dataset = self.dataset
        D = dataset.own_distances(self.assigned, self.used)
        rows = dataset.positive_rows(dataset.n_samples)
        if count < len(rows):
            # All rows at least as far as the count-th; the sort below decides ties.
            threshold = np.partition(D[rows], len(rows) - count)[len(rows) - count]
            rows = rows[D[rows] >= threshold]
        rows = rows[np.lexsort((rows, -D[rows]))][:count]
        return rows, D[rows], self.assigned[rows]

    def counts(self) -> NDArray[np.int64]:
        weights = self.dataset.weights
        labels = self.assigned if weights is NONE else self.assigned[weights > 0]
        return np.bincount(labels, minlength=len(self.used))

    def relocate(self, rows: NDArray[np.int64], clusters: NDArray[np.int64]) -> Report:
        limbs, k, m = self.dataset.limbs(rows), len(self.used), self.dataset.n_features + 1
        parts, touched = self.clusters.sums.copy(), self.clusters.touched
        parts[0, :, :, :m] += exact.accumulate(limbs, clusters, k)
        parts[0, :, :, :m] -= exact.accumulate(limbs, self.assigned[rows], k)
        touched[:] = True
        report = self._finish(parts)
        # The sums do not change, so that these centres are not their means.
        touched[:] = True
        return report

    def mean_variance(self) -> float:
        dataset = self.dataset
        # After an iteration every row is in one of the clusters.
        clusters = self.clusters if self.iteration else Clusters.of_all_rows(dataset)
        sums = clusters.sums.sum(axis=(0, 2), keepdims=True)
        touched, empty = np.ones((1, 1), dtype=np.bool_), np.zeros(1, dtype=np.bool_)
        mean, _ = clusters.means(
            sums, touched, np.zeros((1, dataset.n_features), dtype=dataset.dtype), empty
        )
        grid = exact.total_grid(dataset.n_samples, self.measure_to(mean))
        cost = exact.join(self.cost(grid).tolist(), *grid)
        return cost / (dataset.total_weight() * dataset.n_features)

    def measure_to(self, mean: NDArray) -> float:
        """Compute every row's D to one point; return the largest weight times D."""
        zeros = np.zeros(self.dataset.n_samples, dtype=np.int32)
        self.D = self.dataset.own_distances(zeros, mean, self.D)
        return self.dataset.largest_cost(self.D)

    def measure(self) -> float:
        """Compute every row's D to its centre; return the largest weight times D."""
        self.D = self.dataset.own_distances(self.assigned, self.used, self.D)
        return self.dataset.largest_cost(self.D)

    def cost(self, grid: tuple[int, int]) -> NDArray[np.int64]:
        """Return the limbs of the sum of weight times D, as measured."""
        return self.dataset.total_limbs(self.D, self.dataset.weights, grid)

    def inertia(self) -> float:
        grid = exact.total_grid(self.dataset.n_samples, self.measure())
        return exact.join(self.cost(grid).tolist(), *grid)
