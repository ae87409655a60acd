"""How much memory Arrow takes to decode a row group, whatever pages and dictionaries it has.

Arrow holds, of every column at a time, a buffer of the file, a decompressed page and a dictionary.
The metadata of a Parquet file tell the sizes of none of them, and a page may be as large as the row
group, so the first batch of one column is decoded and looked at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

__all__ = ["decoding_bytes", "open_file"]

# A page beyond this size is there twice while it is decompressed.
SINGLE = 4_000_000

# The result is a multiple of this.
UNIT = 100_000


def open_file(parquet: Any, path: Any, buffer: int) -> Any:
    """Open a Parquet file whose columns are read through buffers of so many bytes.

    Otherwise Arrow fetches the bytes of a whole row group before it decodes the first row.
    """
    return parquet.ParquetFile(path, buffer_size=buffer, pre_buffer=False)


def decoding_bytes(file: Any, names: Sequence[str], step: int, buffer: int) -> int:
    """Return the bytes that Arrow takes to read columns of the largest row group side by side.

    Parameters
    ----------
    file : pyarrow.parquet.ParquetFile
        From :func:`open_file`.
    names : sequence of str
        The columns that are read.
    step : int
        Rows of a batch.
    buffer : int
        Bytes of the buffer of each column.
    """
    import pyarrow as pa

    metadata, pool = file.metadata, pa.default_memory_pool()
    groups = range(metadata.num_row_groups)
    group = max(groups, key=lambda i: metadata.row_group(i).total_byte_size)
    kinds: Counter[str] = Counter()
    largest: dict[str, tuple[int, str]] = {}
    wanted, row_group = set(names), metadata.row_group(group)
    for j in range(row_group.num_columns):
        column = row_group.column(j)
        name = next((n for n in _prefixes(column.path_in_schema) if n in wanted), None)
        if name is not None:
            kinds[column.physical_type] += 1
            size = column.total_uncompressed_size, name
            largest[column.physical_type] = max(largest.get(column.physical_type, size), size)
    total = 0
    for kind, count in kinds.items():
        before = pool.bytes_allocated()
        batches = file.iter_batches(step, row_groups=[group], columns=[largest[kind][1]])
        first = next(batches, None)
        held = max(pool.bytes_allocated() - before, buffer)
        del first, batches
        total += count * (held * 5 // 4 + max(held - SINGLE, 0))
    # What Arrow holds may differ by a few bytes from one run to the next, and a plan should not.
    return -(-total // UNIT) * UNIT


def _prefixes(path: str) -> list[str]:
    """Return the names that a column of a dotted path may belong to: a.b.c, a.b, a."""
    parts = path.split(".")
    return [".".join(parts[:end]) for end in range(len(parts), 0, -1)]
