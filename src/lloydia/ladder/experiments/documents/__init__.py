"""What the five documents describe, print and find: one file a document, one entry a line.

A file ``a.toml`` has ``title``, ``command`` (what measures ours) and ``[[entry]]`` tables with the
attributes of :class:`Entry`.  An entry with ``across`` and ``rows`` stands for several: each row
gives the values of the measurements' attributes (or of the entry's phase) named in ``across``, then
the document's figure, and ``{n}`` and the like in ``what`` are these values.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["LETTERS", "Document", "Entry", "document", "seconds_in"]

LETTERS = "TABCD"
Pick = dict[str, Any]


@dataclass(frozen=True)
class Entry:
    """One thing of a document: a variant, an option, an experiment, a figure or a finding.

    Attributes
    ----------
    what : str
    files : list of str
        What does it here, from the repository's root.
    place : str
        Where the document has it: a section or a table.
    command : str
        What measures or does it here; the document's own `command` by default.
    theirs : float or str
        The document's figure, or its finding in words; "" if there is none.
    unit : str
        Of a number: "s", "x" (times as fast), "%", or a noun for a count.
    pick : dict
        The measurements that correspond to it, as
        :func:`lloydia.ladder.experiments.measurement.pick` takes them; empty if none does.
    show : str
        How these become our figure: a function of
        :data:`lloydia.ladder.experiments.documents.wording.SHOWN`.
    over : dict
        For a gain: the measurements that it is over, in place of those of `pick`'s attributes.
    phase : str
        For a share, or the time of a phase: the phase.
    figure : str
        For a number that a measurement has among its figures: its name.
    iterations : int
        For a time: the iterations of the document's run, where ours may be shorter.
    same : bool
        Whether ours is the same program as theirs.
    differs : str
        If it is not: in what, and why.
    """

    what: str
    files: list[str]
    place: str = ""
    command: str = ""
    theirs: float | str = ""
    unit: str = "s"
    pick: Pick = field(default_factory=dict)
    show: str = "fastest"
    over: Pick = field(default_factory=dict)
    phase: str = ""
    figure: str = ""
    iterations: int = 0
    same: bool = False
    differs: str = ""


@dataclass(frozen=True)
class Document:
    """A document: its letter, its title and its entries."""

    letter: str
    title: str
    entries: list[Entry]


@cache
def document(letter: str) -> Document:
    """Return a document.

    Raises
    ------
    ValueError
        If an entry has an unknown key, is both the same and different, or has rows of another
        length.
    """
    path = Path(__file__).with_name(f"{letter.lower()}.toml")
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    entries = [each for row in table["entry"] for each in _entries(row, table["command"], path)]
    return Document(letter, table["title"], entries)


def _entries(row: dict[str, Any], command: str, path: Path) -> Iterator[Entry]:
    """Yield the entry of a table, or one for each of its rows."""
    across, rows = row.pop("across", []), row.pop("rows", [[row.get("theirs", "")]])
    row = {"command": command, **row}
    where = f"{path.name}: the entry {row.get('what')!r}"
    unknown = row.keys() - {each.name for each in fields(Entry)}
    if unknown:
        raise ValueError(f"{where} has an unknown key {min(unknown)!r}.")
    if row.get("same") and row.get("differs"):
        raise ValueError(f"{where} is both the same and different.")
    for *values, theirs in rows:
        if len(values) != len(across):
            raise ValueError(f"{where} has a row of {len(values)} values for {len(across)} names.")
        at = dict(zip(across, values))
        named = {name: at[name] for name in at if name == "phase"}
        at_ours = {name: value for name, value in at.items() if name not in named}
        own = {name: {**row[name], **at_ours} for name in ("pick", "over") if row.get(name)}
        what = row["what"].format(**at)
        yield Entry(**{**row, **own, **named, "what": what, "theirs": theirs})


def seconds_in(letter: str, attributes: Mapping[str, object]) -> float | None:
    """Return a document's own seconds for a measurement with these attributes, if it has them."""
    if letter not in tuple(LETTERS):
        return None
    for each in document(letter).entries:
        timed = isinstance(each.theirs, float) and each.unit == "s"
        if (
            timed
            and each.show in ("time", "whole")
            and each.pick
            and each.pick.items() <= attributes.items()
        ):
            return float(each.theirs)
    return None
