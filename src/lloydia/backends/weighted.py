"""Rows and weights, without the rows of weight 0, which only get a label at the end.

No engine has a row of weight 0.  So nothing else can depend on it: not the grid of the sums, the
range that is checked, the starts, the stop rules, empty clusters, or batches.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from lloydia.backends import choose
from lloydia.backends.engine import Engine
from lloydia.backends.magnitudes import check_range
from lloydia.data.arrays import on_host
from lloydia.data.chunks.source import Chunks
from lloydia.data.collections import Partitions
from lloydia.data.device_arrays import load_torch, on_gpu, rows_of
from lloydia.data.device_rows import refuse_non_finite
from lloydia.data.weights import check_weights
from lloydia.exact.distance import largest_magnitude, nearest
from lloydia.imports import load

__all__ = ["WeightedRows"]

# Rows of weight 0 get their labels in batches of this many, so that an engine needs little memory.
ROWS_AT_A_TIME = 1 << 20

# Distances that are computed at a time where D overflows.
DISTANCES_AT_A_TIME = 1 << 20


@dataclass(frozen=True)
class WeightedRows:
    """Checked rows, and which of them have a positive weight.

    Attributes
    ----------
    every : array, CSR matrix, tensor on a GPU, Chunks or Partitions: n rows
    weights : ndarray of float64, or None; Weights if X is Partitions
        Of the rows of positive weight.
    positive : ndarray of shape (n,), bool, or None
        None where every weight is positive, and of Partitions, whose parts leave rows of weight 0
        out by themselves.
    """

    every: Any
    weights: Any
    positive: NDArray[np.bool_] | None

    @classmethod
    def of(cls, X: Any, sample_weight: Any) -> WeightedRows:
        """Check the weights of checked rows.

        Raises
        ------
        ValueError
            As :func:`lloydia.data.weights.check_weights`; a row of weight 0 is not finite.
        """
        if isinstance(X, Partitions):
            return cls(X, load("lloydia.backends.cluster.weights").weigh(X, sample_weight), None)
        return cls.checked(X, check_weights(sample_weight, X.shape[0]))

    @classmethod
    def checked(cls, X: Any, weights: NDArray[np.float64] | None) -> WeightedRows:
        """Take weights that were checked; all may be 0."""
        if weights is None or weights.all():
            return cls(X, weights, None)
        positive = weights > 0
        rows = cls(X, weights[positive], positive)
        if on_gpu(X):
            # No engine measures them.
            refuse_non_finite(rows._selected(~positive))
        return rows

    @cached_property
    def X(self) -> Any:
        """The rows of positive weight."""
        return self.every if self.positive is None else self._selected(self.positive)

    def engine(
        self, device: str, n_threads: int | None, centers: Any = (), later: bool = False
    ) -> Engine:
        """Return the engine that holds the rows of positive weight.

        Parameters
        ----------
        device, n_threads
            As in :func:`lloydia.backends.choose`.
        centers : ndarray of shape (k, d), optional
            What the engine will be given.
        later : bool
            As in :func:`lloydia.backends.magnitudes.check_range`.

        Raises
        ------
        ValueError, ImportError, MemoryError
            As :func:`lloydia.backends.choose`; ValueError also where a D could overflow.
        """
        engine = choose(device, self.X, self.weights, n_threads)
        check_range(engine, self.weights, centers, later)
        return engine

    def as_float64(self) -> WeightedRows:
        """Return the same rows in float64."""
        every = self.every
        return replace(self, every=every.double() if on_gpu(every) else every.astype(np.float64))

    @property
    def every_weight(self) -> Any:
        """The weights of all rows, or None."""
        if self.positive is None:
            return self.weights
        weights = np.zeros(len(self.positive))
        weights[self.positive] = self.weights
        return weights

    @property
    def n_samples(self) -> int:
        """How many rows have a positive weight."""
        if isinstance(self.every, Partitions) and self.weights is not None:
            return self.weights.n_positive
        return self.every.shape[0] if self.positive is None else len(self.weights)

    def refuse_few(self, n_clusters: int) -> None:
        """Raise an error if there are fewer rows of positive weight than clusters."""
        n, n_all = self.n_samples, self.every.shape[0]
        if n < n_clusters:
            raise ValueError(
                f"n_samples={n} should be >= n_clusters={n_clusters}"
                + (f": of {n_all} rows, {n_all - n} have the weight 0." if n < n_all else ".")
            )

    def numbers(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return where among all rows some rows of positive weight are."""
        return rows if self.positive is None else np.flatnonzero(self.positive)[rows]

    def labels(self, own: Any, centers: Any, device: str, n_threads: int | None) -> Any:
        """Return the labels of all rows.

        Parameters
        ----------
        own : ndarray or tensor of int32
            Labels of the rows of positive weight.
        centers : array of shape (k, d)
            Those that they belong to.
        device : str
            The other rows get their labels there if they are there, otherwise on the CPU.
        n_threads : int or None
        """
        if self.positive is None:
            return own
        others = self._selected(~self.positive)
        found = np.concatenate(list(labels_of(others, on_host(centers), device, n_threads)))
        if not isinstance(own, np.ndarray):
            labels = own.new_empty(len(self.positive))
            mask = load_torch().from_numpy(self.positive).to(own.device)
            labels[mask], labels[~mask] = own, load_torch().from_numpy(found).to(own.device)
            return labels
        labels = np.empty(len(self.positive), dtype=np.int32)
        labels[self.positive], labels[~self.positive] = own, found
        return labels

    def _selected(self, mask: NDArray[np.bool_]) -> Any:
        if isinstance(self.every, Chunks):
            return load("lloydia.data.chunks.selection").Selection(self.every, mask)
        return rows_of(self.every, mask)


