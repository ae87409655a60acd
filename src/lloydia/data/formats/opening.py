"""Opening files, pipes and standard input, and the text in them, which may be compressed."""

from __future__ import annotations

import io
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from lloydia.data.columns import DataError
from lloydia.data.formats.compressed import EXTENSIONS, decompressed
from lloydia.data.formats.missing import no_such_file
from lloydia.data.formats.room import check_room
from lloydia.data.formats.signatures import (
    SNIFFED,
    Kind,
    kind_of,
    refuse_binary,
    refuse_kind,
)
from lloydia.progress.stages import stage

__all__ = [
    "STANDARD_INPUT",
    "followed",
    "open_input",
    "reading_from",
    "refuse_other_kinds",
    "text_of",
]

# A Path spells the second with the separators of its system.
STANDARD_INPUT = ("-", "/dev/stdin", str(Path("/dev/stdin")))

# What is read as a whole from a pipe, since its readers go back and forth.
SOUGHT = (".npy", ".npz", ".parquet", ".arrow")
PORTION = 1 << 24


@contextmanager
def open_input(path: str | Path) -> Iterator[tuple[BinaryIO, str]]:
    """Open a file or standard input; yield the bytes and the extension that says how to read them.

    A pipe is known by its first bytes where its name has no extension.

    Raises
    ------
    DataError
        There is no such file, or it is a folder or a device, or it cannot be read.
    """
    if str(path) in STANDARD_INPUT:
        if sys.stdin is None:
            raise DataError("standard input is closed; give a file.")
        with reading_from("standard input"):
            yield _of_pipe(sys.stdin.buffer, "", "standard input")
        return
    if not str(path):
        raise DataError("an empty file name; give a file.")
    path = Path(path)
    try:
        stream = path.open("rb")
    except FileNotFoundError:
        raise no_such_file(path) from None
    except ValueError:
        raise DataError(f"{str(path)!r} is no name of a file.") from None
    except OSError as error:
        if os.path.isdir(path):  # Windows calls that a lack of permission
            raise DataError(f"{path} is a folder, not a file.") from None
        raise DataError(f"cannot read {path}: {_reason(error)}.") from None
    with stream, reading_from(str(path)):
        _refuse_device(stream, path)
        suffix = path.suffix.lower()
        if stream.seekable():
            yield stream, suffix
        else:
            yield _of_pipe(stream, suffix, str(path))


@contextmanager
def followed(stream: BinaryIO) -> Iterator[None]:
    """Show how much of a file has been read within; nothing of a pipe, which has no known end.

    The position is that of the operating system, which is at most a buffer ahead.
    """
    try:
        descriptor = stream.fileno()
        size = os.fstat(descriptor).st_size if stream.seekable() else 0
    except (OSError, ValueError):
        size = 0
    if not size:
        yield
        return

    def position() -> int:
        try:
            return os.lseek(descriptor, 0, os.SEEK_CUR)
        except OSError:  # the file was closed a moment ago
            return size

    with stage("bytes", size, position=position):
        yield


@contextmanager
def reading_from(where: str) -> Iterator[None]:
    """Say in one sentence why a file that was opened cannot be read.

    Raises
    ------
    DataError
        An OSError was raised within.
    """
    try:
        yield
    except OSError as error:
        raise DataError(f"cannot read {where}: {_reason(error)}.") from None


def _reason(error: OSError) -> str:
    return (error.strerror or str(error) or "unknown reason").lower().rstrip(".")


def _refuse_device(stream: BinaryIO, path: Path) -> None:
    """Refuse a device, which may never end; a terminal and the empty one are files."""
    found = os.fstat(stream.fileno())
    if not (stat.S_ISCHR(found.st_mode) or stat.S_ISBLK(found.st_mode)):
        return
    if not (stream.isatty() or found.st_rdev == os.stat(os.devnull).st_rdev):
        raise DataError(f"{path} is a device, not a file.")


class _Rest(io.RawIOBase):
    """What was read from a pipe, and the rest of it."""

    def __init__(self, start: bytes, pipe: BinaryIO) -> None:
        self.start, self.pipe = start, pipe

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self.start[: len(buffer)] or self.pipe.read(len(buffer))
        self.start = self.start[len(data) :]
        buffer[: len(data)] = data
        return len(data)


def _of_pipe(pipe: BinaryIO, suffix: str, where: str) -> tuple[BinaryIO, str]:
    """Return a stream of a pipe, and the extension; what is not read in one go is in memory."""
    start = b""
    while len(start) < SNIFFED and (more := pipe.read(SNIFFED - len(start))):
        start += more
    if not suffix:
        kind = kind_of(start)
        found = "" if kind is None or kind.compressed else kind.suffix
        # A zip archive is told by its end.
        suffix = ".npz" if start.startswith(b"PK") else found
    rest = io.BufferedReader(_Rest(start, pipe), SNIFFED)
    return (_whole(rest, where) if suffix in SOUGHT else rest), suffix


def _whole(stream: BinaryIO, where: str) -> io.BytesIO:
    """Read all of a pipe, as far as memory allows."""
    data = io.BytesIO()
    while more := stream.read(PORTION):
        check_room(2 * len(more), where, "write it to a file, and give that")
        data.write(more)
    data.seek(0)
    return data


def text_of(stream: BinaryIO, suffix: str, where: str) -> tuple[BinaryIO, str]:
    """Return the bytes of a text, decompressed, and the extension of the text itself.

    Parameters
    ----------
    stream : binary file
    suffix : str
        Its extension.
    where : str
        What errors call it: its name, or "standard input".

    Raises
    ------
    DataError
        It is no text; the sentence says what it is instead, and what to do.
    """
    stream, start, kind = _sniffed(stream, suffix)
    piped = suffix == "" and kind is not None and kind.compressed
    if not start or not (suffix in EXTENSIONS or piped):
        refuse_kind(kind, where)
        refuse_binary(start, suffix, where)
        return stream, suffix
    if kind is None or not kind.compressed or (suffix != kind.suffix and not piped):
        what = "not compressed" if kind is None else kind.what
        right = Path(where).stem + (kind.suffix if kind is not None else "")
        raise DataError(f"{where} is {what}, and its name ends in {suffix}; name it {right}.")
    stream, start, kind = _sniffed(decompressed(stream, kind, where), "")
    if kind is not None:
        remedy = kind.advice or "decompress it first, and give what is in it"
        raise DataError(f"{where} holds {kind.what} when it is decompressed, not text; {remedy}.")
    suffix = Path(where).with_suffix("").suffix.lower()
    refuse_binary(start, suffix, where)
    return stream, suffix


def refuse_other_kinds(stream: BinaryIO, suffix: str, where: str, wanted: str) -> None:
    """Refuse a file whose bytes are those of another kind than its extension says.

    Raises
    ------
    DataError
        They are; the sentence says what it is.
    """
    place = stream.tell()
    start = stream.read(SNIFFED)
    stream.seek(place)
    kind = kind_of(start, suffix, stream)
    if kind is not None and kind.suffix != suffix and kind.what != "a zip archive":
        refuse_kind(kind, where, wanted)


def _sniffed(stream: BinaryIO, suffix: str) -> tuple[BinaryIO, bytes, Kind | None]:
    """Return a stream that is at its beginning, its first bytes, and what they are of."""
    reader: Any = stream if hasattr(stream, "peek") else io.BufferedReader(stream)
    start = reader.peek(SNIFFED)[:SNIFFED]
    return reader, start, kind_of(start, suffix, reader if reader.seekable() else None)
