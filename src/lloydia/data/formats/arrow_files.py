"""Arrow's own files (IPC, which Feather is too): as a file and as a stream.

A file is read by its footer, which names the place of every batch: polars writes files whose
messages are no stream.  What either declares is summed up before any of it is decompressed.  A
compressed buffer begins with the number of bytes that it becomes (Arrow columnar format, "Buffer
compression").  Where the buffers lie is in the message's FlatBuffers metadata (Message.fbs, whose
fields are numbered in order).
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO

from numpy.typing import NDArray

from lloydia.data.arrow import all_but_id, features_of
from lloydia.data.columns import Columns, DataError
from lloydia.data.formats.arrow_errors import arrow_errors, unreadable
from lloydia.data.formats.room import check_room

__all__ = ["EXTENSIONS", "arrow_table", "read_arrow"]

EXTENSIONS = (".arrow", ".feather", ".ipc", ".arrows")

# A file begins and ends with this.  Before its end stand the footer and the footer's length.
MAGIC = b"ARROW1"
# A place of a message in the footer: its offset, the length of its metadata and that of its body.
BLOCK = struct.Struct("<qi4xq")
DICTIONARIES, BATCHES = 2, 3

# What a message begins with, and the kinds of those that have buffers.
CONTINUATION = b"\xff\xff\xff\xff"
DICTIONARY_BATCH, RECORD_BATCH = 2, 3

FEWER = "choose fewer columns, or write it as Parquet, which is read by blocks"


def read_arrow(
    stream: BinaryIO,
    where: str,
    wanted: str | Sequence[str] | None,
    id_column: str | None = None,
) -> tuple[NDArray[Any], Columns]:
    """Read the chosen columns of an Arrow file; that of the ids is not among all columns.

    Raises
    ------
    DataError
        pyarrow is not installed, it is damaged, or is no table of numbers, or does not fit into
        memory.
    """
    with _sound(stream, where) as is_file:
        schema = _opened(stream, is_file).schema
        wanted = all_but_id(schema, wanted, id_column, where)
        features = features_of(schema, wanted, where, lambda names: _first(stream, is_file, names))
        fields = [schema.get_field_index(name) for name in features.names]
        table = _opened(stream, is_file, fields).read_all()
        # Offsets of vectors and numbers of dictionaries may be damaged, and lead out of bounds.
        table.validate(full=True)
    check_room(features.raw.itemsize * table.num_rows * len(features.sources), where, FEWER)
    return features.table_rows(table, where), features.columns


def arrow_table(stream: BinaryIO, where: str) -> Any:
    """Read all columns of an Arrow file as an Arrow table.

    Raises
    ------
    DataError
        pyarrow is not installed, it is damaged, or does not fit into memory.
    """
    with _sound(stream, where) as is_file:
        table = _opened(stream, is_file).read_all()
        table.validate(full=True)
        # Names are decoded when they are asked for, and may be damaged.
        _ = table.schema.names
        return table


@contextmanager
def _sound(stream: BinaryIO, where: str) -> Iterator[bool]:
    """Yield whether it is a file, not a stream; say so where it is damaged, or too large."""
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise DataError(f"{where} needs pyarrow; pip install pyarrow.") from None

    is_file = stream.read(len(MAGIC)) == MAGIC
    try:
        _check(stream, is_file, where)
        yield is_file
    except arrow_errors() + (EOFError, struct.error, IndexError) as error:  # noqa: RUF005
        raise unreadable(error, where, "an Arrow file") from None


def _opened(stream: BinaryIO, is_file: bool, fields: list[int] | None = None) -> Any:
    from pyarrow import ipc

    stream.seek(0)
    options = ipc.IpcReadOptions(included_fields=fields) if fields else None
    return (ipc.open_file if is_file else ipc.open_stream)(stream, options=options)


def _first(stream: BinaryIO, is_file: bool, names: list[str]) -> Any:
    """Return the first batch that has rows."""
    reader = _opened(stream, is_file)
    batches = map(reader.get_batch, range(reader.num_record_batches)) if is_file else reader
    for batch in batches:
        if batch.num_rows:
            chosen = batch.select(names)
            chosen.validate(full=True)
            return chosen
    return None


def _check(stream: BinaryIO, is_file: bool, where: str) -> None:
    """Refuse a file whose messages go beyond its end, or become larger than the free memory."""
    size = stream.seek(0, io.SEEK_END)
    declared = 0
    for metadata in (_blocks if is_file else _messages)(stream, size):
        declared += _declared(metadata, stream)
    check_room(declared, where, FEWER)


def _blocks(stream: BinaryIO, size: int) -> Iterator[bytes]:
    """Give the metadata of each batch in the footer; the stream is then where its body begins.

    Raises
    ------
    EOFError
        The file has no footer, or a batch goes beyond the end of the file.
    """
    tail = 4 + len(MAGIC)
    stream.seek(max(size - tail, 0))
    end = stream.read(tail)
    length = int.from_bytes(end[:4], "little", signed=True)
    if end[4:] != MAGIC or not 0 < length <= size - tail - len(MAGIC):
        raise EOFError
    stream.seek(size - tail - length)
    footer = stream.read(length)
    table = _follow(footer, 0)
    for field in (DICTIONARIES, BATCHES):
        place = _field(footer, table, field)
        vector = _follow(footer, place) if place else 0
        (count,) = struct.unpack_from("<I", footer, vector) if place else (0,)
        for i in range(count):
            offset, before, body = BLOCK.unpack_from(footer, vector + 4 + BLOCK.size * i)
            if min(offset, before, body) < 0 or offset + before + body > size:
                raise EOFError
            stream.seek(offset)
            metadata = stream.read(before)
            stream.seek(offset + before)
            yield metadata[8 if metadata[:4] == CONTINUATION else 4 :]


def _messages(stream: BinaryIO, size: int) -> Iterator[bytes]:
    """Give the metadata of each message; the stream is then where its body begins.

    Raises
    ------
    EOFError
        A message goes beyond the end of the file.
    """
    stream.seek(0)
    while len(word := stream.read(4)) == 4:
        word = stream.read(4) if word == CONTINUATION else word
        (length,) = struct.unpack("<i", word)
        if length == 0:
            return
        if not 0 < length <= size - stream.tell():
            raise EOFError
        metadata = stream.read(length)
        place = stream.tell()
        body = _field(metadata, _follow(metadata, 0), 3)
        (n_bytes,) = struct.unpack_from("<q", metadata, body) if body else (0,)
        if not 0 <= n_bytes <= size - place:
            raise EOFError
        yield metadata
        stream.seek(place + n_bytes)


def _declared(metadata: bytes, stream: BinaryIO) -> int:
    """Return the bytes that the buffers of a batch take when they are decompressed."""
    table = _follow(metadata, 0)
    kind = metadata[_field(metadata, table, 1)]
    if kind not in (DICTIONARY_BATCH, RECORD_BATCH):
        return 0
    batch = _follow(metadata, _field(metadata, table, 2))
    if kind == DICTIONARY_BATCH:
        batch = _follow(metadata, _field(metadata, batch, 1))
    compressed = bool(_field(metadata, batch, 3))
    buffers, body = _field(metadata, batch, 2), stream.tell()
    if not buffers:
        return 0
    vector = _follow(metadata, buffers)
    (count,) = struct.unpack_from("<I", metadata, vector)
    declared = 0
    for i in range(count):
        offset, length = struct.unpack_from("<qq", metadata, vector + 4 + 16 * i)
        if offset < 0 or length < 0:
            raise EOFError
        if compressed and length >= 8:
            stream.seek(body + offset)
            (n_bytes,) = struct.unpack("<q", stream.read(8))
            # -1 marks a buffer that is not compressed.
            length = n_bytes if n_bytes >= 0 else length
        declared += length
    return declared


def _follow(metadata: bytes, place: int) -> int:
    """Return where an offset leads."""
    return place + int(struct.unpack_from("<I", metadata, place)[0])


def _field(metadata: bytes, table: int, number: int) -> int:
    """Return where a field of a table is; 0 where it is left out."""
    offsets = table - struct.unpack_from("<i", metadata, table)[0]
    (size,) = struct.unpack_from("<H", metadata, offsets)
    place = 4 + 2 * number
    (offset,) = struct.unpack_from("<H", metadata, offsets + place) if place < size else (0,)
    return table + offset if offset else 0
