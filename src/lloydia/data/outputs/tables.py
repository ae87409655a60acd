"""Tables of labels and centres in the formats of outputs."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, BinaryIO, TextIO

import numpy as np
from numpy.typing import NDArray

from lloydia.data.formats.parquet import pyarrow_parquet

__all__ = ["TABLES", "write_encoded", "write_numpy", "write_rows", "write_table"]

TABLES = (".npy", ".csv", ".tsv", ".txt", ".parquet")


def write_table(to: Path, values: NDArray[Any], names: Sequence[str], suffix: str) -> None:
    """Write labels or centres so that reading them gives exactly the same values.

    Parameters
    ----------
    to : Path
        The file to write.
    values : ndarray, shape (n,) or (n, d)
    names : sequence of str
        One name per column, for the header of .csv, .tsv and .parquet.  A .txt has no header.
    suffix : str
        One of `TABLES`.

    Raises
    ------
    OSError
        The file cannot be written.
    """
    if suffix == ".npy":
        write_numpy(to, [values], len(values))
        return
    columns = values.reshape(len(values), -1)
    if suffix == ".parquet":
        import pyarrow as pa

        table = pa.Table.from_arrays([pa.array(column) for column in columns.T], list(names))
        # Open the file here, because pyarrow's errors do not contain the error of the disk.
        with to.open("wb") as stream:
            pyarrow_parquet(str(to)).write_table(table, stream)
        return
    with to.open("w", encoding="utf-8", newline="") as text:
        write_rows(text, columns, names, suffix)


def write_encoded(to: Path, encode: Callable[[BinaryIO], object]) -> None:
    """Encode a picture in memory by a library, and write it.

    If encoders write to a full disk themselves, their errors do not say so.

    Parameters
    ----------
    to : Path
    encode : callable
        It takes the stream to write to.

    Raises
    ------
    OSError
        The file cannot be written.
    """
    encoded = io.BytesIO()
    encode(encoded)
    with to.open("wb") as stream:
        stream.write(encoded.getbuffer())


def write_numpy(to: Path, blocks: Iterable[NDArray[Any]], n: int) -> None:
    """Write blocks that have n rows in all as one array.

    Raises
    ------
    OSError
        The file cannot be written.
    """
    with to.open("wb") as stream:
        for i, block in enumerate(blocks):
            if i == 0:
                kind, shape = np.lib.format.dtype_to_descr(block.dtype), (n, *block.shape[1:])
                header = {"descr": kind, "fortran_order": False, "shape": shape}
                np.lib.format.write_array_header_1_0(stream, header)
            # Not tofile, which does not report why a write failed.
            stream.write(np.ascontiguousarray(block).data)


def write_rows(
    stream: TextIO, values: NDArray[Any], names: Sequence[str] | None, suffix: str
) -> None:
    """Write rows as text, under a header if there are names and the format has one.

    Parameters
    ----------
    stream : text file
    values : ndarray, shape (n,) or (n, d)
    names : sequence of str or None
    suffix : {".csv", ".tsv", ".txt"}
    """
    columns = values.reshape(len(values), -1)
    # The shortest decimal text that is read as the same number, in the array's precision.
    rows = columns.astype(str) if columns.dtype.kind == "f" else columns
    delimiter = {".csv": ",", ".tsv": "\t", ".txt": " "}[suffix]
    writer = csv.writer(stream, delimiter=delimiter, lineterminator="\n")
    if names is not None and suffix != ".txt":
        writer.writerow(names)
    writer.writerows(rows.tolist())
