"""Rows that are read block by block: each block is a part, and all parts are asked in one pass.

Between passes a part keeps what belongs to its rows (labels, bounds, the D to the nearest seed);
the rows themselves it gets for the time of an answer.  What belongs to the clusters, their sums
above all, the parts share, so that a thousand blocks take no more of it than one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import reduce
from itertools import pairwise
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cpu.centers import Packed
from lloydia.backends.cpu.part import CPUPart
from lloydia.backends.engine import UNLIMITED
from lloydia.backends.part import Step
from lloydia.data.chunks.reader import Reader

__all__ = ["Block", "Stream"]

# What cannot be answered without the rows.
READING = {
    *("plain_sums", "plain_measure"),
    *("seed_first", "seed_weigh", "seed_adopt", "seed_spread"),
    *("step", "conclude", "measure", "farthest", "classify"),
}

# What begins with labels of its own: those that were handed out stay as they are.
BEGINNING = {"seed_start", "start", "classify"}

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
        self.extent()
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


class Stream:
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
        self.reader, self.lengths = reader, reader.lengths
        n, self.n_features = reader.source.shape
        self.dtype = reader.source.dtype
        self.shared = Shared(n)
        # Rows that were asked for in this seeding, by block and number.
        self.seen: dict[tuple[int, int], NDArray] = {}
        starts = [start for start, _ in pairwise(reader.edges.tolist())]
        self.parts = [
            Block(rows, starts[i], weights, n_threads, self.shared)
            for i, rows in reader.blocks(range(len(starts)))
        ]

    def each(self, method: str, *arguments: Any) -> list[Any]:
        if method in BEGINNING:
            self.shared.begin()
            self.seen.clear()
        found = self.some(method, dict.fromkeys(range(len(self.parts)), arguments))
        return [found[p] for p in range(len(self.parts))]

    def total(self, method: str, *arguments: Any) -> Any:
        answer = reduce(add, self.each(method, *arguments))
        if isinstance(answer, Step):
            self.seen.clear()
            return replace(answer, sums=self.parts[0].integers())
        return answer

    def some(self, method: str, arguments: Mapping[int, tuple[Any, ...]]) -> dict[int, Any]:
        if method in ("rows", "seed_values"):
            return self._rows({p: rows.tolist() for p, (rows,) in arguments.items()})
        if method not in READING:
            return {p: getattr(self.parts[p], method)(*own) for p, own in arguments.items()}
        found = {}
        for p, rows in self.reader.blocks(arguments):
            part = self.parts[p]
            part.attach(rows)
            found[p] = getattr(part, method)(*arguments[p])
            part.attach(None)
        return found

    def _rows(self, wanted: Mapping[int, list[int]]) -> dict[int, NDArray]:
        """Return some rows: a candidate may be asked for again, and is not read again."""
        new = {p: [i for i in rows if (p, i) not in self.seen] for p, rows in wanted.items()}
        for p, block in self.reader.blocks(p for p, rows in new.items() if rows):
            self.seen |= {(p, i): block[i] + 0.0 for i in new[p]}
        return {p: np.stack([self.seen[p, i] for i in rows]) for p, rows in wanted.items()}

    def labels(self) -> NDArray[np.int32]:
        return self.shared.labels

    def distances(self, centers: NDArray) -> NDArray:
        out = np.empty((self.shared.n_samples, len(centers)), dtype=self.dtype)
        for p, rows in self.reader.blocks(range(len(self.parts))):
            self.parts[p].attach(rows)
            out[self.parts[p].place] = self.parts[p].distances(centers)
            self.parts[p].attach(None)
        return out
