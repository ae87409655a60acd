"""Columns without numbers: text, or empty columns, as a separator at the end of lines makes."""

from __future__ import annotations

from collections.abc import Sequence

from lloydia.data.columns import Columns, DataError
from lloydia.data.numbers import Grammar, shown
from lloydia.data.proposals import proposed, refuse_text
from lloydia.data.text.records import Row

LISTED = 10  # columns that an error names


def refuse_columns(
    sample: Sequence[Row],
    columns: Columns,
    names: Sequence[str] | None,
    width: int,
    grammar: Grammar,
    where: str,
) -> None:
    """Refuse columns in which the sample has no number, only text or empty cells.

    `names` are the names of all columns of the table, or None if it has no header.

    Raises
    ------
    DataError
        If there is such a column; the message proposes the columns of numbers.
    """
    if not sample:
        return
    cells = [[row.cells[j].strip() for row in sample if j < len(row.cells)] for j in range(width)]
    empty = {place for place in range(width) if not any(cells[place])}
    text = {place for place in range(width) if _holds_text(cells[place], grammar)}
    numeric = [place for place in range(width) if all(map(grammar.is_number, cells[place]))]
    chosen = [j for j, place in enumerate(columns.places) if place in empty]
    if chosen and numeric:
        listed = ", ".join(columns.label(j) for j in chosen[:LISTED])
        verb, them = ("is", "it") if len(chosen) == 1 else ("are", "them")
        how = f"leave {them} out with {proposed(numeric, names, cells.__getitem__)}"
        if not grammar.adjustable:
            how = f"remove {them}"
        raise DataError(f"{where}: {listed} {verb} empty; {how}.")
    kinds = ["text" if place in text else "" for place in columns.places]
    if any(kinds):
        _refuse_first_text(sample, columns, kinds.index("text"), grammar, where)
        proposal = proposed(numeric, names, cells.__getitem__)
        example = _example(sample, columns, kinds, grammar)
        refuse_text(
            columns, kinds, where, proposal, example + _advice(sample, columns, kinds, grammar)
        )


def _holds_text(cells: Sequence[str], grammar: Grammar) -> bool:
    return any(map(grammar.is_text, cells)) and not any(map(grammar.is_number, cells))


def _first_text(sample: Sequence[Row], place: int, grammar: Grammar) -> tuple[str, str]:
    """Return the first cell of text in a column, and its place for errors."""
    row, cell = next(
        (i, row.cells[place].strip())
        for i, row in enumerate(sample)
        if place < len(row.cells) and grammar.is_text(row.cells[place])
    )
    return cell, f"row {row + 1}, line {sample[row].line}"


def _refuse_first_text(
    sample: Sequence[Row], columns: Columns, j: int, grammar: Grammar, where: str
) -> None:
    """Refuse a column whose text can become a number, or any text in a file without options."""
    cell, at = _first_text(sample, columns.places[j], grammar)
    what = f"{where}: {columns.label(j)} holds"
    if advice := grammar.advice(cell):
        raise DataError(f"{what} {shown(cell)} in {at}, not a number; {advice}.")
    if not grammar.adjustable:
        raise DataError(f"{what} text, {shown(cell)} in {at}; remove it.")


def _example(
    sample: Sequence[Row], columns: Columns, kinds: Sequence[str], grammar: Grammar
) -> str:
    cell, at = _first_text(sample, columns.places[kinds.index("text")], grammar)
    return f" (the first text is {shown(cell)} in {at})"


def _advice(sample: Sequence[Row], columns: Columns, kinds: Sequence[str], grammar: Grammar) -> str:
    """Return advice for the first column of text whose cells are numbers in another spelling."""
    for j in (j for j, kind in enumerate(kinds) if kind):
        place = columns.places[j]
        cells = [row.cells[place] for row in sample if place < len(row.cells)]
        cells = [cell for cell in cells if grammar.is_text(cell)]
        if all(map(grammar.other_number, cells)):
            advice = grammar.other_number(cells[0])
            return f"; {columns.label(j)} holds numbers such as {shown(cells[0].strip())}: {advice}"
    return ""
