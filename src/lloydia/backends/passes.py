"""Blocks that are asked in passes: a block has its rows only while it computes an answer.

Each block is a :class:`~lloydia.backends.part.Part`.  Between passes it keeps what belongs to its
rows (labels, bounds, the D to the nearest seed); the blocks share what belongs to the clusters.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from operator import add
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Host", "Passes"]

# Methods that need the rows.
READING = {
    *("all_sums", "measure_to"),
    *("seed_first", "seed_potentials_of", "seed_accept", "seed_extend_by"),
    *("step", "conclude", "measure", "farthest", "classify"),
}

# Methods that begin with new labels: arrays that were returned before do not change.
FIRST_CALLS = {"seed_start", "start", "classify"}


class Host(Protocol):
    """Where rows come from, block by block: a :class:`lloydia.data.chunks.reader.Reader`, say.

    Attributes
    ----------
    source
        It has a shape and a type.
    lengths : sequence of int
        Rows of each block.
    edges : ndarray
        Where the blocks begin, and the number of rows.
    """

    source: Any
    lengths: Sequence[int]
    edges: NDArray[np.int64]

    def blocks(self, wanted: Iterable[int]) -> Iterator[tuple[int, NDArray]]:
        """Give some blocks with their numbers, each once."""


class Passes(ABC):
    """What groups of blocks have in common; see :class:`lloydia.backends.group.Group`.

    Parameters
    ----------
    host : Host

    Attributes
    ----------
    parts : sequence of blocks
    seen : dict
        Rows that this seeding has read, by block and number.
    """

    parts: Sequence[Any]
    few_rows_device = "cpu"

    def __init__(self, host: Host) -> None:
        self.host, self.lengths = host, host.lengths
        self.n_samples, self.n_features = (int(size) for size in host.source.shape)
        self.dtype = host.source.dtype
        self.seen: dict[tuple[int, int], NDArray] = {}

    @abstractmethod
    def begin(self, method: str, *arguments: Any) -> None:
        """Begin a run or a seeding, before the parts do."""

    def blocks(self, wanted: Iterable[int]) -> Iterator[tuple[int, Any]]:
        """Give the rows of some blocks where these compute."""
        return self.host.blocks(wanted)

    def each(self, method: str, *arguments: Any) -> list[Any]:
        if method in FIRST_CALLS:
            self.begin(method, *arguments)
            self.seen.clear()
        found = self.some(method, dict.fromkeys(range(len(self.parts)), arguments))
        return [found[p] for p in range(len(self.parts))]

    def total(self, method: str, *arguments: Any) -> Any:
        return reduce(add, self.each(method, *arguments))

    def some(self, method: str, arguments: Mapping[int, tuple[Any, ...]]) -> dict[int, Any]:
        if method in ("rows", "seed_values"):
            return self._rows({p: rows.tolist() for p, (rows,) in arguments.items()})
        if method not in READING:
            return {p: getattr(self.parts[p], method)(*own) for p, own in arguments.items()}
        found = {}
        for p, rows in self.blocks(arguments):
            self.attach(p, rows)
            found[p] = getattr(self.parts[p], method)(*arguments[p])
            self.attach(p, None)
        return found

    def attach(self, p: int, rows: Any) -> None:
        """Give a part its rows, or take them from it."""
        self.parts[p].attach(rows)

    def _rows(self, wanted: Mapping[int, list[int]]) -> dict[int, NDArray]:
        """Return some rows; those read before in this seeding are not read again."""
        new = {p: [i for i in rows if (p, i) not in self.seen] for p, rows in wanted.items()}
        for p, block in self.host.blocks(p for p, rows in new.items() if rows):
            self.seen |= {(p, i): block[i] + 0.0 for i in new[p]}
        return {p: np.stack([self.seen[p, i] for i in rows]) for p, rows in wanted.items()}
