"""Tables as text: separator, header, quoted cells, and errors that name the row and the column."""

from __future__ import annotations

import csv
import math
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from lloydia.data.columns import Columns, DataError, choose, refuse_text

HEAD = 200  # lines that are looked at for the separator, the header and columns of text
MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?"})
THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+")
DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?")
WHITE = " "  # as a separator: any run of white space

Row = tuple[int, list[str]]  # the line that it ends on, counted from 1, and its cells


def read_text(
    stream: Iterable[str],
    where: str,
    *,
    suffix: str = "",
    header: bool | None = None,
    wanted: str | Sequence[str] | None = None,
) -> tuple[NDArray[np.float64], Columns]:
    """Read a numeric table.

    Leading lines that start with ``#`` and all blank lines are left out. The separator is a tab in
    a .tsv file, else whichever of tab, semicolon, comma and white space divides the first lines
    evenly. The first row is a header if it holds text and no numbers, or text above numbers.

    Parameters
    ----------
    stream : iterable of str
        Lines, with their ends.
    where : str
        What errors call the table.
    suffix : str
        Extension of the file, with the dot, or "" where there is none.
    header : bool or None
        Whether the first row is a header; None finds out.
    wanted : str, sequence of str or None
        Columns to read, as in `lloydia.data.columns.choose`.

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
    """
    lines = iter(stream)
    try:
        skipped, head = _without_comments(lines)
        separator = _separator([line for line in head if line.strip()][:HEAD], suffix)
        sample = [cells for _, cells in _rows(head, separator, 0)]
        if not sample:
            raise DataError(f"{where} is empty.")
        if header is None:
            header = _is_header(sample, where)
        names = tuple(cell.strip() for cell in sample[0]) if header else None
        columns = choose(names, len(sample[0]), wanted, where)
        _refuse_text(sample[int(header) :], columns, names, where)
        rows = _rows(chain(head, lines), separator, skipped)
        return _numbers(islice(rows, int(header), None), columns, len(sample[0]), where), columns
    except UnicodeDecodeError:
        raise DataError(f"{where} is not UTF-8 text; save it as UTF-8.") from None
    except csv.Error as error:
        raise DataError(f"{where} cannot be read as a table of text: {error}.") from None


def _without_comments(lines: Iterator[str]) -> tuple[int, list[str]]:
    """Return how many comments and blank lines lead, and the first lines after them."""
    skipped = 0
    for line in lines:
        if line.strip() and not line.lstrip().startswith("#"):
            return skipped, [line, *islice(lines, HEAD - 1)]
        skipped += 1
    return skipped, []


def _rows(lines: Iterable[str], separator: str, skipped: int) -> Iterator[Row]:
    if separator == WHITE:
        lines = (" ".join(line.split()) for line in lines)
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=True)
    for cells in reader:
        if len(cells) > 1 or (cells and cells[0].strip()):
            yield reader.line_num + skipped, cells


def _separator(lines: Sequence[str], suffix: str) -> str:
    if suffix == ".tsv":
        return "\t"
    cut = {separator: [cells for _, cells in _rows(lines, separator, 0)] for separator in "\t;, "}
    widths = {separator: [len(cells) for cells in rows] for separator, rows in cut.items()}
    even = [separator for separator in cut if len(set(widths[separator])) == 1]
    even = [separator for separator in even if widths[separator][0] > 1]
    if even[:1] == ["\t"] and WHITE in even:
        # Tabs may separate columns or only align them: numbers in the last line tell.
        return max("\t", WHITE, key=lambda separator: sum(map(_is_number, cut[separator][-1])))
    if even:
        return even[0]
    # No separator divides the lines evenly: take the one that finds most cells in the first line,
    # so that the error about the ragged rows counts them as their author would.
    likely = ("\t", ";", ",") if suffix == ".csv" else ("\t", ";", ",", WHITE)
    most = max(likely, key=lambda separator: max(widths[separator][:1], default=0))
    return most if max(widths[most][:1], default=0) > 1 else ","


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _is_text(cell: str) -> bool:
    return cell.strip().lower() not in MISSING and not _is_number(cell)


def _is_header(sample: Sequence[Sequence[str]], where: str) -> bool:
    first, second = sample[0], sample[1] if len(sample) > 1 else ()
    if not any(map(_is_text, first)) or any(DECIMAL_COMMA.fullmatch(c.strip()) for c in first):
        return False
    if not any(map(_is_number, first)):
        return True
    if any(_is_text(a) and _is_number(b) for a, b in zip(first, second)):
        return True
    raise DataError(
        f"{where}: cannot tell whether the first row is a header, as it mixes numbers and text; "
        "say --header or --no-header."
    )


