"""Read a table of numbers from text."""

from __future__ import annotations

import warnings
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import starmap
from operator import itemgetter
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from lloydia.data.columns import Columns, DataError, choose, id_place
from lloydia.data.numbers import Grammar
from lloydia.data.text.finite import check_finite
from lloydia.data.text.header import Verdict, judge, kind, read_as_row
from lloydia.data.text.layouts import other_layout
from lloydia.data.text.no_numbers import refuse_columns
from lloydia.data.text.records import PlainRow, QuoteError, Row, Text, decoded, not_utf8
from lloydia.data.text.separators import is_short, separator_of


@dataclass(frozen=True)
class TextForm:
    """How a text is written.

    Parameters
    ----------
    header : bool or None
        Whether the first row is a header; None finds out.
    grammar : Grammar
        How its numbers are written.
    n_rows : int or None
        How many rows of numbers there must be, where that is known: a first row of numbers that is
        one more is a header.
    """

    header: bool | None = None
    grammar: Grammar = field(default_factory=Grammar)
    n_rows: int | None = None


def read_text(
    stream: BinaryIO,
    where: str,
    *,
    suffix: str = "",
    form: TextForm = TextForm(),
    wanted: str | Sequence[str] | None = None,
    id_column: str | None = None,
) -> tuple[NDArray[np.float64], Columns]:
    """Read a numeric table, as docs/tables.md says.

    Parameters
    ----------
    stream : binary file
        UTF-8, or UTF-16 or UTF-32 with a byte-order mark.
    where : str
        What errors call the table.
    suffix : str
        Extension of the file, with the dot, or "" where there is none.
    form : TextForm
        How it is written.
    wanted : str, sequence of str or None
        Columns to read, as in `lloydia.data.columns.choose`.
    id_column : str or None
        Name or number of a column that is not among all columns.

    Returns
    -------
    X : ndarray of float64, shape (n, d)
        Finite numbers.
    columns : Columns

    Raises
    ------
    DataError
        The table is empty or ragged, or a cell is missing, text, NaN or infinite; the sentence
        names the row (counted from 1, without the header), the line of the file and the column.

    Warns
    -----
    UserWarning
        If it is not certain whether the first row is a header, or if the first column is read as
        names of rows and left out.
    """
    try:
        with decoded(stream) as lines:
            text = Text(lines)
            try:
                return _Reading(text, where, suffix, form, wanted, id_column).result()
            except DataError:
                if said := other_layout(text.head):
                    raise DataError(f"{where} {said}.") from None
                raise
    except UnicodeDecodeError:
        raise DataError(f"{where} is not UTF-8 text; save it as UTF-8.") from None
    except QuoteError as error:
        raise DataError(f"{where}: {error}") from None


