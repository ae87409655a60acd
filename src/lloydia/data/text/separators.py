"""What separates the cells of a text."""

from __future__ import annotations

from lloydia.data.columns import DataError
from lloydia.data.numbers import Grammar, shown
from lloydia.data.text.records import WHITE, QuoteError, Row, Text
from lloydia.spelling import option


def separator_of(text: Text, suffix: str, grammar: Grammar, where: str) -> str:
    """Return what separates the cells of a text.

    What a line ``sep=;`` names, else a tab in a .tsv file, else whichever of tab, semicolon, comma
    and white space divides the first lines evenly. A character that stands in numbers separates
    like any other where it stands between cells in quotes. Elsewhere it separates only if no other
    divides the lines evenly, or white space alone and with fewer columns of numbers, as blanks
    stand in names, too.

    Parameters
    ----------
    text : Text
    suffix : str
        Extension of the file, with the dot, or "" where there is none.
    grammar : Grammar
    where : str
        What errors call the table.

    Raises
    ------
    QuoteError
        No separator agrees with the quotes of the first lines.
    DataError
        A character divides the header evenly, and each line below is a number that holds it.
    """
    if text.separator is not None:
        return text.separator
    if suffix == ".tsv":
        return "\t"
    cut = _samples(text)
    in_numbers = [mark for mark in cut if mark in (grammar.decimal, grammar.thousands)]
    even = [mark for mark in cut if is_even(cut[mark], mark, grammar)]
    clashing = [mark for mark in in_numbers if mark not in even or not _is_by_quotes(cut[mark])]
    unclear = [mark for mark in even if mark in clashing]
    even = [mark for mark in even if mark not in clashing]
    if even[:1] == ["\t"] and WHITE in even:
        # Tabs may separate columns or only align them: numbers in the last line tell.
        def numbers(mark: str) -> int:
            return sum(map(grammar.is_number, cut[mark][-1].cells))

        return max("\t", WHITE, key=numbers)
    if even == [WHITE]:
        return max(even + unclear, key=lambda mark: _columns_of_numbers(cut[mark], grammar))
    if even:
        return even[0]
    lines = [line.strip() for line in text.head[1:] if line.strip()]
    for mark in unclear:
        if not all(map(grammar.is_number, lines)):
            return mark
        if lines and mark != WHITE and all(map(grammar.is_text, cut[mark][0].cells)):
            raise _unclear(mark, cut[mark][0], lines[0], grammar, where)
    # No separator divides the lines evenly: take the one that finds most cells in the first line,
    # so that the error about the ragged rows counts them as their author would.
    likely = [mark for mark in cut if mark not in clashing and (mark != WHITE or suffix != ".csv")]
    widths = {mark: max(len(row.cells) for row in cut[mark][:1]) for mark in likely if cut[mark]}
    most = max(widths, key=lambda mark: widths[mark], default=",")
    if widths.get(most, 0) > 1:
        return most
    return "," if "," not in clashing else ";"


def _is_by_quotes(sample: list[Row]) -> bool:
    """Return whether cells in quotes stand beside others."""
    return any(row.quoted and len(row.cells) > 1 for row in sample)


def _columns_of_numbers(sample: list[Row], grammar: Grammar) -> int:
    """Return how many columns hold numbers and no text below the first row, if there are more."""
    columns = zip(*(row.cells for row in sample[1:] or sample))
    return sum(
        any(map(grammar.is_number, column)) and not any(map(grammar.is_text, column))
        for column in columns
    )


def _unclear(mark: str, first: Row, line: str, grammar: Grammar, where: str) -> DataError:
    """Return the error about a header of several cells above lines that are one number each."""
    name = "decimal" if mark == grammar.decimal else "thousands"
    cells = " and ".join(shown(cell.strip()) for cell in first.cells[:2])
    given = option(name, mark)
    return DataError(
        f"{where}: {shown(mark)} divides the header into {cells}, and not {shown(line)} below it, "
        f"which is one number as {given} is given and no number is in quotes; leave out {given} if "
        f"{shown(mark)} separates columns, else put the header in double quotes."
    )


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
