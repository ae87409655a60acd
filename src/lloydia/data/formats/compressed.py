"""Compressed text: gzip, bzip2, xz and Zstandard, decompressed as it is read."""

from __future__ import annotations

import io
import lzma
import zlib
from importlib import import_module
from typing import Any, BinaryIO

from lloydia.data.columns import DataError
from lloydia.data.formats.room import Watch
from lloydia.data.formats.signatures import Kind

__all__ = ["EXTENSIONS", "decompressed"]

EXTENSIONS = (".gz", ".bz2", ".xz", ".zst")

# The exceptions that the libraries raise for damaged files.
DAMAGE = (EOFError, OSError, ValueError, zlib.error, lzma.LZMAError)


def decompressed(stream: BinaryIO, kind: Kind, where: str) -> BinaryIO:
    """Return a compressed file decompressed, as a stream that can be read once.

    Raises
    ------
    DataError
        If no library for the compression is installed.  Reading from the stream raises the error if
        the file is damaged or does not fit into memory.
    """
    return io.BufferedReader(_Stream(_opened(stream, kind, where), where))


def _opened(stream: BinaryIO, kind: Kind, where: str) -> Any:
    if kind.suffix == ".zst":
        return _zstandard(stream, where)
    name, function = {".gz": ("gzip", "GzipFile"), ".bz2": ("bz2", "BZ2File")}.get(
        kind.suffix, ("lzma", "LZMAFile")
    )
    opener = getattr(import_module(name), function)
    return opener(fileobj=stream) if kind.suffix == ".gz" else opener(stream)


def _zstandard(stream: BinaryIO, where: str) -> Any:
    """Open a Zstandard file by Python's own library (3.14), or another that is installed."""
    try:
        return import_module("compression.zstd").ZstdFile(stream)
    except ImportError:
        pass
    try:
        reader = import_module("zstandard").ZstdDecompressor()
        return reader.stream_reader(stream, read_across_frames=True)
    except ImportError:
        pass
    try:
        return import_module("pyarrow").input_stream(stream, compression="zstd")
    except ImportError:
        raise DataError(
            f"{where} is compressed by Zstandard, which Python reads from 3.14 on: decompress it "
            "first (zstd -d), or pip install pyarrow."
        ) from None


class _Stream(io.RawIOBase):
    """A decompressed stream that reports damage in one sentence and watches the free memory."""

    def __init__(self, inner: Any, where: str) -> None:
        self.inner, self.where, self.watch = inner, where, Watch(where)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self.inner.read(len(buffer))
        except DAMAGE as error:
            raise self._damaged() from error
        except Exception as error:
            # The libraries of Zstandard raise exceptions of their own classes.
            if type(error).__name__ not in ("ZstdError", "ArrowInvalid"):
                raise
            raise self._damaged() from error
        self.watch.count(len(data))
        buffer[: len(data)] = data
        return len(data)

    def _damaged(self) -> DataError:
        return DataError(f"{self.where} is damaged or cut short; compress it again.")
