"""The columns that an error proposes: probable features, without ids and row numbers."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

from lloydia.data.columns import Columns, DataError, spans
from lloydia.spelling import option

__all__ = ["proposed", "refuse_text", "warn_of_unnamed"]

# Names of columns that number or identify rows: the whole name, or its first or last word.
IDENTIFIERS = frozenset(
    {"", "#", "idx", "index", "key", "level 0", "no", "nr", "row", "row name", "row names"}
    | {"row number", "rowname", "rownames", "rownum", "unnamed 0"}
)
IDENTIFIES = frozenset({"guid", "id", "ids", "uuid"})
# customerId and HTTPCode are two words each.
CAMELS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
BETWEEN_WORDS = re.compile(r"[\s_.:-]+")
# The least number of values, each one more than the last, that are taken for row numbers.
FEWEST = 3


def proposed(
    places: Sequence[int],
    names: Sequence[str] | None,
    cells_of: Callable[[int], Iterable[str]] = lambda place: (),
) -> str:
    """Return how a user chooses columns, without those that number or identify rows.

    Parameters
    ----------
    places : sequence of int
        Positions of columns of numbers.
    names : sequence of str or None
        The names of all columns of the table, or None if it has no header.
    cells_of : callable
        It returns the first cells of the column at a position, as texts, if they are available.

    Returns
    -------
    str
        The option; it names all columns if each of them numbers or identifies rows.  "" if there
        are no columns.
    """
    features = [
        place
        for place in places
        if not (names and _identifies(names[place])) and not _counts(list(cells_of(place)))
    ]
    return option("columns", spans(features or places)) if places else ""


def _identifies(name: str) -> bool:
    words = [word for word in BETWEEN_WORDS.split(CAMELS.sub(" ", name).casefold()) if word]
    return " ".join(words) in IDENTIFIERS or not IDENTIFIES.isdisjoint((words[0], words[-1]))


def _counts(cells: list[str]) -> bool:
    """Return whether whole numbers rise by one from row to row."""
    try:
        numbers = [int(cell) for cell in cells]
    except ValueError:
        return False
    return len(numbers) >= FEWEST and all(b - a == 1 for a, b in pairwise(numbers))


def refuse_text(
    columns: Columns,
    kinds: Sequence[str],
    where: str,
    proposal: str,
    example: str = "",
) -> None:
    """Refuse columns that do not hold numbers.

    Parameters
    ----------
    columns : Columns
        The columns that would be read.
    kinds : sequence of str
        For each column, what it holds instead of numbers, such as "text"; "" for numbers.
    where : str
        The name of the table in the error.
    proposal : str
        The option that chooses numeric columns, from :func:`proposed`; "" if there are none.
    example : str
        What the error adds about the first such cell, if it is known.

    Raises
    ------
    DataError
        If a column is not numeric; the message lists all such columns and proposes others.
    """
    bad = [columns.label(j) for j, kind in enumerate(kinds) if kind]
    if not bad:
        return
    listed = ", ".join(bad[:10]) + (f" and {len(bad) - 10} more" if len(bad) > 10 else "")
    what = "holds " if len(bad) == 1 else "hold "
    what += " and ".join(dict.fromkeys(kind for kind in kinds if kind))
    if not proposal:
        raise DataError(
            f"{where}: {listed} {what}, and no column holds numbers alone{example}: fill in "
            "missing cells, and turn text into numbers."
        )
    raise DataError(
        f"{where}: {listed} {what}; choose numeric columns, such as {proposal}{example}."
    )


def warn_of_unnamed(columns: Columns, where: str) -> None:
    """Warn of columns without a name in the header, because they are mostly row numbers."""
    names = columns.names or ()
    named = [place for place, name in zip(columns.places, names) if name]
    unnamed = [place for place, name in zip(columns.places, names) if not name]
    if not unnamed:
        return
    one = len(unnamed) == 1
    what = "column {} has no name in the header and is used as a feature; leave it out"
    many = "columns {} have no name in the header and are used as features; leave them out"
    all_names = [""] * (max(columns.places) + 1)
    for place, name in zip(columns.places, names):
        all_names[place] = name
    how = f" with {proposed(named, all_names)}" if named else ""
    text = (what if one else many).format(spans(unnamed))
    warnings.warn(f"{where}: {text}{how}.", stacklevel=3)
