"""Data that are read in pieces: what :meth:`lloydia.KMeans.fit` takes where they exceed memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from lloydia.data.chunks.memory import available, parse_bytes
from lloydia.data.chunks.source import Chunks
from lloydia.data.columns import DataError
from lloydia.data.formats.missing import no_such_file
from lloydia.spelling import option

__all__ = ["Chunks", "chunks"]

# Of what is free, unless `memory` says otherwise.
SHARE = 0.5

FOLDERS = (".zarr",)
ARCHIVES = (".h5", ".hdf5")

# What to do with files that are not read by blocks.
TEXT = "for a text, use lloydia.chunks(lambda: pandas.read_csv(path, chunksize=100_000))"
OTHERS = {
    ".npz": "save its array as .npy; a sparse matrix must fit into memory: "
    "fit(scipy.sparse.load_npz(path))",
    **dict.fromkeys((".feather", ".arrow", ".ipc", ".arrows"), "convert an Arrow file to Parquet"),
}


def chunks(
    what: Any,
    *,
    columns: str | Sequence[str] | None = None,
    memory: int | str | None = None,
    block: int | None = None,
    spill: str | Path | None = None,
) -> Chunks:
    """Open data that need not fit into memory.

    Give it to :meth:`lloydia.KMeans.fit`, ``predict``, ``transform`` or ``score`` as X.  The result
    of a fit has the bits of the fit of the same rows in memory, whatever the blocks are.

    Parameters
    ----------
    what : path, array, callable or dask collection
        - a path: .npy; .parquet, or a folder of such files, in the order of their names (needs
          pyarrow; the index of pandas is no feature, and a column of vectors is a feature for each
          of its numbers, ``name[0]`` and so on); .zarr (needs zarr); .h5 or .hdf5 (needs h5py).
          Of an archive of several arrays, the one named X or data;
        - an array of shape (n, d) that is read by slices: a memmap, a Zarr array, an open HDF5
          data set;
        - a callable without arguments that returns a fresh iterator of blocks, each an array of
          shape (m, d) or a data frame: ``lambda: pandas.read_csv(path, chunksize=100_000)``.  It is
          walked through once at once, to count the rows;
        - a dask array or data frame, whose partitions are computed one after the other.
    columns : str or sequence of str, optional
        Columns to use: ``"a,b,3-5"`` (names, numbers from 1, ranges), or names, of what has them.
    memory : int or str, optional
        Most bytes that a process may take that does nothing else: ``"2GB"``, ``"500 MiB"``.  It
        covers the interpreter and the libraries (about 0.45 GB), what is kept of each row (mostly
        20 to 40 bytes), and blocks; the rest holds blocks that need not be read again.  By default
        half of what is free.
    block : int, optional
        Rows of a block; by default what comes to at most 32 MB.
    spill : str or Path, optional
        A folder.  Blocks that do not stay in memory are written there when they are first read, in
        the type they are computed in, and every other pass reads them from there: worth it for a
        fit where to decode takes longer than to read, Parquet above all.  It takes as much of the
        disk as these rows would of memory, and that is free again when they are let go.  It should
        not be a folder that lives in memory (``tmpfs``, as /tmp is on some systems).

    Returns
    -------
    Chunks

    Raises
    ------
    DataError
        It cannot be read, is not a table of numbers, or its blocks differ in width or type.
    ValueError
        `memory` or `block` cannot be understood, or `spill` is no folder.
    ImportError
        The library for a format is missing.
    """
    if block is not None and not (isinstance(block, int) and block > 0):
        raise ValueError(f"block={block!r} must be a positive number of rows.")
    if spill is not None and not Path(spill).is_dir():
        raise ValueError(f"spill={str(spill)!r} is not a folder: make it, or name another.")
    limit = int(SHARE * available()) if memory is None else parse_bytes(memory)
    source = _opened(what, _names(columns))
    if source.columns.names is None and not (columns is None or isinstance(columns, str)):
        raise DataError(
            f"{source.where} has no names of columns: instead of {option('columns', columns)}, "
            "give their numbers (from 1) as a text such as '1,3-5'."
        )
    if 0 in source.shape:
        raise DataError(f"{source.where} is empty: its shape is {source.shape}.")
    source.memory, source.block = limit, block
    source.spill = None if spill is None else Path(spill)
    return source


def _names(columns: Any) -> str | list | None:
    """Return a choice of columns as a text or a list."""
    if columns is None or isinstance(columns, str):
        return columns
    try:
        return list(columns)
    except TypeError:
        raise DataError(
            f"columns={columns!r} must be a text such as 'a,b,3-5', or a sequence of names."
        ) from None


def _opened(what: Any, columns: str | Sequence[str] | None) -> Chunks:
    from lloydia.data.chunks import arrays

    if what is None or (isinstance(what, str) and not what):
        raise DataError(f"{what!r} is not a path: name a file or a folder.")
    if isinstance(what, str | Path):
        return _file(Path(what), columns)
    if hasattr(what, "__dask_graph__"):
        from lloydia.data.chunks.partitions import Partitions

        return Partitions(what, columns)
    if _gives_slices(what):
        return arrays.Slices(what, columns, "the array")
    if isinstance(what, Callable):  # type: ignore[arg-type]
        from lloydia.data.chunks.iterables import Blocks

        return Blocks(what, columns)
    raise DataError(
        f"cannot read {type(what).__name__} by blocks: give a path, an array of two dimensions, a "
        "Dask collection, or a callable that returns an iterator of blocks; pass rows that are in "
        "memory to fit without lloydia.chunks."
    )


def _gives_slices(what: Any) -> bool:
    """Return whether NumPy can read it by slices: no data frame, nothing sparse."""
    try:
        np.dtype(what.dtype)
    except (AttributeError, TypeError):
        return False
    return hasattr(what, "shape") and hasattr(what, "__getitem__") and not sp.issparse(what)


def _file(path: Path, columns: str | Sequence[str] | None) -> Chunks:
    from lloydia.data.chunks import arrays

    try:
        path.stat()
    except FileNotFoundError:
        raise no_such_file(path) from None
    except (OSError, ValueError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise DataError(f"cannot read {path}: {reason}.") from None
    suffix = path.suffix.lower()
    if suffix in FOLDERS:
        return arrays.zarr_array(path, columns)
    if suffix == ".parquet" or path.is_dir():
        from lloydia.data.chunks.parquet import Parquet

        return Parquet(path, columns)
    if suffix == ".npy":
        return arrays.numpy_file(path, columns)
    if suffix in ARCHIVES:
        return arrays.hdf5_dataset(path, columns)
    raise DataError(
        f"{path} is not read by blocks: give .npy, .parquet or a folder of them, .zarr or .h5; "
        f"{OTHERS.get(suffix, TEXT)}."
    )
