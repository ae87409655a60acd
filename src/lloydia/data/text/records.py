"""The lines of a text, and the cells of each row."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from itertools import chain, islice
from typing import BinaryIO, NamedTuple

from lloydia.data.columns import DataError
from lloydia.data.numbers import shown

WHITE = " "  # as a separator: any run of spaces and tabs
BLANKS = " \t\r\n\f\v"
HEAD = 200  # the number of lines examined for the separator, the header and columns of text
HEAD_CHARACTERS = 1_000_000  # the largest length of these lines, unless two are longer
ENCODINGS = (
    *((b"\xff\xfe\x00\x00", "utf-32"), (b"\x00\x00\xfe\xff", "utf-32")),
    *((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16")),
)
EXCEL_SEPARATOR = re.compile(r'"?sep=([^\w"\r\n.+-])"?\s*', re.I)


class Row(NamedTuple):
    """A row of a table.

    Parameters
    ----------
    line : int
        The line of the file on which the row ends, counted from 1.
    cells : list of str
    quoted : frozenset of int
        Positions of the cells in quotes.
    """

    line: int
    cells: list[str]
    quoted: frozenset[int] = frozenset()


PlainRow = tuple[int, list[str], frozenset[int]]  # the same as Row, faster to create
NONE: frozenset[int] = frozenset()


class QuoteError(DataError):
    """The error for a quote that is never closed, or is followed by text."""


class UnclosedError(QuoteError):
    """The error for a quote that is never closed."""


@contextmanager
def decoded(stream: BinaryIO) -> Iterator[io.TextIOWrapper]:
    """Decode a stream as UTF-8, or as its byte-order mark says, without closing it at the end.

    Bytes that are not UTF-8 become lone surrogates, so that they matter only in cells that are
    used.
    """
    reader = io.BufferedReader(stream)  # type: ignore[type-var]
    start = reader.peek(4)[:4]
    encoding = next((name for mark, name in ENCODINGS if start.startswith(mark)), "utf-8-sig")
    errors = "surrogateescape" if encoding == "utf-8-sig" else "strict"
    lines = io.TextIOWrapper(reader, encoding=encoding, errors=errors, newline="")
    try:
        yield lines
    finally:
        lines.detach()
        reader.detach()


def not_utf8(text: str) -> bool:
    """Return whether a decoded text holds bytes that are not UTF-8."""
    return not text.isascii() and any("\udc80" <= c <= "\udcff" for c in text)


class Text:
    """The lines of a text without its leading lines, and a sample of the first rows.

    Leading lines are comments (lines that start with ``#``), blank lines, and Excel's ``sep=;``.

    Parameters
    ----------
    lines : iterator of str
        The lines with their line ends, as `decoded` yields them.

    Attributes
    ----------
    head : list of str
        The first lines after the leading ones.
    separator : str or None
        The separator in a line such as ``sep=;``.
    """

    def __init__(self, lines: Iterator[str]) -> None:
        self.skipped = 0
        self.separator: str | None = None
        first: list[str] = []
        for line in lines:
            if line.strip() and not line.lstrip().startswith("#"):
                if self.separator is not None or not (found := EXCEL_SEPARATOR.fullmatch(line)):
                    first = [line]
                    break
                self.separator = found[1]
            self.skipped += 1
        size = len(first[0]) if first else 0
        for line in islice(lines, (HEAD - 1) * len(first)):
            first.append(line)
            size += len(line)
            if size > HEAD_CHARACTERS:
                break
        self.head, self.rest = first, lines
        self._samples: dict[str, list[Row]] = {}

    def sample(self, separator: str) -> list[Row]:
        """Return the rows of the first lines.

        Raises
        ------
        QuoteError
            If a quote is followed by text, or the first row does not end.
        """
        if separator in self._samples:
            return self._samples[separator]
        found: list[Row] = []
        try:
            for row in rows(iter(self.head), separator, self.skipped, marked=True):
                found.append(Row(*row))
        except QuoteError as error:
            # The cell may end after these lines; reading the whole table shows it.
            if not found or not isinstance(error, UnclosedError):
                raise
        self._samples[separator] = found
        return found

    def rows(self, separator: str, marked: bool = True) -> Iterator[PlainRow]:
        """Yield all rows, as :func:`rows` does; the text can be read only once.

        Raises
        ------
        QuoteError
            As :func:`rows`.
        """
        return rows(chain(self.head, self.rest), separator, self.skipped, marked)


def rows(
    lines: Iterator[str], separator: str, skipped: int = 0, marked: bool = True
) -> Iterator[PlainRow]:
    """Yield the rows of lines; `skipped` lines of the file came before.

    Without `marked`, the cells in quotes may not be marked.  Blank lines are skipped.  Quotes
    around a cell are removed, and two quotes within it become one; such a cell may hold separators
    and line ends.

    Raises
    ------
    QuoteError
        If a quote is never closed, or is followed by text.
    """
    number, standard = skipped, _StandardReader(separator)
    blank = " \r\n" if separator == "\t" else BLANKS
    for line in lines:
        number += 1
        if '"' in line:
            row = None if marked else standard.row(line, number)
            row = row or _whole_line(line, separator, number)
            row = row or _several_lines(line, lines, separator, number)
            number = row[0]
            yield row
        elif separator != WHITE:
            cells = line.split(separator)
            if len(cells) > 1 or line.strip(blank):
                cells[-1] = cells[-1].rstrip("\r\n")
                yield number, cells, NONE
        elif line.isascii():
            if cells := line.split():
                yield number, cells, NONE
        elif line.strip(BLANKS):  # a narrow blank within a number divides thousands, not columns
            yield number, re.split(f"[{BLANKS}]+", line.strip(BLANKS)), NONE


class _StandardReader:
    """The standard library's reader of single lines, where it is as sure as it is quick."""

    def __init__(self, separator: str) -> None:
        self.line = ""
        self.white = separator == WHITE
        self.other_blank = re.compile("[\f\v]" if separator == "\t" else "[\t\f\v]").search
        self.reader = csv.reader(self, delimiter=separator, skipinitialspace=True, strict=True)

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        if not self.line:
            raise StopIteration
        line, self.line = self.line, ""
        return line

    def row(self, line: str, number: int) -> PlainRow | None:
        """Return a row, or None if the line is long, or wrong, or not the whole row."""
        # Of blanks before a quote it knows spaces alone.
        if self.white or self.other_blank(line):
            return None
        self.line = line
        try:
            return number, next(self.reader), NONE
        except csv.Error:
            return None


@lru_cache
def _patterns(separator: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return patterns of a cell with what ends it, and of the end of a cell in quotes."""
    blanks = "[ ]*" if separator == "\t" else r"[ \t\f\v]*"
    if separator == WHITE:
        bare, end = rf'[^"{BLANKS}][^{BLANKS}]*', r"(?:[ \t\f\v]*[\r\n]*\Z|[ \t\f\v]+)"
    else:
        cut = re.escape(separator)
        bare, end = rf'(?:[^"{cut}\r\n][^{cut}\r\n]*)?', rf"(?:{cut}|[\r\n]*\Z)"
    trail = "" if separator == WHITE else blanks
    quoted = rf'(")([^"]*(?:""[^"]*)*)"{trail}'
    return re.compile(f"({blanks}(?:{quoted}|({bare}))({end}))"), re.compile(trail + end)


def _whole_line(line: str, separator: str, number: int) -> PlainRow | None:
    """Return the row of one line, or None if it goes on in the next or is wrong."""
    body, between = line.rstrip("\r\n"), f'"{separator}"'
    if body[:1] == body[-1:] == '"' and separator != WHITE and len(body) > 1:
        cells = body[1:-1].split(between)
        if body.count('"') == 2 * len(cells):
            return number, cells, frozenset(range(len(cells)))
    found = _patterns(separator)[0].findall(line)
    if "".join(match[0] for match in found) != line:
        return None
    if separator != WHITE:
        # The pattern takes the end of the text, after the last cell, for an empty cell.
        last = next(i for i, match in enumerate(found) if not match[4].endswith(separator))
        found = found[: last + 1]
    cells = [match[2].replace('""', '"') if match[1] else match[3] for match in found]
    return number, cells, frozenset(i for i, match in enumerate(found) if match[1])


def _several_lines(line: str, lines: Iterator[str], separator: str, number: int) -> PlainRow:
    """Return the row that begins with a line, and goes on in the next ones within quotes."""
    cell, end = _patterns(separator)
    cells: list[str] = []
    quoted: list[int] = []
    at = 0
    while True:
        if (found := cell.match(line, at)) is not None:
            at, is_quoted, ended = found.end(), bool(found[2]), found[5]
            text = found[3].replace('""', '"') if is_quoted else found[4]
        else:
            opened = line.index('"', at) + 1
            text, line, at, number = _closed(line, opened, lines, number)
            if (after := end.match(line, at)) is None:
                raise QuoteError(
                    f"line {number}: text follows the quote that closes {shown(text)}; write a "
                    "quote within quotes twice."
                )
            is_quoted, at, ended = True, after.end(), after[0]
        if is_quoted:
            quoted.append(len(cells))
        cells.append(text)
        if not (at < len(line) if separator == WHITE else ended.endswith(separator)):
            return number, cells, frozenset(quoted)


def _closed(line: str, at: int, lines: Iterator[str], number: int) -> tuple[str, str, int, int]:
    """Read on to the quote that closes a cell.

    Returns the cell, the line in which it ends, the place after the quote, and that line's number.
    """
    begun, parts = number, []
    while True:
        close = line.find('"', at)
        if close < 0:
            parts.append(line[at:])
            following = next(lines, None)
            if following is None:
                raise UnclosedError(f"line {begun}: a quote is opened and never closed; remove it.")
            line, at, number = following, 0, number + 1
            continue
        parts.append(line[at:close])
        if not line.startswith('""', close):
            return "".join(parts), line, close + 1, number
        parts.append('"')
        at = close + 2