class _Reading:
    """The reading of one table."""

    def __init__(
        self,
        text: Text,
        where: str,
        suffix: str,
        form: TextForm,
        wanted: str | Sequence[str] | None,
        id_column: str | None,
    ) -> None:
        self.where, self.form, self.wanted, self.grammar = where, form, wanted, form.grammar
        self.id_column = id_column
        self.text = text
        self.separator = separator_of(self.text, suffix, self.grammar, where)
        self.sample = self.text.sample(self.separator)
        if not self.sample:
            raise DataError(f"{where} is empty.")
        self.short = is_short(self.sample, self.separator, self.grammar, form.header)
        self.verdict = self._verdict()
        self._choose(self.verdict.header)
        self.values, self.lines = array("d"), array("q")

    def _verdict(self) -> Verdict:
        if self.form.header is not None:
            return Verdict(self.form.header)
        if self.short:
            return Verdict(True)
        return judge(self.sample, self.wanted, self.grammar, self.where)

    def _choose(self, header: bool) -> None:
        """Choose the columns to read, and set the number of cells per row."""
        self.columns, self.width = self._chosen(header)
        places = self.columns.places
        every = places == tuple(range(self.width))
        # An itemgetter of one item does not return a tuple.
        pick = itemgetter(*places) if len(places) > 1 else lambda cells: (cells[places[0]],)
        self.pick: Callable[[list[str]], Sequence[str]] = _same if every else pick

    def _chosen(self, header: bool) -> tuple[Columns, int]:
        first = self.sample[0].cells
        self.names: list[str] | None = None
        if not header:
            left_out = self._places_of_ids(None, len(first))
            return choose(None, len(first), self.wanted, self.where, left_out), len(first)
        # Spaces at the ends of a name are kept only in quotes.
        quoted = self.sample[0].quoted
        names = [
            cell if j in quoted and cell.strip() else cell.strip() for j, cell in enumerate(first)
        ]
        if any(map(not_utf8, names)):
            raise DataError(
                f"{self.where} is not UTF-8 text in line {self.sample[0].line}; save it as UTF-8."
            )
        names_rows: tuple[int, ...] = ()
        if self.short and all(not row.cells[-1].strip() for row in self.sample[1:]):
            names = [*names, ""]
        elif self.short:
            names, names_rows = ["", *names], (0,)
        self.names = names
        ids = self._places_of_ids(names, len(names))
        left_out = tuple({*names_rows, *ids})
        chosen = choose(names, len(names), self.wanted, self.where, left_out)
        if names_rows and 0 not in (*chosen.places, *ids):
            warnings.warn(
                f"{self.where}: the header has one cell less than the rows, so column 1 is read as "
                "names of rows, as R writes them, and is no feature.",
                stacklevel=2,
            )
        return chosen, len(names)

    def _places_of_ids(self, names: Sequence[str] | None, width: int) -> tuple[int, ...]:
        if self.id_column is None:
            return ()
        return (id_place(self.id_column, names, width, self.where),)

    def result(self) -> tuple[NDArray[np.float64], Columns]:
        """Read all rows."""
        rows = self.text.rows(self.separator, marked=self.verdict.kinds)
        next(rows)
        first = self.sample[0]
        below = self.sample[int(self.verdict.header) :]
        if not all(self._holds_numbers(row) for row in below):
            refuse_columns(below, self.columns, self.names, self.width, self.grammar, self.where)
        if not self.verdict.header:
            self._add(first)
        agrees = self._read(rows)
        header = self._settled(first, agrees)
        warning = self.verdict.warning if agrees else read_as_row(first, self.where)
        if warning and self.form.n_rows is None:
            warnings.warn(warning, stacklevel=2)
        if header != self.verdict.header:
            self._change(first, header)
        n = len(self.lines)
        if not n:
            raise DataError(f"{self.where} has a header but no rows.")
        X = np.frombuffer(self.values, dtype=np.float64).reshape(n, len(self.columns.places))
        check_finite(X, self.columns, self.where, self.lines)
        return X, self.columns

    def _read_quickly(self, rows: Iterator[PlainRow]) -> None:
        """Read rows as `_add` does."""
        values, lines, width, pick = self.values, self.lines, self.width, self.pick
        extend = self.grammar.extend
        for row in rows:
            line, cells, _ = row
            if len(cells) != width or extend(values, pick(cells)) is not None:
                # Add the row again to raise the error; the values added before do not matter.
                self._add(Row(*row))
            lines.append(line)

    def _read(self, rows: Iterator[PlainRow]) -> bool:
        """Read rows; return whether the notation of all differs from the header's numbers."""
        if not self.verdict.kinds:
            self._read_quickly(rows)
            return True
        first, agrees = self.sample[0], True
        kinds = {
            j: kind(first.cells[j].strip(), j in first.quoted, self.grammar)
            for j in range(first.cells[0].strip() == "", len(first.cells))
        }
        for row in starmap(Row, rows):
            self._add(row)
            agrees = agrees and not any(
                kind(row.cells[j].strip(), j in row.quoted, self.grammar) == kinds[j] for j in kinds
            )
        return agrees

    def _settled(self, first: Row, agrees: bool) -> bool:
        """Return whether the first row is a header, after all rows have been read."""
        if self.form.header is not None or not all(map(self.grammar.is_number, first.cells)):
            return self.verdict.header
        if self.form.n_rows is not None:
            total = len(self.lines) + int(self.verdict.header)
            if total in (self.form.n_rows, self.form.n_rows + 1):
                return total == self.form.n_rows + 1
        return self.verdict.header and agrees

    def _change(self, first: Row, header: bool) -> None:
        """Turn the first row into a header, or the header into a row."""
        self._choose(header)
        d = len(self.columns.places)
        if header:
            del self.values[:d], self.lines[:1]
            return
        values, lines = self.values, self.lines
        self.values, self.lines = array("d"), array("q")
        self._add(first)
        self.values.extend(values)
        self.lines.extend(lines)

    def _holds_numbers(self, row: Row) -> bool:
        if len(row.cells) != self.width:
            return False
        return self.grammar.extend(array("d"), self.pick(row.cells)) is None

    def _add(self, row: Row) -> None:
        if len(row.cells) != self.width:
            raise self._ragged(row)
        cells = self.pick(row.cells)
        bad = self.grammar.extend(self.values, cells)
        self.lines.append(row.line)
        if bad is not None:
            number = len(self.lines)
            if not any(cell.strip() for cell in row.cells):
                raise DataError(
                    f"{self.where}: row {number} (line {row.line}) has only empty cells; remove it."
                )
            raise DataError(
                f"{self.where}: row {number} (line {row.line}), {self.columns.label(bad)} "
                f"{self.grammar.complaint(cells[bad])}."
            )

    def _ragged(self, row: Row) -> DataError:
        count, width = len(row.cells), self.width
        have = f"{count} cell{'s' * (count != 1)}"
        more = ""
        if count == width + 1 and not row.cells[-1].strip():
            more = "; it ends with a separator"
        elif row.cells[0].lstrip().startswith("#"):
            more = "; comments are left out only above the first row"
        return DataError(
            f"{self.where}: row {len(self.lines) + 1} (line {row.line}) has {have} where the first "
            f"row has {width}{more}."
        )


def _same(cells: list[str]) -> list[str]:
    return cells
