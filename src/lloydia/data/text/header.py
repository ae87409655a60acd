"""Whether the first row of a text is a header."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from lloydia.data.columns import DataError, asked_names
from lloydia.data.numbers import MISSING, WHOLE, Grammar, shown
from lloydia.data.text.records import Row
from lloydia.spelling import option

YEARS = (1500, 2200)
# A number of the first row is far from those below if it is as many times as large as each.
FAR = 3
# Increasing numbers are as many by chance once in 120 rows.
INCREASING = 5


@dataclass(frozen=True)
class Verdict:
    """What the first row is taken for.

    Parameters
    ----------
    header : bool
    kinds : bool
        It is a header because no cell below one of its numbers is written as that is, in the rows
        that were looked at: all others must agree.
    warning : str
        What to say about it, or nothing.
    """

    header: bool
    kinds: bool = False
    warning: str = ""


def judge(
    sample: Sequence[Row], wanted: str | Sequence[str] | None, grammar: Grammar, where: str
) -> Verdict:
    """Return what the first of some rows is.

    Words above numbers are a header. Numbers are one only if they are asked for as names, if they
    are 0, 1, 2 and so on (pandas writes these for columns without names) above several columns, or
    if no cell below could be written as they are: whole numbers above numbers that all have a
    fraction, as in 3.0, or quotes above none.

    Raises
    ------
    DataError
        It cannot be told, as numbers and words are mixed.
    """
    first = [cell.strip() for cell in sample[0].cells]
    asked = asked_names(wanted)
    if asked and all(name in (*first, *sample[0].cells) for name in asked):
        return Verdict(True)
    table = _Sample(sample, grammar)
    if any(map(grammar.is_text, first)):
        return Verdict(_is_header_of_words(table, where))
    if len(sample) == 1:
        return Verdict(False)
    places = range(first[0] == "", len(first))
    numbers = [first[j] for j in places]
    if not numbers or not all(map(grammar.is_number, numbers)) or len(set(numbers)) < len(numbers):
        return Verdict(False)
    if table.proves(places):
        return Verdict(True, kinds=True)
    # A 0 above a single column is as likely a number as the others.
    if len(first) > 1 and counts(numbers) and not table.continues(numbers):
        return Verdict(True, warning=taken_for_header(sample[0], where))
    if not table.is_plausible(places):
        return Verdict(False)
    return Verdict(False, warning=read_as_row(sample[0], where))


def taken_for_header(first: Row, where: str) -> str:
    """Return the warning about a first row of numbers that is taken for a header."""
    return (
        f"{where}: the first row ({_said(first)}) is taken for a header, as pandas writes it for "
        "columns without names; "
        f"{option('header', False)} reads it as a row of data, and {option('header', True)} ends "
        "this warning."
    )


def read_as_row(first: Row, where: str) -> str:
    """Return the warning about a first row of numbers that is data, and could be a header."""
    return (
        f"{where}: the first row ({_said(first)}) is read as a row of data, and could be a header; "
        f"{option('header', True)} reads it as one, and {option('header', False)} ends this "
        "warning."
    )


def _said(first: Row) -> str:
    cells = [cell.strip() for cell in first.cells]
    return ", ".join(cells[:4]) + (", ..." if len(cells) > 4 else "")


def counts(numbers: Sequence[str]) -> bool:
    """Return whether cells are 0, 1, 2 and so on."""
    return list(numbers) == [str(j) for j in range(len(numbers))]


def _is_header_of_words(table: _Sample, where: str) -> bool:
    """Return whether a first row that holds words is a header.

    Raises
    ------
    DataError
        It cannot be told.
    """
    places = range(len(table.first))
    words = [j for j in places if table.grammar.is_text(table.first[j])]
    numbers = [j for j in places if table.grammar.is_number(table.first[j])]
    # Numbers in another spelling than is read, such as 1,5 and 12_3, are no names.
    strange = [j for j in words if is_strange(table.first[j], table.grammar)]
    names = [j for j in words if j not in strange]
    if strange and all(table.is_strange(j) for j in strange):
        return False
    if names and not strange and not numbers:
        return True
    above_numbers = [j for j in names if table.holds_numbers(j)]
    if len(above_numbers) > len(numbers) + len(strange):
        return True
    if above_numbers and not strange and table.is_plausible(numbers):
        return True
    how = f"say {option('header', True)} or {option('header', False)}"
    if not table.grammar.adjustable:
        how = "have it name its columns in words, or remove it"
    first = table.first[(strange or words)[0]]
    word = shown(first) + (f" ({table.grammar.advice(first)})" if strange else "")
    raise DataError(
        f"{where}: cannot tell whether the first row is a header, as it mixes numbers and text, "
        f"{word}; {how}."
    )


def is_strange(cell: str, grammar: Grammar) -> bool:
    """Return whether a cell is a number in a spelling that is not read, without other words."""
    return grammar.is_text(cell) and grammar.other_number(cell) != ""


class _Sample:
    """The first row, and columns of the rows below."""

    def __init__(self, sample: Sequence[Row], grammar: Grammar) -> None:
        self.grammar, self.rows = grammar, sample[1:]
        self.first, self.quoted = [cell.strip() for cell in sample[0].cells], sample[0].quoted

    def below(self, j: int) -> list[str]:
        """Return the cells of a column that are not missing."""
        cells = [row.cells[j].strip() for row in self.rows if j < len(row.cells)]
        return [cell for cell in cells if cell.lower() not in MISSING]

    def is_strange(self, j: int) -> bool:
        """Return whether numbers in another spelling stand in a column too, or nothing."""
        cells = self.below(j)
        return not cells or any(is_strange(cell, self.grammar) for cell in cells)

    def holds_numbers(self, j: int) -> bool:
        """Return whether all cells of a column are numbers, some at least."""
        cells = self.below(j)
        return bool(cells) and all(map(self.grammar.is_number, cells))

    def differs(self, places: Sequence[int]) -> bool:
        """Return whether no cell below one of the first row is written as it is."""
        if not any(self.below(j) for j in places):
            return False
        kinds = {j: kind(self.first[j], j in self.quoted, self.grammar) for j in places}
        return not any(
            kind(row.cells[j].strip(), j in row.quoted, self.grammar) == kinds[j]
            for row in self.rows
            for j in places
            if j < len(row.cells)
        )

    def proves(self, places: Sequence[int]) -> bool:
        """Return whether what wrote the rest cannot have written the first row as data.

        It puts all numbers in quotes and those of the rest not, or puts a fraction to whole
        numbers, as in 3.0 and 2.50, and not to those of the first row.
        """
        if not self.differs(places):
            return False
        if all(j in self.quoted for j in places):
            return not any(j in row.quoted for row in self.rows for j in places)
        return self._all_whole(places) and all(
            any(is_padded(cell, self.grammar) for cell in self.below(j)) for j in places
        )

    def _all_whole(self, places: Sequence[int]) -> bool:
        return all(self.first[j].isdecimal() and j not in self.quoted for j in places)

    def _is_far(self, j: int) -> bool:
        """Return whether a number of the first row is far from all below."""
        cells = self.below(j)
        if not cells or not all(map(self.grammar.is_number, cells)):
            return False
        values = [self.grammar.value(cell) for cell in cells]
        size = max(map(abs, values))
        return abs(self.grammar.value(self.first[j])) > FAR * size

    def continues(self, numbers: Sequence[str]) -> bool:
        """Return whether the second row counts on where the first one, 0, 1, 2, ends."""
        d = len(numbers)
        second = [cell.strip() for cell in self.rows[0].cells] if self.rows else []
        return second == [str(d + j) for j in range(d)]

    def is_plausible(self, places: Sequence[int]) -> bool:
        """Return whether numbers of the first row look like names, and those below do not.

        They are 0, 1, 2 and so on, or years, or evenly spaced, or many that increase; or several
        that are all far from those below; or whole numbers above fractions alone.
        """
        second = self.rows[0].cells if self.rows else []
        values, after = self._values(self.first, places), self._values(second, places)
        if not values or not self.rows:
            return False
        if counts([self.first[j] for j in places]):
            return True
        if after and _are_names(after) and not all(map(self._is_far, places)):
            return False
        far = len(values) > 1 and len(self.rows) > 1 and all(map(self._is_far, places))
        return _are_names(values) or far or (len(self.rows) > 2 and self.differs(places))

    def _values(self, cells: Sequence[str], places: Sequence[int]) -> list[float]:
        """Return numbers, or none where one of them is no number."""
        found = [cells[j] for j in places if j < len(cells)]
        if not all(map(self.grammar.is_number, found)) or len(found) < len(places):
            return []
        return [self.grammar.value(cell) for cell in found]


def kind(cell: str, quoted: bool, grammar: Grammar) -> tuple[bool, str]:
    """Return how a number is written: whether in quotes, and as a whole one or with a fraction."""
    if grammar.decimal in cell or (not WHOLE.fullmatch(cell) and "e" in cell.lower()):
        return quoted, "fraction"
    return quoted, "whole" if grammar.is_number(cell) else "none"


def is_padded(cell: str, grammar: Grammar) -> bool:
    """Return whether a number ends with a zero, or nothing, after the mark of its fraction."""
    mantissa = cell.lower().partition("e")[0]
    return grammar.decimal in mantissa and mantissa[-1] in ("0", grammar.decimal)


def _are_names(values: Sequence[float]) -> bool:
    """Return whether numbers look like names: years, or evenly spaced, or many that increase."""
    steps = [b - a for a, b in pairwise(values)]
    if all(value.is_integer() and YEARS[0] <= value <= YEARS[1] for value in values):
        return len(values) > 0
    if not steps or min(steps) <= 0:
        return False
    even = max(steps) - min(steps) <= 1e-6 * max(abs(value) for value in values)
    return (even and len(values) > 2) or len(values) >= INCREASING
