"""Files that are written block by block, and appear when they are whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lloydia.data.outputs import TABLES, check_output, write_rows, writing

__all__ = ["write_blocks"]


def write_blocks(path: Path, blocks: Iterable[NDArray[Any]], n: int) -> None:
    """Write blocks of rows one after the other.

    Parameters
    ----------
    path : Path
        .npy, .parquet, .csv, .tsv or .txt.
    blocks : iterable of ndarray, shape (m,) or (m, w)
        All of one width and type.
    n : int
        Rows of all of them.

    Raises
    ------
    OSError
        The file cannot be written.
    """
    check_output(path, TABLES)
    coming = iter(blocks)
    first = next(coming)
    names = ["label"] if first.ndim == 1 else [f"x{j + 1}" for j in range(first.shape[1])]
    every, suffix = chain([first], coming), path.suffix.lower()
    with ExitStack() as renames, writing(path, renames) as to:
        if suffix == ".npy":
            _numpy(to, every, n, first)
        elif suffix == ".parquet":
            _parquet(to, every, names, first)
        else:
            with to.open("w", encoding="utf-8", newline="") as stream:
                for i, block in enumerate(every):
                    write_rows(stream, block, names if i == 0 else None, suffix)


def _numpy(to: Path, blocks: Iterator[NDArray[Any]], n: int, first: NDArray[Any]) -> None:
    with to.open("wb") as stream:
        header = {"descr": first.dtype.str, "fortran_order": False, "shape": (n, *first.shape[1:])}
        np.lib.format.write_array_header_1_0(stream, header)
        for block in blocks:
            np.ascontiguousarray(block).tofile(stream)


def _parquet(
    to: Path, blocks: Iterator[NDArray[Any]], names: Sequence[str], first: NDArray[Any]
) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    schema = pa.schema([(name, pa.from_numpy_dtype(first.dtype)) for name in names])
    with parquet.ParquetWriter(to, schema) as writer:
        for block in blocks:
            columns = block.reshape(len(block), -1).T
            writer.write_table(pa.table([pa.array(column) for column in columns], schema=schema))
