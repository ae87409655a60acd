"""Parquet: a file, or a folder of files, row group by row group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lloydia.data.chunks.source import Chunks
from lloydia.data.columns import DataError
from lloydia.data.files import feature_names, parquet_columns, pyarrow_parquet

__all__ = ["Parquet"]

# Bytes that are decoded at a time, about: they stay in the cache until they are put in rows.
BATCH = 1_000_000

# Bytes of all columns that are read from the files at a time, and of one at most and at least.
BUFFERS, MOST, LEAST = 16_000_000, 1_000_000, 64_000


class Parquet(Chunks):
    """A piece is a row group; files come in the order of their names, subfolders included.

    Parameters
    ----------
    path : Path
        A file or a folder; of a folder all files but those whose name begins with . or _.
    wanted : str, sequence of str or None
        Columns; pandas' index is none of them.
    """

    path: Path

    def __init__(self, path: Path, wanted: str | Sequence[str] | None) -> None:
        self.parquet, self.path = pyarrow_parquet(str(path)), path
        self.files, self.buffer = files_of(path), MOST
        self.groups: list[tuple[int, int]] = []
        lengths: list[int] = []
        kinds: list[Any] = []
        for number in range(len(self.files)):
            file = self._open(number)
            schema = file.schema_arrow
            if number == 0:
                columns = parquet_columns(schema, wanted, str(path))
                names = columns.names or ()
                if not names:
                    raise DataError(f"{self.files[0]} has no columns.")
                kinds = [schema.field(name).type for name in names]
                self.buffer = max(min(BUFFERS // len(names), MOST), LEAST)
            self._compare(number, schema, names, kinds)
            if wanted is None:
                self._same_width(number, schema, names)
            found = file.metadata
            self.groups += [(number, group) for group in range(found.num_row_groups)]
            lengths += [found.row_group(group).num_rows for group in range(found.num_row_groups)]
        raw = np.result_type(*(kind.to_pandas_dtype() for kind in kinds))
        super().__init__(str(path), raw, columns, lengths)

    def _open(self, number: int) -> Any:
        import pyarrow as pa

        path = self.files[number]
        try:
            return self.parquet.ParquetFile(path, buffer_size=self.buffer)
        except (pa.ArrowException, OSError):
            raise DataError(f"{path} is damaged or not a Parquet file.") from None

    def _compare(
        self, number: int, schema: Any, names: Sequence[str], kinds: Sequence[Any]
    ) -> None:
        """Refuse a file that has not the columns of the first."""
        for name, kind in zip(names, kinds, strict=True):
            if (count := schema.names.count(name)) != 1:
                raise DataError(
                    f"{self.files[number]} has {'several columns' if count else 'no column'} "
                    f"{name!r}, and {self.files[0]} has one."
                )
            if (own := schema.field(name).type) != kind:
                raise DataError(
                    f"{self.files[number]} holds {own} in column {name!r}, and {self.files[0]} "
                    f"holds {kind}."
                )

    def _same_width(self, number: int, schema: Any, names: Sequence[str]) -> None:
        """Refuse a file that has more columns than the first, of which all were wanted."""
        # An index that has a name is one here if it is none there.
        indices = (schema.pandas_metadata or {}).get("index_columns", ())
        for name in feature_names(schema):
            if name not in names and name not in indices:
                raise DataError(
                    f"{self.files[number]} has a column {name!r}, and {self.files[0]} has not: "
                    "choose columns that both have."
                )

    @property
    def step(self) -> int:
        """Rows that are decoded at a time."""
        return max(BATCH // (self.shape[1] * self.raw.itemsize), 256)

    @property
    def at_once(self) -> int:
        # And the bytes of every column that wait to be decoded.
        waiting = self.buffer // self.raw.itemsize
        return self.step + waiting

    def stamp(self) -> object:
        found = [file.stat() for file in self.files if file.exists()]
        return [(one.st_size, one.st_mtime_ns) for one in found]

    def label(self, piece: int) -> str:
        number, group = self.groups[piece]
        # Within a file the row says it all.
        several = f"{self.files[number].relative_to(self.path)}, " if self.path.is_dir() else ""
        return f"{several}row group {group + 1}" if len(self.groups) > 1 else ""

    def read(self, piece: int) -> Iterator[tuple[int, NDArray[Any]]]:
        import pyarrow as pa

        opened, file = -1, None
        for i in range(piece, len(self.groups)):
            number, group = self.groups[i]
            if number != opened:
                opened, file = number, self._open(number)
            assert file is not None
            seen = 0
            try:
                if file.metadata.num_row_groups <= group:
                    raise self.changed(f"{self.files[number]} has lost row groups")
                batches = file.iter_batches(
                    self.step, row_groups=[group], columns=list(self.columns.names or ())
                )
                for batch in batches:
                    yield i, self._rows(batch, i, seen)
                    seen += len(batch)
            except (pa.ArrowException, OSError):
                raise DataError(f"{self.files[number]} is damaged, or changed.") from None

    def _rows(self, batch: Any, piece: int, before: int) -> NDArray[Any]:
        """Put the columns of a batch side by side; `before` rows of its group came first."""
        rows = np.empty((batch.num_rows, self.shape[1]), dtype=self.raw)
        for j, name in enumerate(self.columns.names or ()):
            column = batch.column(name)
            if column.null_count:
                row = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
                raise self.refuse(int(self.edges[piece]) + before + row, j, float("nan"))
            rows[:, j] = column.to_numpy(zero_copy_only=False)
        return rows


def files_of(path: Path) -> list[Path]:
    """Return the Parquet files of a path, in the order of their names.

    Raises
    ------
    DataError
        There are none.
    """
    if not path.is_dir():
        return [path]
    found = sorted(file for file in path.rglob("*.parquet") if is_read(file, path))
    if not found:
        raise DataError(
            f"{path} is a folder without .parquet files, and a folder is read as one table of all "
            "those in it: give a file, or another folder."
        )
    return found


def is_read(file: Path, folder: Path) -> bool:
    """Return whether a file in a folder is, by its name, one of those that are read."""
    hidden = any(part[0] in "._" for part in file.relative_to(folder).parts)
    return file.suffix == ".parquet" and not hidden
