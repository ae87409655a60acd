"""The documents' figures beside ours: a line for everything that one describes, prints or finds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from lloydia.bench.sheets import Sheet
from lloydia.ladder.experiments.documents import Entry, document
from lloydia.ladder.experiments.documents.wording import SHOWN
from lloydia.ladder.experiments.figures import printed, seconds
from lloydia.ladder.experiments.measurement import Measurement, pick

__all__ = ["sheet"]

Found = Sequence[Measurement]
TEXT = ("same program?", "file", "command")


def sheet(letter: str, machines: Mapping[str, Found], root: str | None = "..") -> Sheet:
    """Return a table with a line for each entry of a document, and a column for each machine.

    The notes below it say in what our program differs, where it does.  What a scaled run measured
    is left out.

    Parameters
    ----------
    letter : str
    machines : mapping of str to sequence of Measurement
        What was measured, by the machines' names.
    root : str or None
        The repository's root, as links of the page have it; None leaves links out.
    """
    of = document(letter)
    notes = list(dict.fromkeys(entry.differs for entry in of.entries if entry.differs))
    lines = [
        [
            _what(entry),
            _theirs(entry),
            *(
                _ours(entry, pick(found, experiment=letter, scale=1.0))
                for found in machines.values()
            ),
            f"note {notes.index(entry.differs) + 1}" if entry.differs else "yes" * entry.same,
            _links(entry.files, root),
            f"`{entry.command}`" if entry.command else "",
        ]
        for entry in of.entries
    ]
    heads = ["", "theirs", *(f"ours, {name}" for name in machines), *TEXT]
    title = f"Everything in document {letter}, and ours"
    numbered = [f"Note {number}: {note}" for number, note in enumerate(notes, 1)]
    return Sheet(title, heads, lines, numbered, text=TEXT)


def _what(entry: Entry) -> str:
    return f"{entry.what} ({entry.place})" if entry.place else entry.what


def _links(files: Sequence[str], root: str | None) -> str:
    if root is None:
        return " ".join(files)
    return " ".join(f"[{Path(file).stem}]({root}/{file})" for file in files)


def _theirs(entry: Entry) -> str:
    """Return the document's figure with its unit."""
    value = entry.theirs
    if isinstance(value, str):
        return value
    if entry.unit in ("s", "x"):
        return seconds(value) if entry.unit == "s" else printed(value)
    return f"{value:,g}{'' if entry.unit == '%' else ' '}{entry.unit}"


def _ours(entry: Entry, found: Found) -> str:
    """Return our figure of an entry on one machine; empty if there is none."""
    if not entry.pick:
        return "tested" if any(file.startswith("tests/") for file in entry.files) else ""
    some = pick(found, **_wanted(entry.pick))
    if not some:
        return ""
    base = pick(found, **_wanted({**entry.pick, **entry.over}))
    return SHOWN[entry.show](entry, some, base)


def _wanted(attributes: Mapping[str, object]) -> dict[str, object]:
    return {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in attributes.items()
    }
