"""The integer sums of the rows of each cluster, one copy for each thread, and their means."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cpu.rows.dataset import Dataset
from lloydia.backends.cpu.rows.features import EVERY
from lloydia.backends.cpu.scan.centers import aligned
from lloydia.backends.cpu.simd.limbs import padded
from lloydia.backends.cpu.update import sums as kernels
from lloydia.backends.cpu.update.means import finish, summarise
from lloydia.exact.means import means

__all__ = ["Clusters"]


class Clusters:
    """Sums of the rows of each cluster.

    Parameters
    ----------
    dataset : Dataset

    Attributes
    ----------
    sums : ndarray of shape (n_threads, n_limbs, k, d + 1 or more), int64
    touched : ndarray of shape (n_threads, k or more), bool
        Whether a thread changed a cluster's sums since its mean was taken.
    kernel : callable
        Adds up rows.
    """

    sums: NDArray[np.int64]
    touched: NDArray[np.bool_]

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset
        self.kernel = kernels.sparse_accumulate if dataset.sparse else kernels.accumulate

    @classmethod
    def of_all_rows(cls, dataset: Dataset) -> Clusters:
        """Return the sums of all rows as one cluster."""
        clusters, n = cls(dataset), dataset.n_samples
        clusters.begin(1)
        zeros, labels = np.zeros(n, dtype=np.int32), np.full(n, -1, dtype=np.int32)
        dataset.each_block(
            lambda t, a, b: clusters.move(t, EVERY, a, b, zeros[a:b], labels),
            5.0 + 2.0 * dataset.width,
        )
        return clusters

    def begin(self, k: int) -> None:
        """Begin with `k` clusters that have no rows."""
        dataset = self.dataset
        # Aligned, so that no two threads write to one cache line.
        shape = dataset.n_threads, dataset.grid.n_limbs, k, padded(dataset.n_features + 1)
        sums, touched = aligned(shape, np.int64), aligned((shape[0], -(-k // 64) * 64), np.bool_)
        sums[:] = 0
        touched[:] = True
        self.use(sums, touched)

    def use(self, sums: NDArray[np.int64], touched: NDArray[np.bool_]) -> None:
        """Use these arrays, which may be shared by several data sets."""
        self.sums, self.touched = sums, touched
        dataset = self.dataset
        # Looked up once per run, because an iteration on few rows takes some microseconds.
        self._fixed = dataset.scaled_weights, dataset.fixed_point_grid

    def move(
        self,
        thread: int,
        rows: NDArray,
        start: int,
        stop: int,
        fresh: NDArray,
        labels: NDArray[np.int32],
    ) -> int:
        """Move a block of a list of rows to their fresh labels; return how many changed.

        Parameters
        ----------
        thread : int
            Its sums change.
        rows : IN, ndarray of int64
            A list of rows, or EVERY.
        start, stop : int
            The block of the list.
        fresh : IN, ndarray (stop - start or more,), int32
            The new labels.
        labels : IN/OUT, ndarray (n,), int32
        """
        return self.kernel(
            self.dataset.X, rows, start, stop, *self._fixed, fresh, labels, self.sums[thread],
            self.touched[thread],
        )  # fmt: skip

    @cached_property
    def scratch(self) -> list[NDArray[np.float64]]:
        """Each thread's scratch for means."""
        m = padded(self.dataset.n_features + 1)
        return [np.empty((2, m)) for _ in range(self.dataset.n_threads)]

    def integers(self) -> NDArray[np.int64]:
        """Return the sums of the clusters: shape (n_limbs, k, d + 1)."""
        return self.sums.sum(axis=0)[:, :, : self.dataset.n_features + 1]

    def means(
        self,
        parts: NDArray[np.int64],
        touched: NDArray[np.bool_],
        old: NDArray,
        empty: NDArray[np.bool_],
    ) -> tuple[NDArray, tuple[int, float, float]]:
        """Return new centres, and (empty clusters, shift, move) of a report.

        Parameters
        ----------
        parts : IN, ndarray (n_threads, n_limbs, k, d + 1 or more), int64
            Sums, which add up.
        touched : IN/OUT, ndarray (n_threads, k or more), bool
            A cluster that no thread touched keeps its old centre.  False afterwards.
        old : IN, ndarray (k, d)
            The old centres; those of empty clusters stay.
        empty : IN/OUT, ndarray (k,), bool
        """
        k, d = old.shape
        new, square, move = np.empty(old.shape, self.dataset.dtype), np.empty(k), np.empty(k)
        scale = self.dataset.mean_scale
        scratch, fixed = self.scratch, (touched, *scale, old, new, empty, square, move)
        self.dataset.each_block(
            lambda t, start, stop: finish(parts, start, stop, *fixed, scratch[t]),
            2.0 * parts.size / k, k,
        )  # fmt: skip
        summary = summarise(empty, square, move)
        if math.isnan(summary[1]):
            # The kernel leaves a mean to exact.means if float64 cannot hold its sum.
            left = np.flatnonzero(np.isnan(square))
            total = parts[:, :, left, : d + 1].sum(axis=0)
            new[left] = means(total, self.dataset.grid, self.dataset.dtype)
            change = new[left].astype(np.float64) - old[left]
            # Added in the order of the features.
            square[left] = np.cumsum(np.square(change), axis=1)[:, -1]
            move[left] = np.abs(change).max(axis=1)
            summary = summarise(empty, square, move)
        return new, summary
