"""Rows that are read block by block: each block is a part, and all parts are asked in one pass.

The sums of the clusters, the labels and the packed centres are shared by all blocks, so that a
thousand blocks take no more memory for them than one.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cpu.clusters import Clusters
from lloydia.backends.cpu.part import CPUPart
from lloydia.backends.cpu.rows.dataset import Dataset
from lloydia.backends.cpu.scan.centers import Packed
from lloydia.backends.part import Step
from lloydia.backends.passes import Passes
from lloydia.data.chunks.reader import Reader

__all__ = ["Stream"]

# Replaced: algorithms that need all rows at once, or that measure the time of an iteration.
INSTEAD = {"auto": "hamerly", "filtering": "hamerly"}


class Shared:
    """What the blocks have in common.

    Attributes
    ----------
    labels : ndarray of shape (n,), int32
    packed : Packed or None
        The centres as the scan reads them.
    totals : tuple of ndarray, or None
        The sums of the clusters, of all blocks together, and which of them were touched; see
        :class:`lloydia.backends.cpu.clusters.Clusters`.
    """

    def __init__(self, n_samples: int) -> None:
        self.n_samples = n_samples
        self.packed: Packed | None = None
        self.totals: tuple[NDArray[np.int64], NDArray[np.bool_]] | None = None

    def begin(self) -> None:
        """Begin a run or a seeding."""
        self.labels = np.empty(self.n_samples, dtype=np.int32)
        self.totals = None


class BlockMemory:
    """The memory of a block's runs; see :class:`lloydia.backends.cpu.memory.RunMemory`.

    Parameters
    ----------
    shared : Shared
    place : slice
        The block's rows among all.
    """

    shares_sums = True

    def __init__(self, shared: Shared, place: slice) -> None:
        self.shared, self.place = shared, place

    @property
    def packed(self) -> Packed | None:
        """The centres as the scan reads them: packed by the first block that needs them."""
        return self.shared.packed

    @packed.setter
    def packed(self, packed: Packed | None) -> None:
        self.shared.packed = packed

    def new_labels(self, n: int) -> NDArray[np.int32]:
        labels = self.shared.labels[self.place]
        labels.fill(-1)
        return labels

    def begin_sums(self, clusters: Clusters, k: int) -> None:
        if self.shared.totals is None:
            clusters.begin(k)
            self.shared.totals = clusters.sums, clusters.touched
        clusters.use(*self.shared.totals)

    def framed_cache(self, dataset: Dataset) -> None:
        """Return None: the rows do not stay in memory."""


class Stream(Passes):
    """Blocks in this process; see :class:`lloydia.backends.group.Group`.

    Parameters
    ----------
    reader : Reader
    weights : ndarray of shape (n,), float64, or None
    n_threads : int or None
        Threads that compute; others read.

    Raises
    ------
    DataError
        A value is not finite.
    """

    name = "cpu"

    def __init__(self, reader: Reader, weights: NDArray | None, n_threads: int | None) -> None:
        super().__init__(reader)
        self.shared = Shared(self.n_samples)
        self.places = [slice(start, stop) for start, stop in pairwise(reader.edges.tolist())]
        self.parts = []
        for i, rows in reader.blocks(range(len(self.places))):
            place = self.places[i]
            own = None if weights is None else weights[place]
            part = CPUPart(rows, own, n_threads, BlockMemory(self.shared, place))
            part.magnitudes()
            part.attach(None)
            self.parts.append(part)

    def begin(self, method: str, *arguments: Any) -> None:
        self.shared.begin()

    def each(self, method: str, *arguments: Any) -> list[Any]:
        if method == "start":
            (settings,) = arguments
            algorithm = INSTEAD.get(settings.algorithm, settings.algorithm)
            arguments = (settings._replace(algorithm=algorithm),)
        return super().each(method, *arguments)

    def total(self, method: str, *arguments: Any) -> Any:
        answer = super().total(method, *arguments)
        if isinstance(answer, Step):
            self.seen.clear()
            return replace(answer, sums=self.parts[0].integers())
        return answer

    def labels(self) -> NDArray[np.int32]:
        return self.shared.labels

    def distances(self, centers: NDArray) -> NDArray:
        out = np.empty((self.shared.n_samples, len(centers)), dtype=self.dtype)
        for p, rows in self.blocks(range(len(self.parts))):
            self.parts[p].attach(rows)
            out[self.places[p]] = self.parts[p].distances(centers)
            self.parts[p].attach(None)
        return out
