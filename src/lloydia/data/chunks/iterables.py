"""Blocks from a callable that returns a new iterator at each call."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from lloydia.data.arrays import is_buffer, on_host, refuse_masked, rows_on_host
from lloydia.data.chunks.source import Chunks
from lloydia.data.columns import DataError, choose
from lloydia.data.frames import (
    array_from,
    is_frame,
    is_named,
    labels_of,
    names_of,
    read_frame,
    select,
    values_of,
)
from lloydia.data.proposals import proposed, refuse_text

__all__ = ["Blocks"]


class Blocks(Chunks):
    """The blocks of a new iterator in each pass.

    Parameters
    ----------
    factory : callable
        It returns an iterator of arrays of shape (m, d), or of data frames; m may be 0.
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
        self.where, self.labels = where, labels_of(first)
        is_text = self.labels and all(isinstance(label, str) for label in self.labels)
        self.features = self.labels if is_text else None
        frame = None
        if is_frame(first):
            # Dates in unused columns do not matter; `_chosen` refuses the others.
            with suppress(ValueError):
                frame = read_frame(first, where)
        if frame is not None and frame.rows.shape[1] > self.width:
            # A column of vectors is several features.
            self.features = names_of(frame.like)
        n_features = self.width if frame is None else frame.rows.shape[1]
        self.n_features = n_features
        self.columns = choose(self.features, n_features, wanted, where)
        super().__init__(where, self._chosen(first).dtype, self.columns, lengths)

    def _fresh(self, where: str) -> Iterator[Any]:
        made = self.factory()
        if not isinstance(made, Iterable):
            raise DataError(
                f"{where}: the callable returned {type(made).__name__}, not an iterator."
            )
        return (_on_host(block, f"{where}: block {i + 1}") for i, block in enumerate(made))

    def _chosen(self, block: Any) -> NDArray[Any]:
        """Return the chosen columns; texts in other columns of a data frame do not matter."""
        places = list(self.columns.places)
        if not is_frame(block):
            block = np.asanyarray(block)
        elif self.n_features == self.width:
            block = select(block, places)
            if block.shape[0] and read_frame(block, self.where) is None:
                self._refuse_text(block)
            return np.asarray(rows_on_host(block))
        elif block.shape[0]:
            block = np.asarray(rows_on_host(block))
            if block.shape[1] != self.n_features:
                raise DataError(
                    f"{self.where}: a block has {block.shape[1]} features, and those before have "
                    f"{self.n_features}: give vectors of one length."
                )
        else:
            return np.empty((0, len(places)))
        return block if self.every else block[:, places]

    def _refuse_text(self, block: Any) -> None:
        """Refuse chosen columns of a data frame that do not hold numbers."""
        other = [read_frame(select(block, [j])) is None for j in range(block.shape[1])]
        numeric = [self.columns.places[j] for j, wrong in enumerate(other) if not wrong]
        kinds = [_held(select(block, [j])) if wrong else "" for j, wrong in enumerate(other)]
        refuse_text(self.columns, kinds, self.where, proposed(numeric, self.features))

    def _match_labels(self, block: Any, i: int) -> None:
        """Refuse a data frame whose column labels differ from those of the first one."""
        first, labels = self.labels, labels_of(block)
        if first is None or labels is None or labels == first:
            return
        if Counter(labels) == Counter(first) or (is_named(labels) and is_named(first)):
            raise DataError(
                f"{self.where}: {self.label(i)} has the columns {', '.join(map(str, labels))}, "
                f"and those before have {', '.join(map(str, first))}."
            )

    @property
    def at_once(self) -> int:
        return max(self.lengths)

    def label(self, piece: int) -> str:
        return f"block {piece + 1}"

    def read(self, piece: int) -> Iterator[tuple[int, NDArray[Any]]]:
        i = -1
        for i, block in enumerate(self._fresh(self.where)):
            if i >= len(self.lengths):
                raise self.changed(f"there are more than {len(self.lengths)} blocks")
            if i >= piece:
                fits = len(np.shape(block)) == 2 and np.shape(block)[1] == self.width
                if fits and len(block):
                    self._match_labels(block, i)
                rows = self._chosen(block) if fits else np.asanyarray(block)
                refuse_masked(rows, f"{self.where}: {self.label(i)}: ")
                yield i, np.asarray(rows)
        if i < 0:
            raise DataError(
                f"{self.where} had {len(self.lengths)} blocks at first, and none the next time: "
                "the rows are read several times, so the callable must return a new iterator at "
                "each call."
            )


def _held(column: Any) -> str:
    """Return how an error describes the values of a one-column data frame without numbers."""
    first = next((value for value in values_of(column) if value is not None), None)
    return "text" if isinstance(first, str | bytes) else f"{first!r:.80}"


def _on_host(block: Any, where: str) -> Any:
    """Return a block as a data frame, a list or an ndarray."""
    if sp.issparse(block):
        raise DataError(
            f"{where} is sparse, a {type(block).__name__}: give dense blocks (toarray())."
        )
    if isinstance(block, np.ndarray | list) or is_frame(block):
        return block
    block = on_host(block)
    is_array = hasattr(block, "__array__") or is_buffer(block)
    return array_from(block, where) if is_array else block
