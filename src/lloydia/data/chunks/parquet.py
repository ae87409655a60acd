"""A Parquet file, or a folder of Parquet files, read by row groups."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from lloydia.data.arrow import Features, feature_names, features_of
from lloydia.data.chunks.decoding import decoding_bytes, open_file
from lloydia.data.chunks.source import Chunks
from lloydia.data.columns import DataError
from lloydia.data.formats.arrow_errors import arrow_errors, unreadable
from lloydia.data.formats.parquet import check_row_groups, pyarrow_parquet
from lloydia.data.formats.stamps import stamp_of
from lloydia.data.precision import stored_type
from lloydia.spelling import option

__all__ = ["Parquet"]

# The approximate number of bytes decoded at a time, small enough to stay in the cache.
BATCH = 1_000_000

# The size of the read buffers in bytes: of all columns, and the largest and smallest of a column.
BUFFERS, MOST, LEAST = 16_000_000, 1_000_000, 64_000


class Parquet(Chunks):
    """A source whose pieces are row groups.

    Parameters
    ----------
    path : Path
        A file or a folder.  The files of a folder and its subfolders are read in the order of their
        names, except names that begin with . or _.
    wanted : str, sequence of str or None
        The columns; a pandas index is not a column.
    """

    path: Path

    def __init__(self, path: Path, wanted: str | Sequence[str] | None) -> None:
        self.parquet, self.path = pyarrow_parquet(str(path)), path
        self.files, self.buffer = files_of(path), MOST
        _warn_of_partitions(path, self.files)
        self.groups: list[tuple[int, int]] = []
        lengths: list[int] = []
        # The size in bytes of the largest row group of each file.
        self.largest: list[int] = []
        for number in range(len(self.files)):
            found = self._open(number).metadata
            self.groups += [(number, group) for group in range(found.num_row_groups)]
            row_groups = [found.row_group(group) for group in range(found.num_row_groups)]
            lengths += [group.num_rows for group in row_groups]
            self.largest.append(max((group.total_byte_size for group in row_groups), default=0))
        first = self._open(0).schema_arrow
        self.features = features_of(first, wanted, str(path), self._first_row)
        raw, columns = self.features.raw, self.features.columns
        self.buffer = max(min(BUFFERS // len(columns.places), MOST), LEAST)
        # The features of each file; their stored types may differ if they are read as one type.
        self.of_file = [self.features]
        for number in range(1, len(self.files)):
            self.of_file.append(self._alike(number, first, wanted is None))
        super().__init__(str(path), raw, columns, lengths)

    def _first_row(self, names: list[str]) -> Any:
        """Return a batch with the first row of all files, or None if there are no rows."""
        for number, file in enumerate(self.files):
            batches = self._open(number).iter_batches(1, columns=names)
            try:
                batch = next(batches, None)
            except arrow_errors() as error:
                raise unreadable(error, str(file), "a Parquet file") from None
            if batch is not None and len(batch):
                return batch
        return None

    def _open(self, number: int) -> Any:
        path = self.files[number]
        try:
            file = open_file(self.parquet, path, self.buffer)
            check_row_groups(file.metadata, str(path))
            # This raises an error for types that pyarrow does not read.
            _ = file.schema_arrow
        except arrow_errors() as error:
            raise unreadable(error, str(path), "a Parquet file") from None
        return file

    def _alike(self, number: int, first: Any, every: bool) -> Features:
        """Return the features of a file, which must be those of the first file.

        Raises
        ------
        DataError
            If a column is missing or has another kind of values, or, with `every`, if the file has
            a column that the first file does not have.
        """
        schema, name_of_first = self._open(number).schema_arrow, self.files[0]
        file = self.files[number]
        for name in self.features.names:
            if (count := schema.names.count(name)) != 1:
                raise DataError(
                    f"{file} has {'several columns' if count else 'no column'} {name!r}, and "
                    f"{name_of_first} has one: all files of a folder need the same columns."
                )
        # A named index is a column in this file if it is a column in the first file.
        surplus = next((name for name in feature_names(schema) if name not in first.names), None)
        if every and surplus is not None:
            raise DataError(
                f"{file} has a column {surplus!r} that {name_of_first} does not have: choose "
                f"columns that both have by {option('columns')}."
            )
        types = {name: schema.field(name).type for name in self.features.names}
        found = self.features.typed(types.values(), str(file))
        read_as, before = (stored_type(one.raw, str(file)) for one in (found, self.features))
        if read_as != before:
            name = next(name for name in types if types[name] != first.field(name).type)
            raise DataError(
                f"{file} holds {types[name]} in column {name!r}, and {name_of_first} holds "
                f"{first.field(name).type}: they are read as {read_as} and {before}, so convert "
                "one of the files."
            )
        return found

    @property
    def step(self) -> int:
        """The number of rows that are decoded at a time."""
        return max(BATCH // (self.shape[1] * self.raw.itemsize), 256)

    @property
    def at_once(self) -> int:
        return self.step

    @cached_property
    def overhead(self) -> int:
        # The file with the largest row group takes the most memory.
        number, _ = max(enumerate(self.largest), key=lambda one: one[1])
        if not self.largest[number]:
            return 0
        file, names = self._open(number), self.features.names
        try:
            return decoding_bytes(file, names, self.step, self.buffer)
        except arrow_errors():
            raise self._damaged(number) from None

    def _damaged(self, number: int) -> DataError:
        return DataError(
            f"{self.files[number]} is damaged, or was changed while it was read: write it again."
        )

    def stamp(self) -> object:
        return stamp_of(self.files)

    def label(self, piece: int) -> str:
        number, group = self.groups[piece]
        # Within a single row group, the row alone identifies the place.
        several = f"{self.files[number].relative_to(self.path)}, " if self.path.is_dir() else ""
        return f"{several}row group {group + 1}" if len(self.groups) > 1 else ""

    def read(self, piece: int) -> Iterator[tuple[int, NDArray[Any]]]:
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
                features = self.of_file[number]
                batches = file.iter_batches(self.step, row_groups=[group], columns=features.names)
                for batch in batches:
                    place = partial(self._place_in, int(self.edges[i]) + seen)
                    yield i, features.rows(batch, place)
                    seen += len(batch)
            except arrow_errors():
                raise self._damaged(number) from None

    def _place_in(self, start: int, row: int) -> str:
        return f"{self.where}: {self.place(start + row)}"


def files_of(path: Path) -> list[Path]:
    """Return the Parquet files of a path, in the order of their names.

    Raises
    ------
    DataError
        If there are none.
    """
    if not path.is_dir():
        return [path]
    found = sorted(file for file in path.rglob("*.parquet") if is_read(file, path))
    if not found:
        raise DataError(
            f"{path} is a folder without .parquet files: give a file, or a folder whose .parquet "
            "files are read as one table."
        )
    return found


def _warn_of_partitions(path: Path, files: list[Path]) -> None:
    """Warn if folders have names such as ``column=value``, because these columns are not read."""
    parts = {part for file in files if path.is_dir() for part in file.relative_to(path).parts[:-1]}
    names = sorted({part.partition("=")[0] for part in parts if "=" in part})
    if names:
        warnings.warn(
            f"{path}: the values of {', '.join(names)} are in the names of folders, which are not "
            "read; write them into the files if they are features.",
            stacklevel=2,
        )


def is_read(file: Path, folder: Path) -> bool:
    """Return whether a file in a folder is read, by its name."""
    hidden = any(part[0] in "._" for part in file.relative_to(folder).parts)
    return file.suffix == ".parquet" and not hidden
