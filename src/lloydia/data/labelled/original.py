"""What can be done with a table that is read once more."""

from __future__ import annotations

import csv
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

from numpy.typing import NDArray

from lloydia.data.columns import DataError, id_place
from lloydia.data.numbers import shown

__all__ = ["Labels", "Original"]

# One integer a row: an array, or one that is mapped from a file.
Labels = NDArray[Any]


class Original(ABC):
    """A table whose rows are read in order.

    Attributes
    ----------
    where : str
        What errors call it.
    names : tuple of str or None
        Of all columns, if they have names.
    width : int
        How many columns there are.
    """

    where: str
    names: tuple[str, ...] | None
    width: int

    def place(self, column: str) -> int:
        """Return the place, from 0, of the column that `column` names or numbers."""
        return id_place(column, self.names, self.width, self.where)

    def id_name(self, column: str) -> str:
        """Return what the column is called in a file of labels."""
        return (self.names[self.place(column)] if self.names else "") or "id"

    def check_name(self, name: str) -> None:
        """Refuse a name for the column of clusters that another column has.

        Raises
        ------
        DataError
            There is one.
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
            The table has another number of rows than there are labels: it changed.
        OSError
            The file cannot be written.
        """
        names = [self.id_name(column), "label"]
        if suffix == ".parquet":
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

    @abstractmethod
    def ids(self, column: str) -> Iterator[Sequence[str]]:
        """Give the cells of a column as texts, in blocks."""

    @abstractmethod
    def write(self, to: Path, labels: Labels, name: str, suffix: str) -> None:
        """Write the whole table, every cell as it is, with a last column of labels.

        Parameters
        ----------
        to : Path
        labels : ndarray of int, shape (n,)
        name : str
            Of the new column.
        suffix : str
            One of :func:`lloydia.data.labelled.endings`.

        Raises
        ------
        DataError, OSError
            As :meth:`write_ids`.
        """

    @abstractmethod
    def check_ending(self, path: Path) -> None:
        """Refuse an output whose extension does not fit the table.

        Raises
        ------
        DataError
            It does not.
        """

    @abstractmethod
    def _write_parquet(
        self, to: Path, labels: Labels, column: str, names: Sequence[str]
    ) -> None: ...

    def _check_count(self, n: int, labels: Labels) -> None:
        if n != len(labels):
            raise DataError(
                f"{self.where} changed while it was read: it has {n:,} rows, and had "
                f"{len(labels):,}."
            )
