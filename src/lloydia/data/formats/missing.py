"""The error for a missing file, with a proposal of a similar name."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from itertools import islice
from pathlib import Path

from lloydia.data.columns import DataError
from lloydia.spelling import meant, near

__all__ = ["no_such_file"]

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
    found = _near(path, folder)
    return DataError(what + ("." if found is None else meant(str(found), [str(found)])))


def _near(path: Path, folder: Path) -> Path | None:
    """Return a file of the folder with a similar name, or with the same name and an extension."""
    names: list[str] = []
    with suppress(OSError), os.scandir(folder) as entries:
        names = [entry.name for entry in islice(entries, MOST)]
    alike = {Path(name).stem: name for name in names if Path(name).suffix == path.suffix}
    same = {Path(name).stem: name for name in names if Path(name).suffix}
    found = alike.get(near(path.stem, alike) or "") or same.get(path.stem)
    return None if found is None else folder / found
