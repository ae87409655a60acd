"""A data set in this process's memory: rows, weights, threads, and the grid of its sums."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from lloydia.backends.cpu.rows.distances import (
    own_distances,
    own_distances_of,
    sparse_own_distances,
    squared_distances,
)
from lloydia.backends.cpu.rows.read_only import as_writable
from lloydia.backends.cpu.runtime import pool
from lloydia.backends.cpu.runtime.compiled import is_compiled
from lloydia.backends.cpu.runtime.pool import Task
from lloydia.backends.cpu.simd.limbs import padded
from lloydia.backends.cpu.simd.microkernel_low_dim import LOW_DIM
from lloydia.backends.cpu.update import sums
from lloydia.data.weights import positive_rows
from lloydia.exact import sums as exact

__all__ = ["NONE", "Dataset"]

# Nanoseconds that a block of rows should take at least, and that all rows must take for a second
# thread to be woken.
SHORTEST, WAKING = 100_000.0, 300_000.0

# The largest block: what one kernel writes is still in the cache when the next one reads it.
MAX_BLOCK_ROWS = 1 << 16

# Several short rows are measured as one row of this many numbers.
NUMBERS_AT_ONCE = 128

# For kernels: no weights, or no output.
NONE = np.empty(0)


class Dataset:
    """Rows on the CPU; see :class:`lloydia.backends.engine.Engine` for what the methods mean.

    Parameters
    ----------
    X : ndarray (n, d), or CSR matrix in canonical format
    weights : ndarray (n,), float64, or None
    n_threads : int or None
        None: as many as this process may use.

    Attributes
    ----------
    source : ndarray (n, d), or CSR matrix
        The rows as they were given.
    X : ndarray (n, d), or (data, indices, indptr)
        The rows as kernels take them.
    sparse : bool
    weights : ndarray (n,), float64
        Empty without weights.
    width : float
        Numbers stored for a row.  Estimates of the cost of a pass over the rows use it.
    """

    def __init__(self, X: Any, weights: NDArray | None, n_threads: int | None) -> None:
        self.n_samples, self.n_features = X.shape
        self.dtype = X.dtype
        self.sparse = sp.issparse(X)
        self.source: Any = X if self.sparse else as_writable(X)
        self.X = self.source
        if self.sparse:
            self.X = tuple(as_writable(part) for part in (X.data, X.indices, X.indptr))
        self.weights = NONE if weights is None else weights
        self.n_threads = pool.threads_of(n_threads)
        self.width = X.nnz / self.n_samples if self.sparse else self.n_features
        self._grid: exact.Grid | None = None
        self._magnitudes: exact.Magnitudes | None = None

    def __reduce__(self) -> NoReturn:
        # A copy of NONE is not NONE: kernels would read weights that are not there.
        raise TypeError("An engine cannot be copied or pickled: make another one of its rows.")

    @property
    def is_compiled(self) -> bool:
        """Whether kernels of an inertia were compiled, in this process or an earlier one."""
        return is_compiled(sums.total_terms)

    def attach(self, rows: NDArray | None) -> None:
        """Replace dense rows; None releases them until the same rows are attached again."""
        self.X = self.source = None if rows is None else as_writable(rows)

    def block(self, cost: float, n: int | None = None) -> int:
        """Return how many rows (or others of `n` items) a block has.

        `cost` estimates the nanoseconds of one row.  A block takes long enough that handing it out
        adds little, and each thread gets a few blocks.
        """
        n = self.n_samples if n is None else n
        if n * cost < WAKING:
            return max(n, 1)
        return max(min(-(-n // (4 * self.n_threads)), MAX_BLOCK_ROWS), int(SHORTEST / cost), 1)

    def each_block(self, task: Task, cost: float, n: int | None = None) -> None:
        """Run a task over blocks of rows (or of `n` other items) on the threads."""
        n = self.n_samples if n is None else n
        block = self.block(cost, n)
        if 0 < n <= block:
            task(0, 0, n)
        else:
            pool.run(task, n, block, self.n_threads, min(block, 1 + int(SHORTEST / cost)))

    def magnitudes(self) -> exact.Magnitudes:
        if self._magnitudes is None:
            weights = None if self.weights is NONE else self.weights
            self._magnitudes = exact.Magnitudes(
                self.n_samples, *self._measure(), *exact.weight_magnitudes(weights)
            )
        return self._magnitudes

    def _measure(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the largest and the smallest non-zero magnitude of each feature: shape (d,)."""
        d, X = self.n_features, self.source
        # Several short rows are measured as one, so that they fill vectors.
        several = NUMBERS_AT_ONCE // d if not self.sparse and X.flags.c_contiguous else 0
        if several < 2 or self.n_samples < NUMBERS_AT_ONCE * several:
            return self._fold_magnitudes(self.X, self.n_samples)
        n_whole = self.n_samples // several * several
        parts = [(X[:n_whole].reshape(-1, several * d), n_whole // several)]
        if n_whole < self.n_samples:
            parts.append((X[n_whole:], self.n_samples - n_whole))
        found = zip(*(self._fold_magnitudes(*part) for part in parts), strict=True)
        largest, smallest = (np.concatenate(part).reshape(-1, d) for part in found)
        return largest.max(axis=0), smallest.min(axis=0)

    def _fold_magnitudes(self, X: Any, n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the magnitudes of `n` rows of any shape."""
        d = self.n_features if self.sparse else X.shape[1]
        # Dense rows are not converted: a vector holds twice as many float32.
        kind = np.float64 if self.sparse else self.dtype
        largest = np.zeros((self.n_threads, d), kind)
        smallest = np.full((self.n_threads, d), np.inf, kind)
        fold = sums.fold_sparse_magnitudes if self.sparse else sums.fold_magnitudes

        def task(thread: int, start: int, stop: int) -> None:
            fold(X, start, stop, largest[thread], smallest[thread])

        self.each_block(task, 1.0 + 0.3 * (self.width if self.sparse else d), n)
        return largest.max(axis=0).astype(float), smallest.min(axis=0).astype(float)

    def set_grid(self, magnitudes: exact.Magnitudes) -> None:
        self._magnitudes, self._grid = magnitudes, exact.Grid.choose(magnitudes, self.dtype)
        for name in ("scaled_weights", "fixed_point_grid", "mean_scale"):
            self.__dict__.pop(name, None)

    @property
    def grid(self) -> exact.Grid:
        """The grid of all sums; it follows from this data set's magnitudes unless it was set."""
        if self._grid is None:
            self.set_grid(self.magnitudes())
        assert self._grid is not None
        return self._grid

    @cached_property
    def scaled_weights(self) -> NDArray[np.float64]:
        """The weights divided by two to the grid's exponent of weights; empty without weights."""
        if self.weights is NONE:
            return NONE
        return np.ldexp(self.weights, -self.grid.weight_exponent)

    @cached_property
    def fixed_point_grid(self) -> tuple[Any, ...]:
        """The grid as the kernels of :mod:`update.sums` take it."""
        grid, m = self.grid, self.n_features + 1
        columns = np.zeros((3, m if self.sparse else padded(m)))
        columns[:, :m] = grid.scale, grid.quantum, 1.0 / grid.quantum
        return (*columns, 2.0**grid.bits, grid.recover)

    @cached_property
    def mean_scale(self) -> tuple[int, NDArray[np.float64], bool]:
        """The bits per limb, two to the exponents of the grid, and whether centres are float64."""
        return self.grid.bits, np.ldexp(1.0, self.grid.exponents), self.dtype == np.float64

    def rows(self, indices: NDArray[np.int64]) -> NDArray:
        rows = self.source[indices]
        return (rows.toarray() if self.sparse else rows) + 0.0

    def seed_weights(self) -> NDArray[np.float64] | None:
        return None if self.weights is NONE else self.weights

    def weights_of(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the weights of some rows."""
        return np.ones(len(rows)) if self.weights is NONE else self.weights[rows]

    def positive_rows(self, count: int) -> NDArray[np.int64]:
        return positive_rows(self.seed_weights(), self.n_samples, count)

    def own_distances(
        self, labels: NDArray[np.int32], centers: NDArray, D: NDArray[np.float64] = NONE
    ) -> NDArray[np.float64]:
        """Return the D of every row to the centre of its label, shape (n,): in `D`, if given."""
        D, d = D if len(D) else np.empty(self.n_samples), self.n_features
        wide: NDArray = centers.astype(np.float64)
        X, kernel = self.X, sparse_own_distances if self.sparse else own_distances
        if not self.sparse and d <= LOW_DIM and self.source.flags.c_contiguous:
            X, wide, kernel = self.source.reshape(-1), wide.reshape(-1), own_distances_of(d)
        self.each_block(lambda t, a, b: kernel(X, a, b, labels, wide, D), 1.0 + 0.5 * d)
        return D

    def largest_cost(self, D: NDArray[np.float64]) -> float:
        """Return the largest weight times D."""
        return float((D if self.weights is NONE else self.weights * D).max())

    def total_weight(self) -> float:
        """Return the sum of the weights: see :func:`lloydia.exact.sums.total_weight`."""
        if self.weights is NONE:
            return float(self.n_samples)
        grid = exact.total_grid(self.n_samples, float(self.weights.max()))
        return exact.join(self.total_limbs(self.weights, NONE, grid).tolist(), *grid)

    def total_limbs(
        self, D: NDArray[np.float64], weights: NDArray[np.float64], grid: tuple[int, int]
    ) -> NDArray[np.int64]:
        """Return the limbs of the sum of weight times D, or of D where `weights` are NONE.

        See :func:`lloydia.exact.sums.total`.
        """
        bits, exponent = grid
        low, high = exact.two_factors(-exponent)
        limbs = np.zeros((self.n_threads, exact.TOTAL_LIMBS), dtype=np.int64)

        def add(thread: int, start: int, stop: int) -> None:
            of_block = np.zeros(exact.TOTAL_LIMBS, dtype=np.int64)
            sums.total_terms(D, weights, start, stop, low, high, 2.0**bits, of_block)
            limbs[thread] += of_block

        self.each_block(add, 0.5)
        return limbs.sum(axis=0)

    def limbs(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the integers that some rows add to their clusters; see exact.sums.limbs."""
        weights = None if self.weights is NONE else self.weights[rows]
        return exact.limbs(self.rows(rows), weights, self.grid)

    def distances(self, centers: NDArray) -> NDArray:
        out = np.empty((self.n_samples, len(centers)), dtype=self.dtype)
        columns = np.ascontiguousarray(centers.T, dtype=np.float64)

        def task(thread: int, start: int, stop: int) -> None:
            D = np.empty((stop - start, len(centers)))
            squared_distances(self.X, start, stop, columns, D, 0)
            out[start:stop] = np.sqrt(D, out=D)

        self.each_block(task, 0.3 * centers.size)
        return out
