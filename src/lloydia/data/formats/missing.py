"""The error for a missing file, with a proposal of a similar name."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from itertools import islice
from pathlib import Path

from lloydia.data.columns import DataError
from lloydia.spelling import meant, near

__all__ = ["no_such_file", "similar_file"]

# In a Path, an address has only one of its two slashes.
ADDRESS = re.compile(r"[a-z][a-z0-9+.-]+:/", re.IGNORECASE)
# The largest number of names in a folder that are compared.
MOST = 10_000


def no_such_file(path: Path) -> DataError:
    """Return the error for a missing file; it proposes a similar name."""
    what = f"no such file: {path}"
    if ADDRESS.match(str(path)) and os.sep == "/":
        return DataError(f"{what}; addresses are not read: download the file, and give that.")
    if any(character in path.name for character in "*?"):
        return DataError(f"{what}; no name matches this pattern.")
    folder = path.parent
    if not folder.exists():
        return DataError(f"{what}, as there is no folder {folder}.")
    found = similar_file(path)
    return DataError(what + ("." if found is None else meant(str(found), [str(found)])))


def similar_file(path: Path) -> Path | None:
    """Return a file of the same folder with a similar name, or with another extension, or None."""
    names: list[str] = []
    with suppress(OSError), os.scandir(path.parent) as entries:
        names = sorted(entry.name for entry in islice(entries, MOST))
    endings = {Path(name).suffix for name in names}
    ending = near(path.suffix, endings - {path.suffix, ""})
    for suffix in (path.suffix, ending):
        alike = {Path(name).stem: name for name in names if Path(name).suffix == suffix}
        if found := alike.get(near(path.stem, alike) or ""):
            return path.with_name(found)
    same = {Path(name).stem: name for name in names if Path(name).suffix}
    stem = path.stem if path.suffix else near(path.stem, same)
    return path.with_name(same[stem]) if stem in same else None