def _refuse_text(
    sample: Sequence[Sequence[str]], columns: Columns, names: Sequence[str] | None, where: str
) -> None:
    """Refuse columns that hold text and not one number in the rows of the sample."""

    def holds_text(place: int) -> bool:
        cells = [cells[place] for cells in sample if place < len(cells)]
        return any(map(_is_text, cells)) and not any(map(_is_number, cells))

    width = max((len(cells) for cells in sample), default=0)
    numeric = [place for place in range(width) if not holds_text(place)]
    kinds = ["text" if holds_text(place) else "" for place in columns.places]
    for j, place in enumerate(columns.places):
        cells = (cells[place].strip() for cells in sample if kinds[j] and place < len(cells))
        if comma := next(filter(DECIMAL_COMMA.fullmatch, cells), None):
            raise DataError(f"{where}: {columns.label(j)} holds {comma!r}; {_with_point(comma)}.")
    refuse_text(columns, kinds, numeric, where)


def _with_point(number: str) -> str:
    point = number.replace(",", ".")
    if THOUSANDS.fullmatch(number):
        whole = number.replace(",", "")
        return f"commas in numbers are not read, write {whole} for a thousand and {point} for one"
    return f"decimal commas are not read, write {point}"


def _numbers(rows: Iterable[Row], columns: Columns, width: int, where: str) -> NDArray[np.float64]:
    values, lines = array("d"), array("q")
    everything = columns.places == tuple(range(width))
    pick: Callable[[list[str]], Iterable[str]]
    if len(columns.places) == 1:
        place = columns.places[0]
        pick = lambda cells: (cells[place],)  # noqa: E731 - itemgetter of one item gives no tuple
    else:
        pick = itemgetter(*columns.places)
    for line, cells in rows:
        if len(cells) != width:
            row = f"row {len(lines) + 1} (line {line})"
            have = f"{len(cells)} cell{'s' * (len(cells) != 1)}"
            raise DataError(f"{where}: {row} has {have} where the first row has {width}.")
        try:
            values.extend(map(float, cells if everything else pick(cells)))
        except ValueError:
            _blame_cell(cells, len(lines) + 1, line, columns, where)
        lines.append(line)
    if not lines:
        raise DataError(f"{where} has a header but no rows.")
    X = np.frombuffer(values, dtype=np.float64).reshape(len(lines), len(columns.places))
    check_finite(X, columns, where, lines)
    return X


def _blame_cell(cells: Sequence[str], row: int, line: int, columns: Columns, where: str) -> None:
    for j, place in enumerate(columns.places):
        cell = cells[place].strip()
        if not _is_number(cell):
            what = f"is {cell[:40]!r}, not a number"
            if cell.lower() in MISSING:
                what = "is missing; fill it in or remove the row"
            elif DECIMAL_COMMA.fullmatch(cell):
                what += f"; {_with_point(cell)}"
            raise DataError(f"{where}: row {row} (line {line}), {columns.label(j)} {what}.")


def check_finite(
    X: NDArray[np.floating], columns: Columns, where: str, lines: Sequence[int] | None = None
) -> None:
    """Refuse NaN and infinity.

    Parameters
    ----------
    X : ndarray of floats, shape (n, d)
    columns : Columns
        The d columns.
    where : str
        What the error calls the table.
    lines : sequence of int or None
        The line of the file for each row, counted from 1, where rows have lines.

    Raises
    ------
    DataError
        A value is not finite; the sentence names the first row and column.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        # A finite sum proves that every term is finite, at a fraction of the memory of isfinite(X).
        if math.isfinite(X.sum(dtype=np.float64)):
            return
    bad = np.flatnonzero(~np.isfinite(X).ravel())
    if len(bad) == 0:
        return
    row, j = divmod(int(bad[0]), X.shape[1])
    at = f" (line {lines[row]})" if lines is not None else ""
    what = "NaN" if np.isnan(X[row, j]) else "infinite"
    raise DataError(
        f"{where}: row {row + 1}{at}, {columns.label(j)} is {what}; remove the row or fill it in."
    )


def read_pairs(stream: Iterable[str], where: str) -> NDArray[np.float64]:
    """Read a stream of numbers as consecutive x y, whatever the line breaks.

    Parameters
    ----------
    stream : iterable of str
        Lines; numbers are separated by white space, commas or semicolons, and lines that start
        with ``#`` are left out.
    where : str
        What errors call the stream.

    Returns
    -------
    ndarray of float64, shape (n, 2)

    Raises
    ------
    DataError
        The stream is empty, holds an odd count of numbers, or something else than finite numbers.
    """
    values = array("d")
    try:
        for line in stream:
            if not line.lstrip().startswith("#"):
                values.extend(map(float, line.replace(",", " ").replace(";", " ").split()))
    except UnicodeDecodeError:
        raise DataError(f"{where} is not UTF-8 text; save it as UTF-8.") from None
    except ValueError as error:
        pair = f"pair {len(values) // 2 + 1}, {'xy'[len(values) % 2]}"
        raise DataError(f"{where}: {pair} is not a number ({error}).") from None
    if not values:
        raise DataError(f"{where} is empty.")
    if len(values) % 2:
        raise DataError(
            f"{where} holds {len(values)} numbers, an odd count; --pairs reads them as x y x y."
        )
    X = np.frombuffer(values, dtype=np.float64).reshape(-1, 2)
    check_finite(X, Columns((0, 1), ("x", "y")), where)
    return X
