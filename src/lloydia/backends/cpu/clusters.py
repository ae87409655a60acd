"""Clusters as the engine keeps them: integer sums of rows, a part for each thread, and means."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cpu.rows.features import EVERY
from lloydia.backends.cpu.rows.placed import NONE
from lloydia.backends.cpu.scan.centers import aligned
from lloydia.backends.cpu.seeding.picks import Picks
from lloydia.backends.cpu.simd.limbs import padded
from lloydia.backends.cpu.update import sums
from lloydia.backends.cpu.update.means import finish, summarise
from lloydia.exact import sums as exact
from lloydia.exact.means import means

__all__ = ["Clusters"]


class Clusters(Picks):
    """Rows that are in clusters, and what these add up to.

    Attributes
    ----------
    sums : ndarray of shape (n_threads, n_limbs, k, d + 1 or more), int64
    touched : ndarray of shape (n_threads, k or more), bool
        Whether a thread changed a cluster's sums since its mean was taken.
    last : bool
        Whether rows are assigned for the last time: sums are left alone.
    """

    assigned: NDArray[np.int32]

    def begin_sums(self, k: int) -> None:
        """Begin with `k` clusters that have no rows."""
        # Threads' parts of both share no cache lines.
        shape = self.n_threads, self.grid.n_limbs, k, padded(self.n_features + 1)
        self.sums = aligned(shape, np.int64)
        self.sums[:] = 0
        self.touched = aligned((self.n_threads, -(-k // 64) * 64), np.bool_)
        self.touched[:] = True
        self.last = False

    def set_grid(self, magnitudes: exact.Magnitudes) -> None:
        super().set_grid(magnitudes)
        for name in ("scaled", "lattice", "places"):
            self.__dict__.pop(name, None)

    @cached_property
    def scaled(self) -> NDArray[np.float64]:
        """The weights on the grid."""
        if self.weights is NONE:
            return NONE
        return np.ldexp(self.weights, -self.grid.weight_exponent)

    @cached_property
    def lattice(self) -> tuple[Any, ...]:
        """The grid as the kernels of :mod:`update.sums` want it."""
        grid, m = self.grid, self.n_features + 1
        columns = np.zeros((3, m if self.sparse else padded(m)))
        columns[:, :m] = grid.scale, grid.quantum, 1.0 / grid.quantum
        return (*columns, 2.0**grid.bits, grid.recover)

    @cached_property
    def places(self) -> tuple[int, NDArray[np.float64], bool]:
        """The bits a limb, two to the exponents of the grid, and whether centres are float64."""
        return self.grid.bits, np.ldexp(1.0, self.grid.exponents), self.dtype == np.float64

    def move(self, thread: int, rows: NDArray, start: int, stop: int, fresh: NDArray) -> int:
        """Move a block of a list of rows to their fresh labels; return how many changed."""
        if self.last:
            self.assigned[slice(start, stop) if rows is EVERY else rows[start:stop]] = fresh[
                : stop - start
            ]
            return 0
        kernel = sums.sparse_accumulate if self.sparse else sums.accumulate
        return kernel(
            self.X, rows, start, stop, self.scaled, self.lattice, fresh, self.assigned,
            self.sums[thread], self.touched[thread],
        )  # fmt: skip

    @cached_property
    def scratch(self) -> list[NDArray[np.float64]]:
        """Each thread's scratch for means."""
        return [np.empty((2, padded(self.n_features + 1))) for _ in range(self.n_threads)]

    def integers(self) -> NDArray[np.int64]:
        """Return the sums of the clusters: shape (n_limbs, k, d + 1)."""
        return self.sums.sum(axis=0)[:, :, : self.n_features + 1]

    def means(
        self,
        parts: NDArray[np.int64],
        touched: NDArray[np.bool_],
        old: NDArray,
        empty: NDArray[np.bool_],
    ) -> tuple[NDArray, tuple[int, float, float]]:
        """Return the centres that threads' sums make, and what a report says of their move.

        The old ones stay where no thread touched a cluster, or it is empty, which is noted; then no
        thread has touched any.
        """
        k = len(old)
        new, square, move = np.empty(old.shape, self.dtype), np.empty(k), np.empty(k)
        scratch, fixed = self.scratch, (touched, *self.places, old, new, empty, square, move)
        self.each_block(
            lambda t, start, stop: finish(parts, start, stop, *fixed, scratch[t]),
            2.0 * parts.size / k, k,
        )  # fmt: skip
        summary = summarise(empty, square, move)
        if math.isnan(summary[1]):
            rest = np.flatnonzero(np.isnan(square))
            total = parts[:, :, rest, : self.n_features + 1].sum(axis=0)
            new[rest] = means(total, self.grid, self.dtype)
            change = new[rest].astype(np.float64) - old[rest]
            # In the order of the features.
            square[rest] = np.cumsum(np.square(change), axis=1)[:, -1]
            move[rest] = np.abs(change).max(axis=1)
            summary = summarise(empty, square, move)
        return new, summary
