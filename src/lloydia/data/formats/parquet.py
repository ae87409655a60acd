"""Tables in Parquet files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, BinaryIO

from numpy.typing import NDArray

from lloydia.data.arrow import all_but_id, features_of
from lloydia.data.columns import Columns, DataError
from lloydia.data.formats.arrow_errors import arrow_errors, unreadable
from lloydia.data.formats.room import check_room

__all__ = ["check_row_groups", "parquet_table", "pyarrow_parquet", "read_parquet"]


def pyarrow_parquet(where: str) -> Any:
    """Return pyarrow.parquet.

    Raises
    ------
    DataError
        If pyarrow is not installed.
    """
    try:
        from pyarrow import parquet
    except ImportError:
        raise DataError(f"{where} needs pyarrow; pip install pyarrow.") from None
    return parquet


def check_row_groups(metadata: Any, where: str) -> None:
    """Refuse a Parquet file whose row groups do not have the declared number of rows in all.

    Arrow allocates memory for the declared rows of a row group before it decodes any of them.

    Raises
    ------
    DataError
        If the numbers differ.
    """
    lengths = (metadata.row_group(i).num_rows for i in range(metadata.num_row_groups))
    if sum(lengths) != metadata.num_rows:
        raise DataError(f"{where} is damaged or not a Parquet file.")


def parquet_table(stream: BinaryIO, where: str) -> Any:
    """Read all columns of a Parquet file as an Arrow table.

    Raises
    ------
    DataError
        If the file is damaged, or pyarrow is not installed.
    """
    parquet = pyarrow_parquet(where)
    try:
        file = parquet.ParquetFile(stream)
        check_row_groups(file.metadata, where)
        return file.read()
    except arrow_errors() as error:
        raise unreadable(error, where, "a Parquet file") from None


def read_parquet(
    stream: BinaryIO, where: str, wanted: str | Sequence[str] | None, id_column: str | None
) -> tuple[NDArray[Any], Columns]:
    """Return the wanted columns of a file, dense, and which they are."""
    parquet = pyarrow_parquet(where)
    try:
        file = parquet.ParquetFile(stream)
        check_row_groups(file.metadata, where)
        features = features_of(
            file.schema_arrow,
            all_but_id(file.schema_arrow, wanted, id_column, where),
            where,
            lambda names: next(file.iter_batches(1, columns=names), None),
        )
        # The numbers are in memory twice: as columns, and as rows.
        needed = 2 * file.metadata.num_rows * len(features.sources) * features.raw.itemsize
        check_room(needed, where, "choose fewer columns, or read it by blocks")
        table = file.read(columns=features.names)
    except arrow_errors() as error:
        raise unreadable(error, where, "a Parquet file") from None
    return features.table_rows(table, where), features.columns
