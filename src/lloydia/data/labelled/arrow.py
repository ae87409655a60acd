"""A Parquet or Arrow table once more: its record batches, with all columns as they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from lloydia.data.arrow import UNNAMED_INDEX, feature_names, id_name
from lloydia.data.chunks.decoding import open_file
from lloydia.data.chunks.parquet import files_of
from lloydia.data.columns import DataError
from lloydia.data.formats.arrow_files import EXTENSIONS as ARROW
from lloydia.data.formats.arrow_files import arrow_table
from lloydia.data.formats.opening import open_input
from lloydia.data.formats.parquet import pyarrow_parquet
from lloydia.data.formats.stamps import Stamp
from lloydia.data.labelled.original import Labels, Original
from lloydia.data.labelled.row_groups import compression_of, gathered

__all__ = ["ArrowOriginal"]

# Rows at a time, and bytes of the buffer of each column.
BLOCK, BUFFER = 1 << 13, 64_000


class ArrowOriginal(Original):
    """A Parquet file, a folder of them, or an Arrow file.

    Parameters
    ----------
    path : Path
    before : Stamp
        As for :class:`Original`.
    """

    def __init__(self, path: Path, before: Stamp) -> None:
        super().__init__(path, before)
        self.parquet = pyarrow_parquet(self.where)
        self.in_memory = path.suffix.lower() in ARROW and not path.is_dir()
        self.files = [path] if self.in_memory else files_of(path)
        self.schema = self._schema(self.files[0])
        self.names = tuple(self.schema.names)
        self.width = len(self.names)

    def _schema(self, file: Path) -> Any:
        if self.in_memory:
            return self._table().schema
        return self._opened(file).schema_arrow

    def _table(self) -> Any:
        with open_input(self.path) as (stream, _):
            # One dictionary for all batches, which is what Arrow's files have.
            return arrow_table(stream, self.where).unify_dictionaries()

    def _opened(self, file: Path) -> Any:
        import pyarrow as pa

        try:
            return open_file(self.parquet, file, BUFFER)
        except (pa.ArrowException, OSError):
            raise DataError(f"{file} is damaged or not a Parquet file.") from None

    def id_name(self, column: str) -> str:
        """Return what the column is called; an index of pandas may have no name."""
        name = id_name(self.schema, column, self.where)
        return "id" if name.startswith(UNNAMED_INDEX) else name

    def place(self, column: str) -> int:
        """Return the place of the column of ids among the features, or after them."""
        name, features = id_name(self.schema, column, self.where), feature_names(self.schema)
        return features.index(name) if name in features else len(features)

    def _ids(self, column: str) -> Iterator[Sequence[str]]:
        # A missing value is empty.
        for batch in self._batches([id_name(self.schema, column, self.where)]):
            yield ["" if value is None else str(value) for value in batch.column(0).to_pylist()]

    def check_ending(self, path: Path) -> None:
        """Refuse an Arrow file for Parquet, whose batches may have dictionaries of their own."""
        if not self.in_memory and path.suffix.lower() != ".parquet":
            raise DataError(f"cannot write {path}: {self.where} is Parquet; name a .parquet file.")

    def _write(self, to: Path, labels: Labels, name: str, suffix: str) -> None:
        """Write all columns, and the labels as the last one."""
        import pyarrow as pa

        schema = self.schema.append(pa.field(name, pa.from_numpy_dtype(labels.dtype)))
        with to.open("wb") as stream:
            if suffix == ".parquet":
                writer = self._writer(stream, schema)
            else:
                writer = pa.ipc.new_file(stream, schema)
            with writer:
                self._put(writer, schema, labels, None)

    def _write_parquet(self, to: Path, labels: Labels, column: str, names: Sequence[str]) -> None:
        import pyarrow as pa

        ids = id_name(self.schema, column, self.where)
        kinds = self.schema.field(ids).type, pa.from_numpy_dtype(labels.dtype)
        schema = pa.schema(zip(names, kinds))
        with to.open("wb") as stream, self._writer(stream, schema) as writer:
            self._put(writer, schema, labels, [ids])

    def _writer(self, stream: Any, schema: Any) -> Any:
        """Return a writer of Parquet that compresses as the table does, if that is Parquet."""
        if self.in_memory:
            return self.parquet.ParquetWriter(stream, schema)
        compression = compression_of(self._opened(self.files[0]).metadata)
        return self.parquet.ParquetWriter(stream, schema, compression=compression)

    def _put(self, writer: Any, schema: Any, labels: Labels, columns: list[str] | None) -> None:
        """Write batches with their labels."""
        for table in gathered(self._with_labels(schema, labels, columns)):
            writer.write_table(table)

    def _with_labels(self, schema: Any, labels: Labels, columns: list[str] | None) -> Iterator[Any]:
        import pyarrow as pa

        n = 0
        for batch in self._batches(columns):
            some = labels[n : n + len(batch)]
            n += len(batch)
            if len(some) == len(batch):
                yield pa.Table.from_arrays([*batch.columns, pa.array(some)], schema=schema)
        self._check_count(n, labels)

    def _batches(self, columns: list[str] | None) -> Iterator[Any]:
        """Give the record batches of all files."""
        import pyarrow as pa

        if self.in_memory:
            table = self._table()
            yield from (table if columns is None else table.select(columns)).to_batches()
            return
        for path in self.files:
            file = self._opened(path)
            if columns is None and not file.schema_arrow.equals(self.schema):
                raise DataError(
                    f"{path} has other columns, or columns of other types, than {self.files[0]}: "
                    "give a folder whose files have the same ones."
                )
            try:
                yield from file.iter_batches(BLOCK, columns=columns)
            except (pa.ArrowException, OSError):
                raise DataError(
                    f"{path} is damaged, or was changed while it was read: write it again."
                ) from None
