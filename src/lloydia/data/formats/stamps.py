"""Stamps of files, by which a later reading sees that one was written to."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

__all__ = ["Stamp", "stamp_of"]

# Of each file its size, the time of its last change and its inode; None if there is no such file.
Stamp = tuple[tuple[int, int, int] | None, ...]


def stamp_of(files: Iterable[Path]) -> Stamp:
    """Return a value that differs after a file is written to, replaced or removed."""
    return tuple(map(_stamp, files))


def _stamp(file: Path) -> tuple[int, int, int] | None:
    try:
        found = file.stat()
    except (OSError, ValueError):  # there is no such file, or there can be none
        return None
    return found.st_size, found.st_mtime_ns, found.st_ino
