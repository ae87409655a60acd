"""The base class of tables that are read a second time."""

from __future__ import annotations

import csv
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from numpy.typing import NDArray

from lloydia.data.chunks.parquet import files_of
from lloydia.data.columns import DataError, id_place
from lloydia.data.formats.stamps import Stamp, stamp_of
from lloydia.data.numbers import shown

__all__ = ["Labels", "Original", "stamp"]

# One integer per row: an array, or a memory map of a file.
Labels = NDArray[Any]


def stamp(path: Path) -> Stamp:
    """Return the stamp of a table: of a file, or of all the Parquet files of a folder."""
    return stamp_of(files_of(path))


class Original(ABC):
    """A table whose rows are read in order, a second time.

    The labels belong to the rows of the first reading, so every method that yields or writes rows
    raises DataError if the table has changed since.

    Parameters
    ----------
    path : Path
    before : Stamp
        The result of :func:`stamp` before the first reading.

    Attributes
    ----------
    where : str
        The name of the table in errors.
    names : tuple of str or None
        Names of all columns, or None if they have no names.
    width : int
        Number of columns.
    """

    where: str
    names: tuple[str, ...] | None
    width: int

    def __init__(self, path: Path, before: Stamp) -> None:
        self.path, self.where, self.before = path, str(path), before

    def place(self, column: str) -> int:
        """Return the place, from 0, of the column that `column` names or numbers."""
        return id_place(column, self.names, self.width, self.where)

    def id_name(self, column: str) -> str:
        """Return the name of the column in a file of labels."""
        return (self.names[self.place(column)] if self.names else "") or "id"

    def check_name(self, name: str) -> None:
        """Refuse a name for the column of clusters that another column has.

        Raises
        ------
        DataError
            If another column has this name.
        """
        if self.names is not None and name in self.names:
            raise DataError(
                f"{self.where} has a column {shown(name)} already: name the new one with "
                "--cluster-name NAME."
            )

    def write_ids(self, to: Path, labels: Labels, column: str, suffix: str) -> None:
        """Write two columns: that of the ids, as it is written, and the label of each row.

        Parameters
        ----------
        to : Path
        labels : ndarray of int, shape (n,)
        column : str
            Name or number of the column of ids.
        suffix : {".csv", ".tsv", ".txt", ".parquet"}

        Raises
        ------
        DataError
            If the table has changed.
        OSError
            If the file cannot be written.
        """
        names = [self.id_name(column), "label"]
        if suffix == ".parquet":
            with self._unchanged():
                self._write_parquet(to, labels, column, names)
            return
        delimiter = {".csv": ",", ".tsv": "\t", ".txt": " "}[suffix]
        with to.open("w", encoding="utf-8", errors="surrogateescape", newline="") as stream:
            if suffix != ".txt":
                csv.writer(stream, delimiter=delimiter, lineterminator="\n").writerow(names)
            self.put_ids(stream, labels, column, delimiter)

    def put_ids(self, stream: TextIO, labels: Labels, column: str, delimiter: str) -> None:
        """Write the id and the label of each row to a stream, without a header."""
        writer = csv.writer(stream, delimiter=delimiter, lineterminator="\n")
        n = 0
        for ids in self.ids(column):
            some = labels[n : n + len(ids)].tolist()
            n += len(ids)
            writer.writerows(zip(ids, some))
        self._check_count(n, labels)

    def ids(self, column: str) -> Iterator[Sequence[str]]:
        """Yield the cells of a column as texts, in blocks."""
        with self._unchanged():
            yield from self._ids(column)

    def write(self, to: Path, labels: Labels, name: str, suffix: str) -> None:
        """Write the whole table with every cell unchanged, and a last column of labels.

        Parameters
        ----------
        to : Path
        labels : ndarray of int, shape (n,)
        name : str
            The name of the new column.
        suffix : str
            One of :func:`lloydia.data.labelled.endings`.

        Raises
        ------
        DataError, OSError
            As :meth:`write_ids`.
        """
        with self._unchanged():
            self._write(to, labels, name, suffix)

    @abstractmethod
    def check_ending(self, path: Path) -> None:
        """Refuse an output whose extension does not fit the table.

        Raises
        ------
        DataError
            If it does not fit.
        """

    @abstractmethod
    def _ids(self, column: str) -> Iterator[Sequence[str]]: ...

    @abstractmethod
    def _write(self, to: Path, labels: Labels, name: str, suffix: str) -> None: ...

    @abstractmethod
    def _write_parquet(
        self, to: Path, labels: Labels, column: str, names: Sequence[str]
    ) -> None: ...

    @contextmanager
    def _unchanged(self) -> Iterator[None]:
        """Check before and after a reading that the table has not changed since the first one."""
        self._check_stamp()
        yield
        self._check_stamp()

    def _check_stamp(self) -> None:
        if stamp(self.path) != self.before:
            raise self._changed("its rows may be others, or in another order")

    def _check_count(self, n: int, labels: Labels) -> None:
        if n != len(labels):
            raise self._changed(f"it has {n:,} rows, and had {len(labels):,}")

    def _changed(self, how: str) -> DataError:
        return DataError(
            f"{self.where} changed while this command ran: {how}; run the command again when "
            "nothing changes the table."
        )
