"""What a run keeps between iterations, so that the blocks of a stream can share some of it."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cpu.clusters import Clusters
from lloydia.backends.cpu.rows.dataset import Dataset
from lloydia.backends.cpu.scan.centers import Packed
from lloydia.backends.cpu.scan.framed_cache import FramedCache

__all__ = ["OwnMemory", "RunMemory"]


class RunMemory(Protocol):
    """Where a run finds its labels, sums and packed centres.

    Attributes
    ----------
    packed : Packed or None
        The centres as the scan reads them.
    shares_sums : bool
        Whether the sums are those of more rows than the run's.
    """

    packed: Packed | None
    shares_sums: bool

    def new_labels(self, n: int) -> NDArray[np.int32]:
        """Return `n` labels of -1: none is assigned yet."""

    def begin_sums(self, clusters: Clusters, k: int) -> None:
        """Give clusters sums for a run with `k` centres."""

    def framed_cache(self, dataset: Dataset) -> FramedCache | None:
        """Return a cache of framed rows, if the data set is small enough for one."""


class OwnMemory:
    """The memory of a run that shares nothing."""

    shares_sums = False

    def __init__(self) -> None:
        self.packed: Packed | None = None

    def new_labels(self, n: int) -> NDArray[np.int32]:
        return np.full(n, -1, dtype=np.int32)

    def begin_sums(self, clusters: Clusters, k: int) -> None:
        clusters.begin(k)

    def framed_cache(self, dataset: Dataset) -> FramedCache | None:
        return None if dataset.sparse else FramedCache.of(dataset.source)
