"""Columns of a table: the choice of the columns to read, and their names in errors."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lloydia.data.numbers import shown
from lloydia.spelling import near, option

# A part of a choice of columns: a name in quotes, in which two quotes are one, or anything else.
PART = re.compile(r'\s*(?:"((?:[^"]|"")*)"|([^,]*?))\s*(?:,|\Z)')
RANGE = re.compile(r"([0-9]+)(?:\s*-\s*([0-9]+))?")
# Ranges as other programs write them.
OTHER_RANGE = re.compile(r"([0-9]+)\s*(?::|\.\.+|\u2013|\u2014|to)\s*([0-9]+)")
NAMED = 20  # names that an error lists


class DataError(ValueError):
    """The error for input that cannot be used; its message says why and what to do."""


@dataclass(frozen=True)
class Columns:
    """The columns that are read from a table.

    Parameters
    ----------
    places : tuple of int
        Positions in the file, counted from 0, in the order in which they are read.
    names : tuple of str or None
        Their names, if the table has a header.
    """

    places: tuple[int, ...]
    names: tuple[str, ...] | None

    def label(self, j: int) -> str:
        """Return the number and the name of the j-th column that is read, for errors."""
        return name_column(self.places[j], self.names[j] if self.names else "")


def name_column(place: int, name: str) -> str:
    """Return ``column 3 ('age')``, or ``column 3`` if the name is empty."""
    return f"column {place + 1} ({shown(name)})" if name else f"column {place + 1}"


def choose(
    header: Sequence[str] | None,
    width: int,
    wanted: str | Sequence[str] | None,
    where: str,
    left_out: Sequence[int] = (),
) -> Columns:
    """Resolve a choice of columns against a table.

    Parameters
    ----------
    header : sequence of str or None
        Names of all columns, or None if the table has no header.
    width : int
        Number of columns of the table.
    wanted : str, sequence of str or None
        A text such as ``"a,b,3-5"`` of names, numbers counted from 1, and ranges of numbers.  A
        name that looks like a number is read as the name; a name with a comma needs double quotes.
        Or a sequence of exact names, which means all columns if the table has no header.  Or None
        for all columns.
    where : str
        The name of the table in errors.
    left_out : sequence of int
        Positions of columns that None does not include; they are read only if they are named.

    Returns
    -------
    Columns

    Raises
    ------
    DataError
        If a name is unknown or occurs twice in the header, if a number is outside of the table, or
        if a column is chosen twice.
    """
    if header is not None or isinstance(wanted, str):
        refuse_unknown(parts_of(wanted), header or (), where)
    every = [place for place in range(width) if place not in left_out]
    names = [header[place] for place in every] if header else []
    same = not isinstance(wanted, str) and list(wanted or ()) == names
    if wanted is None or same or (header is None and not isinstance(wanted, str)):
        places = every
    elif isinstance(wanted, str):
        parts = parts_of(wanted)
        places = [place for part in parts for place in _places(*part, header, width, where)]
    elif len(set(names)) == len(names) and left_out == () and set(wanted) <= set(names):
        # Thousands of names are looked up at once.
        place_of = {name: place for place, name in enumerate(names)}
        places = [place_of[name] for name in wanted]
    else:
        places = [_by_name(name, header or (), where) for name in wanted]
    if len(set(places)) < len(places):
        twice = next(place for place, count in Counter(places).items() if count > 1)
        label = name_column(twice, header[twice] if header else "")
        raise DataError(f"{where}: {label} is chosen twice.")
    chosen = tuple(header[place] for place in places) if header else None
    return Columns(tuple(places), chosen)


class Part(NamedTuple):
    """A name, number or range of a choice of columns."""

    text: str
    is_name: bool


def parts_of(wanted: str | Sequence[str] | None) -> list[Part]:
    """Return the parts of a choice of columns; a part in quotes or in a list is a name.

    Raises
    ------
    DataError
        If a quote is not closed, or is not followed by a comma.
    """
    if not isinstance(wanted, str):
        return [Part(name, True) for name in wanted or ()]
    parts: list[Part] = []
    at, more = 0, True
    while more:
        found = PART.match(wanted, at)
        if found is None or (found[1] is None and found[2].startswith('"')):
            raise DataError(
                f"{option('columns', wanted)}: a quote is not closed, or text follows it; write a "
                'name with commas as "a, b", and a quote within it twice.'
            )
        quoted = found[1] is not None
        parts.append(Part(found[1].replace('""', '"') if quoted else found[2], quoted))
        at, more = found.end(), found[0].endswith(",")
    return parts


def asked_names(wanted: str | Sequence[str] | None) -> list[str]:
    """Return the parts of a choice of columns that are names, and neither numbers nor ranges."""
    return [part.text for part in parts_of(wanted) if _is_name(part)]


def _places(
    part: str, is_name: bool, header: Sequence[str] | None, width: int, where: str
) -> list[int]:
    found = RANGE.fullmatch(part)
    if is_name or found is None or (header and part in header):
        return [_by_name(part, header or (), where)]
    asked = option("columns", part)
    # More digits than a width can have are not converted.
    ends = (found[1], found[2] or found[1])
    first, last = (int(end) if len(end) < 20 else width + 1 for end in ends)
    if first > last:
        raise DataError(f"{asked}: the range runs backwards; write {last}-{first}.")
    if not 1 <= first <= last <= width:
        raise DataError(f"{where}: {asked} is outside its columns 1 to {width}.")
    return list(range(first - 1, last))


def _by_name(name: str, header: Sequence[str], where: str) -> int:
    """Return the position of a name that passed refuse_unknown()."""
    if (count := list(header).count(name)) > 1:
        raise DataError(
            f"{where}: {count} columns are named {shown(name)}; choose one by its number."
        )
    return list(header).index(name)


def refuse_unknown(parts: Sequence[Part], header: Sequence[str], where: str) -> None:
    """Refuse names that no column has.

    Raises
    ------
    DataError
        If there are such names; the message lists them, similar names, and the columns.
    """
    known = set(header)
    wrong = [part.text for part in parts if part.text not in known and _is_name(part)]
    if not wrong:
        return
    if not header:
        raise DataError(
            f"{where}: there is no column {shown(wrong[0])}, as it has no header; choose columns "
            "by their numbers, which begin with 1."
        )
    if "" in wrong and len(parts) > 1:
        raise DataError(
            f"{where}: a name is missing between or after the commas of {option('columns')}; write "
            f"{option('columns', ','.join(part.text for part in parts if part.text) or '1')}."
        )
    words = [word for part in parts for word in ([part.text] if part.is_name else _words(part))]
    if len(words) > len(parts) and all(w in known or RANGE.fullmatch(w) for w in words):
        raise DataError(
            f"{where}: there is no column {shown(wrong[0])}; write a comma between columns: "
            f"{option('columns', ','.join(words))}."
        )
    listed = " or ".join(f"{shown(name)}{_meant(name, header)}" for name in wrong[:NAMED])
    columns = ", ".join(map(shown, header[:NAMED])) + (", ..." if len(header) > NAMED else "")
    commas = any("," in name for name in header)
    how = "; write a name with commas in double quotes" if commas else ""
    raise DataError(f"{where}: there is no column {listed}; its columns are {columns}{how}.")


def _is_name(part: Part) -> bool:
    return part.is_name or not RANGE.fullmatch(part.text)


def _words(part: Part) -> list[str]:
    return re.split(r"[\s;]+", part.text)


def _meant(name: str, header: Sequence[str]) -> str:
    if ends := OTHER_RANGE.fullmatch(name):
        return f" (did you mean {ends[1]}-{ends[2]}?)"
    found = near(name, header)
    return "" if found is None else f" (did you mean {shown(found)}?)"


def in_order_of(names: Sequence[str], columns: Columns, where: str) -> list[int]:
    """Return the positions of `names` among the chosen columns, in the order of `names`.

    Raises
    ------
    DataError
        If the names of the chosen columns are not `names` in some order.
    """
    chosen = list(columns.names or ())
    if chosen == list(names):
        return list(range(len(names)))
    place_of = {name: j for j, name in enumerate(chosen)}
    missing = [shown(name) for name in names if name not in place_of]
    if missing:
        raise DataError(
            f"{where}: {option('columns')} leaves out {', '.join(missing)}, which the model needs."
        )
    known = set(names)
    surplus = [name for j, name in enumerate(chosen) if name not in known or place_of[name] != j]
    if surplus or len(set(names)) < len(names):
        what = shown((surplus or chosen)[0])
        raise DataError(
            f"{where}: {option('columns')} chooses {what}, and the model has no column for it."
        )
    return [place_of[name] for name in names]


def id_place(column: str, names: Sequence[str] | None, width: int, where: str) -> int:
    """Return the position, from 0, of the column that holds the ids of rows.

    Parameters
    ----------
    column : str
        The name of the column, possibly in double quotes; or its number, from 1, if no column has
        that name.
    names : sequence of str or None
        Names of all columns, or None if the table has no header.
    width : int
        Number of columns of the table.
    where : str
        The name of the table in errors.

    Raises
    ------
    DataError
        If there is no such column, or there are several.
    """
    header = names or ()
    found = PART.fullmatch(column)
    # Quotes are allowed, as for names with commas in --columns.
    quoted = column not in header and found is not None and found[1] is not None
    name = found[1].replace('""', '"') if found is not None and quoted else column
    if quoted or name in header or not name.isdecimal():
        refuse_unknown([Part(name, True)], header, where)
        return _by_name(name, header, where)
    number = int(column) if len(column) < 20 else width + 1
    if not 1 <= number <= width:
        raise DataError(f"{where}: {option('id', column)} is outside its columns 1 to {width}.")
    return number - 1


def spans(places: Sequence[int]) -> str:
    """Return positions counted from 0 as a choice of columns: (0, 1, 2, 4) is 1-3,5."""
    runs: list[list[int]] = []
    for place in places:
        if runs and place == runs[-1][1] + 1:
            runs[-1][1] = place
        else:
            runs.append([place, place])
    return ",".join(f"{a + 1}" if a == b else f"{a + 1}-{b + 1}" for a, b in runs)
