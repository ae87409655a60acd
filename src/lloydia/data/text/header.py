"""The decision whether the first row of a text is a header."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from lloydia.data.columns import DataError, asked_names
from lloydia.data.numbers import MISSING, WHOLE, Grammar, shown
from lloydia.data.text.records import Row
from lloydia.spelling import option

YEARS = (1500, 2200)
# A number of the first row is far from those below if it is more than FAR times as large.
FAR = 3
# The least number of increasing values that look like names; by chance, one row in 120 has them.
INCREASING = 5


@dataclass(frozen=True)
class Verdict:
    """The decision about the first row.

    Parameters
    ----------
    header : bool
        Whether the first row is a header.
    kinds : bool
        Whether the decision depends on the notation of the numbers: in the sample, no number below
        is written like that of the first row, and all other rows must agree.
    warning : str
        A warning about the decision, or "".
    """

    header: bool
    kinds: bool = False
    warning: str = ""


def judge(
    sample: Sequence[Row], wanted: str | Sequence[str] | None, grammar: Grammar, where: str
) -> Verdict:
    """Return the decision whether the first of some rows is a header.

    Words above numbers are a header.  Numbers are a header in three cases: if `wanted` contains
    them as names; if they are 0, 1, 2 and so on above several columns, as pandas writes them for
    columns without names; or if their notation differs from all cells below, such as whole numbers
    above numbers with a fraction (3.0), or numbers in quotes above numbers without.

    Raises
    ------
    DataError
        If the first row mixes numbers and words, so that the decision is not possible.
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
    """Return the warning about a first row of numbers that is read as data and may be a header."""
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
        If the decision is not possible.
    """
    places = range(len(table.first))
    words = [j for j in places if table.grammar.is_text(table.first[j])]
    numbers = [j for j in places if table.grammar.is_number(table.first[j])]
    # Numbers in an unsupported spelling, such as 1,5 and 12_3, are not names.
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
    """Return whether a cell is a number in an unsupported spelling."""
    return grammar.is_text(cell) and grammar.other_number(cell) != ""


class _Sample:
    """The first row of a sample, and the columns of the rows below it."""

    def __init__(self, sample: Sequence[Row], grammar: Grammar) -> None:
        self.grammar, self.rows = grammar, sample[1:]
        self.first, self.quoted = [cell.strip() for cell in sample[0].cells], sample[0].quoted

    def below(self, j: int) -> list[str]:
        """Return the cells of a column that are not missing."""
        cells = [row.cells[j].strip() for row in self.rows if j < len(row.cells)]
        return [cell for cell in cells if cell.lower() not in MISSING]

    def is_strange(self, j: int) -> bool:
        """Return whether a column is empty or holds a number in an unsupported spelling."""
        cells = self.below(j)
        return not cells or any(is_strange(cell, self.grammar) for cell in cells)

    def holds_numbers(self, j: int) -> bool:
        """Return whether a column is not empty and all its cells are numbers."""
        cells = self.below(j)
        return bool(cells) and all(map(self.grammar.is_number, cells))

    def differs(self, places: Sequence[int]) -> bool:
        """Return whether no cell below has the notation of the first row's cell above it."""
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
        """Return whether the notation proves that the first row is not data.

        Either all its numbers are in quotes and no number below is; or its numbers have no
        fraction, and each column below has numbers with a padded fraction, such as 3.0 and 2.50.
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
        """Return whether a number of the first row is far from all numbers below it."""
        cells = self.below(j)
        if not cells or not all(map(self.grammar.is_number, cells)):
            return False
        values = [self.grammar.value(cell) for cell in cells]
        size = max(map(abs, values))
        return abs(self.grammar.value(self.first[j])) > FAR * size

    def continues(self, numbers: Sequence[str]) -> bool:
        """Return whether the second row continues the counting of the first one, 0, 1, 2, ..."""
        d = len(numbers)
        second = [cell.strip() for cell in self.rows[0].cells] if self.rows else []
        return second == [str(d + j) for j in range(d)]

    def is_plausible(self, places: Sequence[int]) -> bool:
        """Return whether numbers of the first row look like names, and those below do not.

        Numbers look like names if they are 0, 1, 2 and so on, years, evenly spaced, or many that
        increase; if there are several and all are far from those below; or if they are whole
        numbers above numbers that all have a fraction.
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
        """Return the numbers in cells, or an empty list if a cell is not a number."""
        found = [cells[j] for j in places if j < len(cells)]
        if not all(map(self.grammar.is_number, found)) or len(found) < len(places):
            return []
        return [self.grammar.value(cell) for cell in found]


def kind(cell: str, quoted: bool, grammar: Grammar) -> tuple[bool, str]:
    """Return the notation of a number: whether it is in quotes, and whether it has a fraction."""
    if grammar.decimal in cell or (not WHOLE.fullmatch(cell) and "e" in cell.lower()):
        return quoted, "fraction"
    return quoted, "whole" if grammar.is_number(cell) else "none"


def is_padded(cell: str, grammar: Grammar) -> bool:
    """Return whether the fraction of a number is empty or ends with a zero."""
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
