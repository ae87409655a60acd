"""Rows that are read block by block: each block is a part, and all parts are asked in one pass.

What belongs to the clusters, their sums above all, the parts share, so that a thousand blocks take
no more of it than one.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cpu.part import CPUPart
from lloydia.backends.cpu.scan.centers import Packed
from lloydia.backends.engine import UNLIMITED
from lloydia.backends.part import Step
from lloydia.backends.passes import Passes
from lloydia.data.chunks.reader import Reader

__all__ = ["Block", "Stream"]

# Algorithms that would need all rows at once, or that look at the clock.
INSTEAD = {"auto": "hamerly", "filtering": "hamerly"}


class Shared:
    """What the blocks have in common.

    Attributes
    ----------
    labels : ndarray of shape (n,), int32
    packed : Packed or None
        The centres as the scan wants them.
    totals : tuple of ndarray, or None
        The sums of the clusters, of all blocks together, and which of them were touched; see
        :mod:`lloydia.backends.cpu.clusters`.
    """

    def __init__(self, n_samples: int) -> None:
        self.n_samples = n_samples
        self.packed: Packed | None = None
        self.totals: tuple[NDArray[np.int64], NDArray[np.bool_]] | None = None

    def begin(self) -> None:
        """Begin a run or a seeding."""
        self.labels = np.empty(self.n_samples, dtype=np.int32)
        self.totals = None


class Block(CPUPart):
    """The part whose rows come and go.

    Parameters
    ----------
    rows : ndarray of shape (m, d)
    start : int
        Rows before.
    """

    def __init__(
        self,
        rows: NDArray,
        start: int,
        weights: NDArray | None,
        n_threads: int | None,
        shared: Shared,
    ) -> None:
        self.shared, self.place = shared, slice(start, start + len(rows))
        super().__init__(rows, None if weights is None else weights[self.place], n_threads)
        self.magnitudes()
        self.attach(None)

    def attach(self, rows: NDArray | None) -> None:
        """Take the rows, or let them go."""
        self.X = self.source = rows

    @property
    def packed(self) -> Packed | None:
        """The centres as the scan wants them: packed by the first block that needs them."""
        return self.shared.packed

    @packed.setter
    def packed(self, packed: Packed | None) -> None:
        self.shared.packed = packed

    def start(
        self, centers: NDArray, algorithm: str, settles: bool = True, max_iter: int = UNLIMITED
    ) -> None:
        super().start(centers, INSTEAD.get(algorithm, algorithm), settles, max_iter)

    def hold(self) -> None:
        """Hold no rows: they go."""

    def new_labels(self) -> NDArray[np.int32]:
        labels = self.shared.labels[self.place]
        labels.fill(-1)
        return labels

    def begin_sums(self, k: int) -> None:
        if self.shared.totals is None:
            super().begin_sums(k)
            self.shared.totals = self.sums, self.touched
        self.sums, self.touched = self.shared.totals
        self.last = False

    def step(self, centers: NDArray, measure: bool) -> Step:
        """Add to the sums of all blocks, which :class:`Stream` gives."""
        self.current = centers
        self.assign_and_choose()
        return Step(self.n_changed, np.zeros((), np.int64), self.measure() if measure else 0.0)


class Stream(Passes):
    """Blocks in this process; see :class:`lloydia.backends.group.Group`.

    Parameters
    ----------
    reader : Reader
    weights : ndarray of shape (n,), float64, or None
    n_threads : int or None
        Of the computing.

    Raises
    ------
    DataError
        A value is not finite.
    """

    name = "cpu"

    def __init__(self, reader: Reader, weights: NDArray | None, n_threads: int | None) -> None:
        super().__init__(reader)
        self.shared = Shared(self.n_samples)
        starts = [start for start, _ in pairwise(reader.edges.tolist())]
        self.parts = [
            Block(rows, starts[i], weights, n_threads, self.shared)
            for i, rows in reader.blocks(range(len(starts)))
        ]

    def begin(self, method: str, *arguments: Any) -> None:
        self.shared.begin()

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
            out[self.parts[p].place] = self.parts[p].distances(centers)
            self.parts[p].attach(None)
        return out
