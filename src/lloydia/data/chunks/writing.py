"""Files that are written block by block, and appear when they are complete."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from lloydia.data.formats.parquet import pyarrow_parquet
from lloydia.data.outputs import TABLES, Renames, check_output, write_numpy, write_rows, writing

__all__ = ["portions_of", "put_blocks", "write_blocks"]

# The number of rows of the first call of a function, which measures the size of its results.
FEW = 1024


def write_blocks(
    path: Path, blocks: Iterable[NDArray[Any]], n: int, source: Path | None = None
) -> None:
    """Write blocks of rows to a file, one after another.

    Parameters
    ----------
    path : Path
        The file: .npy, .parquet, .csv, .tsv or .txt.
    blocks : iterable of ndarray, shape (m,) or (m, w)
        The blocks, all of one width and type.
    n : int
        The number of rows of all blocks.
    source : Path or None
        The file or folder from which the blocks are computed; it must not be overwritten.

    Raises
    ------
    DataError
        As :func:`lloydia.data.outputs.check_output`.
    OSError
        If the file cannot be written.
    """
    check_output(path, TABLES, others=[] if source is None else [source])
    coming = iter(blocks)
    first = next(coming)
    names = ["label"] if first.ndim == 1 else [f"x{j + 1}" for j in range(first.shape[1])]
    with Renames() as renames, writing(path, renames) as to:
        put_blocks(to, chain([first], coming), n, names, path.suffix.lower())


def put_blocks(
    to: Path, blocks: Iterable[NDArray[Any]], n: int, names: Sequence[str], suffix: str
) -> None:
    """Write blocks to a file one at a time; see :func:`lloydia.data.outputs.write_table`."""
    if suffix == ".npy":
        write_numpy(to, blocks, n)
    elif suffix == ".parquet":
        _parquet(to, blocks, names)
    else:
        with to.open("w", encoding="utf-8", newline="") as stream:
            for i, block in enumerate(blocks):
                write_rows(stream, block, names if i == 0 else None, suffix)


def _parquet(to: Path, blocks: Iterable[NDArray[Any]], names: Sequence[str]) -> None:
    import pyarrow as pa

    with ExitStack() as stack:
        writer = None
        for block in blocks:
            columns = block.reshape(len(block), -1).T
            table = pa.Table.from_arrays([pa.array(column) for column in columns], list(names))
            if writer is None:
                parquet = pyarrow_parquet(str(to))
                stream = stack.enter_context(to.open("wb"))
                writer = stack.enter_context(parquet.ParquetWriter(stream, table.schema))
            writer.write_table(table)


def portions_of(
    blocks: Iterable[NDArray], block_bytes: int, function: Callable[[NDArray], NDArray]
) -> Iterator[NDArray]:
    """Yield the results of a function for blocks, in portions of at most `block_bytes` bytes."""
    step = FEW
    for rows in blocks:
        start = 0
        while start < len(rows):
            found = function(rows[start : start + step])
            start += step
            # The first result shows how many bytes a row of the result takes.
            step = max(block_bytes * len(found) // max(found.nbytes, 1), 1)
            yield found