def labels_of(
    X: Any, centers: NDArray, device: str, n_threads: int | None
) -> Iterator[NDArray[np.int32]]:
    """Give the labels of rows of any finite magnitude, some at a time."""
    if not on_gpu(X) and device != "reference":
        # The engine of the other rows may have taken all memory of a GPU.
        device = "cpu"
    if isinstance(X, Chunks):
        source = X.block_by_block()
        reader = load("lloydia.data.chunks.reader").Reader(source, source.plan(False, 1).rows)
        for _, rows in reader.blocks(range(len(reader.lengths))):
            yield from labels_of(rows, centers, device, n_threads)
        return
    if X.shape[0] > ROWS_AT_A_TIME:
        for start in range(0, X.shape[0], ROWS_AT_A_TIME):
            yield from labels_of(X[start : start + ROWS_AT_A_TIME], centers, device, n_threads)
        return
    far = beyond_range(X, centers)
    labels = np.empty(X.shape[0], dtype=np.int32)
    if not far.all():
        near = X if not far.any() else rows_of(X, np.flatnonzero(~far))
        engine = choose(device, near, None, n_threads)
        engine.classify(centers)
        labels[~far] = on_host(engine.labels())
    step = max(DISTANCES_AT_A_TIME // len(centers), 1)
    left = np.flatnonzero(far)
    for start in range(0, len(left), step):
        some = left[start : start + step]
        rows = on_host(rows_of(X, some))
        with np.errstate(over="ignore"):
            labels[some], _ = nearest(rows.toarray() if sp.issparse(rows) else rows, centers)
    yield labels


def beyond_range(X: Any, centers: NDArray) -> NDArray[np.bool_]:
    """Return which rows no engine takes, since their D may overflow: shape (n,)."""
    n, d = X.shape
    limit = largest_magnitude(d, n)
    if float(np.finfo(centers.dtype).max) <= limit:
        return np.zeros(n, dtype=bool)
    if np.abs(centers).max() > limit:
        return np.ones(n, dtype=bool)
    if on_gpu(X):
        return (X.abs().amax(dim=1) > limit).cpu().numpy()
    largest = abs(X).max(axis=1)
    return (largest.toarray().ravel() if sp.issparse(largest) else largest) > limit
