"""Dask arrays and data frames, computed in this process one partition at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lloydia.data.arrays import refuse_masked, rows_on_host
from lloydia.data.chunks.source import Chunks
from lloydia.data.columns import DataError, choose
from lloydia.data.frames import read_frame, select

__all__ = ["Partitions"]


class Partitions(Chunks):
    """The partitions of a Dask array of shape (n, d), or of a Dask data frame.

    Parameters
    ----------
    collection : dask.array.Array or dask.dataframe.DataFrame
        If the numbers of rows are unknown, they are counted, which computes the collection once.
    wanted : str, sequence of str or None
        Columns.
    """

    def __init__(self, collection: Any, wanted: str | Sequence[str] | None) -> None:
        where = f"the dask {type(collection).__name__.lower()}"
        self.frame = hasattr(collection, "partitions") and hasattr(collection, "dtypes")
        if collection.ndim != 2:
            raise DataError(f"{where} has {collection.ndim} dimensions; a table has two.")
        names = None
        if self.frame:
            names = [str(name) for name in collection.columns]
            counts = collection.map_partitions(len).compute()
        else:
            # A partition must consist of whole rows.
            collection = collection.rechunk({1: -1})
            raw, counts = collection.dtype, collection.chunks[0]
            if np.isnan(counts).any():
                counts = [len(block.compute()) for block in collection.blocks.ravel()]
        columns = choose(names, collection.shape[1], wanted, where)
        if self.frame:
            meta = select(collection._meta, columns.places)
            for j, kind in enumerate(meta.dtypes):
                if read_frame(select(meta, [j])) is None:
                    raise DataError(
                        f"{where} holds {kind} in {columns.label(j)}, not real numbers: choose "
                        "others with columns=, or convert it."
                    )
            raw = rows_on_host(meta).dtype
        self.collection, self.every = collection, wanted is None
        super().__init__(where, raw, columns, [int(count) for count in counts])

    @property
    def at_once(self) -> int:
        return max(self.lengths)

    def label(self, piece: int) -> str:
        return f"partition {piece + 1}"

    def read(self, piece: int) -> Iterator[tuple[int, NDArray[Any]]]:
        for i in range(piece, len(self.lengths)):
            if self.frame:
                some = self.collection.partitions[i].compute()
                yield i, rows_on_host(select(some, self.columns.places))
            else:
                rows = np.asanyarray(self.collection.blocks[i].compute())
                rows = rows if self.every else rows[:, self.columns.places]
                refuse_masked(rows, f"{self.where}: {self.label(i)}: ")
                yield i, np.asarray(rows)
