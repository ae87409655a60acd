"""Seals: how Lloydia recognises unchanged files that it wrote.

A CSV or .npy file has no room for a mark, because every byte is data.  So the mark is in the
modification time of the file.  The last digits of this time follow from the file's inode number,
its size and its first bytes; they are the seal.  Writing to the file sets another time, and a copy
has another inode number even if it keeps the time (`cp -p`, `rsync -a`); both break the seal.

Seals have a resolution of 100 nanoseconds, which all usual file systems keep.  On file systems with
a lower resolution, such as FAT, or with changing inode numbers, no file has a seal.  One of 90,000
files that Lloydia did not write has the right digits by chance.
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

# Nanoseconds: the seal is the part of a time below SPAN, and a multiple of UNIT.
SPAN, UNIT = 10_000_000, 100

# The number of bytes at the beginning of a file on which its seal depends.
START = 4096

# The beginnings of the formats of .npz files, without the version, and the kinds of the files.
KINDS = {
    "lloydia model": "model",
    "lloydia k-means": "model",
    "lloydia checkpoint": "checkpoint",
}


def seal(path: Path) -> None:
    """Seal a file that was just written, which sets its time up to SPAN later.

    The time never becomes earlier, because a build program would then consider the file older than
    its input.  If a seal is not possible, the file remains without one.
    """
    with suppress(OSError):
        found = path.stat()
        time = found.st_mtime_ns // SPAN * SPAN + _digits(path, found)
        if time < found.st_mtime_ns:
            time += SPAN
        os.utime(path, ns=(found.st_atime_ns, time))


def is_sealed(path: Path) -> bool:
    """Return whether Lloydia wrote a file that has not changed since.

    Raises
    ------
    OSError
        If the file cannot be read.
    """
    found = path.stat()
    return found.st_mtime_ns % SPAN == _digits(path, found)


def _digits(path: Path, found: os.stat_result) -> int:
    with path.open("rb") as stream:
        start = stream.read(START)
    digest = hashlib.sha256(b"lloydia %d %d " % (found.st_ino, found.st_size) + start).digest()
    steps = int.from_bytes(digest[:8], "big") % (SPAN // UNIT // 10 * 9)
    # Times with a resolution of milliseconds or microseconds have a zero as their last digit.
    return (steps // 9 * 10 + steps % 9 + 1) * UNIT


def kind_of(path: Path) -> str | None:
    """Return the kind of a file that any version of Lloydia wrote.

    Returns
    -------
    {"model", "checkpoint"} or None
        None if the file is neither.
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
        If there is such a file, and it is not empty.
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
