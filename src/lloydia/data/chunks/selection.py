"""A source that consists of some rows of another source."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lloydia.data.chunks.memory import LABEL, Plan
from lloydia.data.chunks.source import Chunks
from lloydia.data.columns import DataError

__all__ = ["Selection"]


class Selection(Chunks):
    """The rows that a mask selects; the other rows are read as well and must be finite.

    Parameters
    ----------
    source : Chunks
    mask : ndarray of shape (n,), bool
    """

    def __init__(self, source: Chunks, mask: NDArray[np.bool_]) -> None:
        edges = source.edges.tolist()
        lengths = [int(np.count_nonzero(mask[a:b])) for a, b in pairwise(edges)]
        super().__init__(source.where, source.raw, source.columns, lengths)
        self.source, self.mask, self.dtype = source, mask, source.dtype
        self.in_order, self.path = source.in_order, source.path
        self.memory, self.block, self.spill = source.memory, source.block, source.spill
        # Memory for the mask and, at the end, for the labels of the other rows, twice.
        n = self.shape[0]
        beside = len(mask) + 2 * LABEL * (len(mask) - n)
        a_row = source.purpose.a_row + -(-beside // max(n, 1))
        self.purpose = replace(source.purpose, a_row=a_row)

    @property
    def at_once(self) -> int:
        return self.source.at_once

    def stamp(self) -> object:
        return self.source.stamp()

    def label(self, piece: int) -> str:
        return self.source.label(piece)

    def read(self, piece: int) -> Iterator[tuple[int, NDArray[Any]]]:
        at = int(self.source.edges[piece])
        for rows in self.source.rows_from(at):
            own = int(np.searchsorted(self.source.edges, at, side="right")) - 1
            wanted = self.mask[at : at + len(rows)]
            self._refuse_others(rows, wanted, at)
            at += len(rows)
            yield own, rows[wanted]

    def _refuse_others(self, rows: NDArray[Any], wanted: NDArray[np.bool_], at: int) -> None:
        """Refuse a row that is neither selected nor finite; `at` is the index of the first row."""
        wrong = ~wanted
        wrong[wrong] = ~np.isfinite(rows[wrong]).all(axis=1)
        if wrong.any():
            i = int(wrong.argmax())
            j = int(np.isfinite(rows[i]).argmin())
            raise self.source.refuse(at + i, j, float(rows[i, j]))

    def refuse(self, row: int, j: int, value: float) -> DataError:
        piece = int(np.searchsorted(self.edges, row, side="right")) - 1
        start, stop = self.source.edges[piece : piece + 2].tolist()
        selected = np.flatnonzero(self.mask[start:stop])
        return self.source.refuse(start + int(selected[row - self.edges[piece]]), j, value)

    def plan(self, weighted: bool, n_threads: int | None) -> Plan:
        return replace(super().plan(weighted, n_threads), partial=True)

    def astype(self, dtype: Any) -> Chunks:
        other = copy.copy(self)
        other.source = self.source.astype(dtype)
        other.dtype = other.source.dtype
        return other
