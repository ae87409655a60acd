"""A text once more: each row as its characters are, and its cells."""

from __future__ import annotations

import codecs
import io
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, TextIO

from lloydia.data.columns import DataError
from lloydia.data.formats.opening import open_input, text_of
from lloydia.data.formats.parquet import pyarrow_parquet
from lloydia.data.formats.stamps import Stamp
from lloydia.data.labelled.original import Labels, Original
from lloydia.data.labelled.row_groups import gathered
from lloydia.data.numbers import Grammar
from lloydia.data.text.records import WHITE, QuoteError, Text, decoded, not_utf8, rows
from lloydia.data.text.separators import is_short, separator_of

__all__ = ["TextOriginal"]

# Rows at a time.
BLOCK = 1 << 16

# What texts begin with that say how they are encoded.
MARKS = (
    *((codecs.BOM_UTF32_LE, "utf-32-le"), (codecs.BOM_UTF32_BE, "utf-32-be")),
    *((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be")),
    (codecs.BOM_UTF8, "utf-8"),
)

CALLED = {",": "commas", ";": "semicolons", "\t": "tabs", WHITE: "white space"}


class TextOriginal(Original):
    """A text file.

    Parameters
    ----------
    path : Path
    before : Stamp
        As for :class:`Original`.
    header : bool
        Whether its first row is a header.
    grammar : Grammar
    """

    def __init__(self, path: Path, before: Stamp, header: bool, grammar: Grammar) -> None:
        super().__init__(path, before)
        self.header, self.grammar = header, grammar
        with self._opened() as reading:
            self.separator = reading.separator
            self.mark, self.codec = reading.mark, reading.codec
            first, self.width = reading.sample[0], reading.width
            cells = [cell.strip() for cell in first.cells]
        if not header:
            self.names = None
        elif reading.names_rows:
            self.names = ("", *cells)
        else:
            self.names = (*cells, *[""] * (self.width - len(cells)))
        self.in_quotes = len(first.quoted) == len(first.cells)

    @contextmanager
    def _opened(self) -> Iterator[_Reading]:
        with open_input(self.path) as (stream, suffix):
            stream, suffix = text_of(stream, suffix, self.where)
            start = stream.peek(4)[:4]  # type: ignore[attr-defined]
            mark, codec = next(
                (pair for pair in MARKS if start.startswith(pair[0])), (b"", "utf-8")
            )
            try:
                with decoded(stream) as lines:
                    reading = _Reading(lines, suffix, self.grammar, self.header, self.where)
                    reading.mark, reading.codec = mark, codec
                    yield reading
            except UnicodeDecodeError:
                raise DataError(f"{self.where} is not UTF-8 text; save it as UTF-8.") from None
            except QuoteError as error:
                raise DataError(f"{self.where}: {error}") from None

    def _ids(self, column: str) -> Iterator[Sequence[str]]:
        place, cells = self.place(column), []
        with self._opened() as reading:
            for number, (_, row) in enumerate(reading.rows()):
                if self.header and number == 0:
                    continue
                if place >= len(row):
                    raise self._changed("a row has fewer cells")
                cells.append(row[place])
                if len(cells) == BLOCK:
                    yield cells
                    cells = []
        yield cells

    def check_ending(self, path: Path) -> None:
        """Refuse a .tsv for what is not separated by tabs."""
        if path.suffix.lower() == ".tsv" and self.separator != "\t":
            found = CALLED.get(self.separator, repr(self.separator))
            raise DataError(
                f"cannot write {path}: the cells of {self.where} are separated by {found}, and "
                "stay so; name a .csv or .txt file."
            )

    def _write(self, to: Path, labels: Labels, name: str, suffix: str) -> None:
        # The table is read in a generator: an error of `out` must not pass for one of the table.
        with self._same_encoding(to) as out:
            for part in self._with_labels(labels, name):
                out.write(part)

    @contextmanager
    def _same_encoding(self, to: Path) -> Iterator[TextIO]:
        """Open a file that is encoded as the text is."""
        with to.open("wb") as stream:
            stream.write(self.mark)
            errors = "surrogateescape" if self.codec == "utf-8" else "strict"
            out = io.TextIOWrapper(stream, encoding=self.codec, errors=errors, newline="")
            yield out
            out.flush()
            out.detach()

    def _with_labels(self, labels: Labels, name: str) -> Iterator[str]:
        """Give all characters of the text, with a cell more at the end of each row."""
        n = 0
        title = self._cell(name)
        with self._opened() as reading:
            yield "".join(reading.leading)
            mark = reading.separator
            for number, (raw, _) in enumerate(reading.rows()):
                body = raw.rstrip("\r\n")
                if self.header and number == 0:
                    # The header may lack the name of an empty last column.
                    cell = mark * reading.unnamed_end + title
                elif n < len(labels):
                    cell = str(labels[n])
                    n += 1
                else:
                    n += 1
                    continue
                yield f"{body}{mark}{cell}{raw[len(body) :]}"
            yield "".join(reading.raw)
        self._check_count(n, labels)

    def _cell(self, name: str) -> str:
        """Return the header's cell, in quotes where the others are, or where it must be."""
        special = any(c in name for c in '"\r\n' + self.separator) or name != name.strip()
        if not (special or self.in_quotes or (self.separator == WHITE and " " in name)):
            return name
        return '"' + name.replace('"', '""') + '"'

    def _write_parquet(self, to: Path, labels: Labels, column: str, names: Sequence[str]) -> None:
        import pyarrow as pa

        parquet = pyarrow_parquet(str(to))
        schema = pa.schema([(names[0], pa.string()), (names[1], pa.from_numpy_dtype(labels.dtype))])
        with to.open("wb") as stream, parquet.ParquetWriter(stream, schema) as writer:
            for table in gathered(self._ids_with_labels(schema, labels, column)):
                writer.write_table(table)

    def _ids_with_labels(self, schema: Any, labels: Labels, column: str) -> Iterator[Any]:
        """Give Arrow tables of the ids and the labels."""
        import pyarrow as pa

        n = 0
        for ids in self._ids(column):
            bad = next((i for i, cell in enumerate(ids) if not_utf8(cell)), None)
            if bad is not None:
                raise DataError(
                    f"{self.where} is not UTF-8 text in row {n + bad + 1}; save it as UTF-8."
                )
            some = pa.array(labels[n : n + len(ids)])
            n += len(ids)
            if len(some) == len(ids):
                yield pa.Table.from_arrays([pa.array(ids, pa.string()), some], schema=schema)
        self._check_count(n, labels)


class _Reading:
    """One reading of a text.

    Attributes
    ----------
    leading : list of str
        The lines before the first row.
    raw : list of str
        Lines that were read since the last row.
    names_rows : bool
        Whether the first column holds names of rows, and the header has no name for it.
    unnamed_end : bool
        Whether the last column is empty, and the header has no cell for it.
    mark, codec : bytes and str
        What the text begins with, and how its characters are encoded.
    """

    mark = b""
    codec = "utf-8"

    def __init__(
        self, lines: Iterator[str], suffix: str, grammar: Grammar, header: bool, where: str
    ) -> None:
        self.raw: list[str] = []
        self.text = Text(_recorded(lines, self.raw))
        self.leading = self.raw[: self.text.skipped]
        self.raw.clear()
        self.separator = separator_of(self.text, suffix, grammar, where)
        self.sample = self.text.sample(self.separator)
        if not self.sample:
            raise DataError(f"{where} is empty.")
        short = is_short(self.sample, self.separator, grammar, header)
        self.unnamed_end = short and all(not row.cells[-1].strip() for row in self.sample[1:])
        self.names_rows = short and not self.unnamed_end
        self.width = len(self.sample[0].cells) + short

    def rows(self) -> Iterator[tuple[str, list[str]]]:
        """Give each row as its characters, with blank lines above it, and as cells."""
        # The rest of the lines is recorded already.
        lines = chain(_recorded(self.text.head, self.raw), self.text.rest)
        for _, cells, _ in rows(lines, self.separator, self.text.skipped, marked=False):
            yield "".join(self.raw), cells
            self.raw.clear()


def _recorded(lines: Iterable[str], record: list[str]) -> Iterator[str]:
    """Give lines, and add each to a record."""
    for line in lines:
        record.append(line)
        yield line
