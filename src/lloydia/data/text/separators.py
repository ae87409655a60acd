"""What separates the cells of a text."""

from __future__ import annotations

from lloydia.data.numbers import Grammar
from lloydia.data.text.records import WHITE, QuoteError, Row, Text


def separator_of(text: Text, suffix: str, grammar: Grammar) -> str:
    """Return what separates the cells of a text.

    What a line ``sep=;`` names, else a tab in a .tsv file, else whichever of tab, semicolon, comma
    and white space divides the first lines evenly. A character that stands in numbers separates
    only where the numbers that hold it are in quotes, or where whole lines are no numbers.

    Parameters
    ----------
    text : Text
    suffix : str
        Extension of the file, with the dot, or "" where there is none.
    grammar : Grammar

    Raises
    ------
    QuoteError
        No separator agrees with the quotes of the first lines.
    """
    if text.separator is not None:
        return text.separator
    if suffix == ".tsv":
        return "\t"
    cut = _samples(text)
    clashing = [mark for mark in cut if mark in (grammar.decimal, grammar.thousands)]
    others = [mark for mark in cut if mark not in clashing]
    even = [mark for mark in others if is_even(cut[mark], mark, grammar)]
    if even[:1] == ["\t"] and WHITE in even:
        # Tabs may separate columns or only align them: numbers in the last line tell.
        def numbers(mark: str) -> int:
            return sum(map(grammar.is_number, cut[mark][-1].cells))

        return max("\t", WHITE, key=numbers)
    if even:
        return even[0]
    lines = [line.strip() for line in text.head[1:]]
    for mark in filter(lambda mark: is_even(cut[mark], mark, grammar), clashing):
        in_quotes = any(mark in cell for row in cut[mark] for cell in row.cells)
        if in_quotes or not all(map(grammar.is_number, lines)):
            return mark
    # No separator divides the lines evenly: take the one that finds most cells in the first line,
    # so that the error about the ragged rows counts them as their author would.
    likely = [mark for mark in others if mark != WHITE or suffix != ".csv"]
    widths = {mark: max(len(row.cells) for row in cut[mark][:1]) for mark in likely if cut[mark]}
    most = max(widths, key=lambda mark: widths[mark], default=",")
    if widths.get(most, 0) > 1:
        return most
    return "," if "," not in clashing else ";"


def _samples(text: Text) -> dict[str, list[Row]]:
    """Return the rows of the first lines by each separator that agrees with their quotes."""
    found, wrong = {}, None
    for mark in ("\t", ";", ",", WHITE):
        try:
            found[mark] = text.sample(mark)
        except QuoteError as error:
            wrong = error if wrong is None or mark == "," else wrong
    if not found and wrong is not None:
        raise wrong
    return found


def is_even(sample: list[Row], separator: str, grammar: Grammar) -> bool:
    """Return whether all rows have several cells, as many each; the first may be a short header."""
    widths = {len(row.cells) for row in sample}
    return (len(widths) == 1 and widths != {1}) or is_short(sample, separator, grammar)


def is_short(
    sample: list[Row], separator: str, grammar: Grammar, header: bool | None = None
) -> bool:
    """Return whether the first row is a header that has one cell less than each other row.

    It names neither what R's ``write.table`` writes first, names of rows, nor the empty last cell
    of rows that end with a separator. Where `header` says that it is one, it may hold numbers.
    """
    width = len(sample[0].cells) + 1 if sample else 0
    rows = sample[1:]
    if not rows or any(len(row.cells) != width for row in rows):
        return False
    if header is False or (not header and any(map(grammar.is_number, sample[0].cells))):
        return False
    if all(not row.cells[-1].strip() for row in rows):
        return True
    first = [row.cells[0].strip() for row in rows]
    if len(set(first)) < len(first) or "" in first:
        return False
    if all(row.quoted and 0 in row.quoted for row in rows) or any(map(grammar.is_text, first)):
        return True
    # A comma or a blank can also stand within a number, and there are two cells where one is meant.
    if separator == ",":
        return False
    if separator == WHITE:
        counted = first == [str(i + 1) for i in range(len(first))]
        return counted and width > 2 and not all(len(row.cells[1]) == 3 for row in rows)
    return True
