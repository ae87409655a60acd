"""The memory that Arrow takes to decode a row group with any pages and dictionaries.

For each column, Arrow holds a buffer of the file, a decompressed page and a dictionary.  The
metadata of a Parquet file do not contain their sizes, and a page may be as large as the row group.
So the first batch of one column is decoded, and its memory is measured.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

__all__ = ["decoding_bytes", "open_file"]

# A page larger than this is in memory twice during its decompression.
SINGLE = 4_000_000

# The result is a multiple of this.
UNIT = 100_000


def open_file(parquet: Any, path: Any, buffer: int) -> Any:
    """Open a Parquet file whose columns are read through buffers of `buffer` bytes.

    Without a buffer, Arrow reads a whole row group before it decodes the first row.
    """
    return parquet.ParquetFile(path, buffer_size=buffer, pre_buffer=False)


def decoding_bytes(file: Any, names: Sequence[str], step: int, buffer: int) -> int:
    """Return the bytes that Arrow takes to read columns of the largest row group together.

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
    # Arrow's memory may differ by a few bytes between runs; rounding makes plans reproducible.
    return -(-total // UNIT) * UNIT


def _prefixes(path: str) -> list[str]:
    """Return the names that a column of a dotted path may belong to: a.b.c, a.b, a."""
    parts = path.split(".")
    return [".".join(parts[:end]) for end in range(len(parts), 0, -1)]
