"""Which files Lloydia wrote, and nobody changed since.

Nothing in a CSV or an .npy file can say who wrote it: every byte is data.  So the mark is not in
the file but in the time of its last change, which each file system keeps.  A file that Lloydia
wrote has a time whose last digits follow from the file's size and its first bytes, the seal.
Whoever writes to the file, or copies it, sets another time, and breaks the seal.

Times are sealed to 100 nanoseconds, as exactly as all usual file systems keep them; where they are
kept less exactly, as on a FAT disk, no file has a seal.  Of a million files that somebody else
wrote, one has the right digits by chance.
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path

from lloydia.data.columns import DataError
from lloydia.data.formats.numpy_files import DAMAGE, Archive

__all__ = ["is_model", "is_sealed", "seal"]

# Nanoseconds: the digits of a time that are the seal are below SPAN, and multiples of UNIT.
SPAN, UNIT = 100_000_000, 100

# Bytes at the beginning of a file that its seal depends on.
START = 4096


def seal(path: Path) -> None:
    """Seal a file that was written a moment ago: its time becomes up to a tenth of a second less.

    Where that is not possible the file stays without a seal.
    """
    with suppress(OSError):
        found = path.stat()
        time = found.st_mtime_ns // SPAN * SPAN + _digits(path, found.st_size)
        if time > found.st_mtime_ns:
            time -= SPAN
        os.utime(path, ns=(found.st_atime_ns, time))


def is_sealed(path: Path) -> bool:
    """Return whether Lloydia wrote a file, and nobody wrote to it since.

    Raises
    ------
    OSError
        It cannot be read.
    """
    found = path.stat()
    return found.st_mtime_ns % SPAN == _digits(path, found.st_size)


def _digits(path: Path, size: int) -> int:
    with path.open("rb") as stream:
        start = stream.read(START)
    digest = hashlib.sha256(b"lloydia %d " % size + start).digest()
    steps = int.from_bytes(digest[:8], "big") % (SPAN // UNIT // 10 * 9)
    # Times that are kept in milliseconds or microseconds have a zero as their last digit.
    return (steps // 9 * 10 + steps % 9 + 1) * UNIT


def is_model(path: Path) -> bool:
    """Return whether a file says that it is a model or a checkpoint of Lloydia, of any version."""
    try:
        with path.open("rb") as stream:
            if stream.read(2) != b"PK":
                return False
            archive = Archive(stream, str(path))
            archive.check_size()
            if "header" in archive.files:
                return str(json.loads(str(archive["header"]))["format"]).startswith("lloydia ")
            return str(archive["format"]).startswith("lloydia ")
    except (*DAMAGE, DataError):
        return False
