"""Row groups of the Parquet files that are written: how long they are, and how compressed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

__all__ = ["compression_of", "gathered"]

# A row group ends at so many rows, or bytes in memory.
ROWS, BYTES = 1 << 19, 1 << 26

# What ParquetWriter uses by default.
USUAL = "SNAPPY"


def gathered(tables: Iterable[Any]) -> Iterator[Any]:
    """Give the rows of small tables in tables that are long enough for a row group each."""
    import pyarrow as pa

    some: list[Any] = []
    for table in tables:
        some.append(table)
        if sum(map(len, some)) >= ROWS or sum(one.nbytes for one in some) >= BYTES:
            yield pa.concat_tables(some)
            some = []
    if some:
        yield pa.concat_tables(some)


def compression_of(metadata: Any) -> str:
    """Return the compression, as ParquetWriter spells it, that most columns of a file have."""
    if metadata.num_row_groups == 0:
        return USUAL
    group = metadata.row_group(0)
    found = Counter(group.column(j).compression for j in range(group.num_columns))
    return found.most_common(1)[0][0].replace("UNCOMPRESSED", "NONE") if found else USUAL
