"""Which files Lloydia wrote, and nobody changed since.

Nothing in a CSV or an .npy file can say who wrote it: every byte is data.  So the mark is not in
the file but in the time of its last change, which each file system keeps.  A file that Lloydia
wrote has a time whose last digits follow from the file's number in the file system (its inode), its
size and its first bytes: the seal.  Writing to the file sets another time, and a copy has another
number, even if it keeps the time (`cp -p`, `rsync -a`); both break the seal.

Times are sealed to 100 nanoseconds, as exactly as all usual file systems keep them; where they are
kept less exactly, as on a FAT disk, or where numbers change, no file has a seal.  Of 90,000 files
that Lloydia did not write, one has the right digits by chance.
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path

from lloydia.data.columns import DataError
from lloydia.data.formats.numpy_files import DAMAGE, Archive

__all__ = ["is_sealed", "kind_of", "refuse_others", "seal"]

# Nanoseconds: the digits of a time that are the seal are below SPAN, and multiples of UNIT.
SPAN, UNIT = 10_000_000, 100

# Bytes at the beginning of a file that its seal depends on.
START = 4096

# What the formats of .npz files begin with, whatever their version, and what these files are.
KINDS = {
    "lloydia model": "model",
    "lloydia k-means": "model",
    "lloydia checkpoint": "checkpoint",
}


def seal(path: Path) -> None:
    """Seal a file that was written a moment ago: its time becomes up to SPAN later.

    The time never becomes earlier, because a build program would then take the file for older than
    the input that it was made from.  Where a seal is not possible, the file stays without one.
    """
    with suppress(OSError):
        found = path.stat()
        time = found.st_mtime_ns // SPAN * SPAN + _digits(path, found)
        if time < found.st_mtime_ns:
            time += SPAN
        os.utime(path, ns=(found.st_atime_ns, time))


def is_sealed(path: Path) -> bool:
    """Return whether Lloydia wrote a file, and nobody wrote to it since.

    Raises
    ------
    OSError
        It cannot be read.
    """
    found = path.stat()
    return found.st_mtime_ns % SPAN == _digits(path, found)


def _digits(path: Path, found: os.stat_result) -> int:
    with path.open("rb") as stream:
        start = stream.read(START)
    digest = hashlib.sha256(b"lloydia %d %d " % (found.st_ino, found.st_size) + start).digest()
    steps = int.from_bytes(digest[:8], "big") % (SPAN // UNIT // 10 * 9)
    # Times that are kept in milliseconds or microseconds have a zero as their last digit.
    return (steps // 9 * 10 + steps % 9 + 1) * UNIT


def kind_of(path: Path) -> str | None:
    """Return what a file of Lloydia says that it is, of any version.

    Returns
    -------
    {"model", "checkpoint"} or None
        None where the file says neither.
    """
    try:
        with path.open("rb") as stream:
            if stream.read(2) != b"PK":
                return None
            archive = Archive(stream, str(path))
            archive.check_size()
            if "header" in archive.files:
                name = str(json.loads(str(archive["header"]))["format"])
            else:
                name = str(archive["format"])
            return KINDS.get(name.rpartition(" ")[0])
    except (*DAMAGE, DataError):
        return None


def refuse_others(path: Path) -> None:
    """Refuse to replace a file that Lloydia did not write, or a checkpoint.

    Raises
    ------
    DataError
        There is one, and it is not empty.
    """
    if not path.exists() or not path.stat().st_size:
        return
    kind = kind_of(path)
    if kind == "checkpoint":
        raise DataError(
            f"cannot write {path}: it is the checkpoint of a fit; name another file, or add "
            "--force to replace it."
        )
    if kind != "model" and not is_sealed(path):
        raise DataError(
            f"cannot write {path}: it exists, and is not recognised as an unchanged file of "
            "Lloydia (nor are copies, and files on a file system without exact times); name "
            "another file, or add --force to replace it."
        )
