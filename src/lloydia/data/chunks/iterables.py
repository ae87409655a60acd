"""Blocks from a callable: whatever can be iterated over again and again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lloydia.data.chunks.source import Chunks
from lloydia.data.columns import DataError, choose

__all__ = ["Blocks", "names_of"]


def names_of(block: Any) -> list[str] | None:
    """Return the names of the columns of a data frame, if all are texts."""
    names = list(getattr(block, "columns", ()))
    return names if names and all(isinstance(name, str) for name in names) else None


class Blocks(Chunks):
    """The blocks of a fresh iterator each pass.

    Parameters
    ----------
    factory : callable
        Returns an iterator of arrays of shape (m, d), or of data frames; m may be 0.
    wanted : str, sequence of str or None
        Columns.
    """

    in_order = True

    def __init__(
        self, factory: Callable[[], Iterable[Any]], wanted: str | Sequence[str] | None
    ) -> None:
        self.factory, where = factory, "the iterator"
        lengths: list[int] = []
        first = None
        for block in self._fresh(where):
            shape = np.shape(block)
            if len(shape) != 2:
                raise DataError(
                    f"{where}: block {len(lengths) + 1} has shape {shape}; rows have two "
                    "dimensions."
                )
            lengths.append(shape[0])
            first = block if first is None and shape[0] else first
        if first is None:
            raise DataError(f"{where} is empty: {len(lengths)} blocks without rows.")
        self.width = np.shape(first)[1]
        self.every = wanted is None
        columns = choose(names_of(first), self.width, wanted, where)
        super().__init__(where, np.asarray(first).dtype, columns, lengths)

    def _fresh(self, where: str) -> Iterator[Any]:
        made = self.factory()
        if not isinstance(made, Iterable):
            raise DataError(f"{where}: the callable returned {type(made).__name__}, no iterator.")
        return iter(made)

    @property
    def at_once(self) -> int:
        return max(self.lengths)

    def label(self, piece: int) -> str:
        return f"block {piece + 1}"

    def read(self, piece: int) -> Iterator[tuple[int, NDArray[Any]]]:
        for i, block in enumerate(self._fresh(self.where)):
            if i >= len(self.lengths):
                raise self.changed(f"there are more than {len(self.lengths)} blocks")
            if i >= piece:
                rows = np.asarray(block)
                fits = rows.ndim == 2 and rows.shape[1] == self.width
                yield i, rows[:, self.columns.places] if fits and not self.every else rows
