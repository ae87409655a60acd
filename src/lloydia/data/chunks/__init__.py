"""Data that are read in blocks, for fits of data larger than memory."""

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

# The default of `memory`, as a share of the free memory.
SHARE = 0.5

FOLDERS = (".zarr",)
ARCHIVES = (".h5", ".hdf5")

# Advice for files that cannot be read by blocks.
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
    """Open data that are read in blocks and need not fit into memory.

    Pass the result as X to ``fit``, ``predict``, ``transform`` or ``score`` of
    :class:`lloydia.KMeans`.  A fit gives exactly the result of a fit of the same rows in memory,
    for any size of blocks.

    Parameters
    ----------
    what : path, array, callable or Dask collection
        The data:

        - a path of a .npy, .parquet (needs pyarrow), .zarr (needs zarr), .h5 or .hdf5 (needs h5py)
          file, or of a folder of .parquet files, which are read in the order of their names.  In a
          Parquet file, a pandas index is not a feature, and each number of a column of vectors is a
          feature (``name[0]`` and so on).  In a file of several arrays, the array named X or data
          is read;
        - an array of shape (n, d) that is read by slices, such as a memmap, a Zarr array or an open
          HDF5 data set;
        - a callable without arguments that returns a new iterator of blocks at each call, such as
          ``lambda: pandas.read_csv(path, chunksize=100_000)``.  Each block is an array of shape
          (m, d) or a data frame.  ``chunks`` iterates over all blocks once to count the rows;
        - a Dask array or data frame, whose partitions are computed one after another.
    columns : str or sequence of str, default=None
        The columns to use: a text of names, numbers from 1 and ranges such as ``"a,b,3-5"``, or a
        sequence of names.  None: all columns.
    memory : int or str, default=None
        Limit on the memory of the whole process, in bytes or as a text such as ``"2GB"`` or
        ``"500 MiB"``.  It includes Python and the libraries (about 0.45 GB), what is stored per row
        (mostly 20 to 40 bytes), and the blocks.  Blocks stay in memory as far as the limit allows,
        and are not read again.  None: half of the free memory.
    block : int, default=None
        Number of rows per block.  None: as many as take at most 32 MB.
    spill : str or Path, default=None
        A folder for blocks that do not stay in memory.  They are written there, decoded, in the
        first pass, and later passes read them from there.  This saves time if decoding is slower
        than reading, as for Parquet.  It takes as much disk space as these rows would take memory;
        the space is freed after the fit.  Do not choose a folder in memory (``tmpfs``, as /tmp is
        on some systems).

    Returns
    -------
    Chunks
        The opened data, with ``shape`` and ``dtype``.

    Raises
    ------
    DataError
        If the data cannot be read or are not a table of numbers, if blocks differ in width or type,
        or if the library for the format is not installed.
    ValueError
        If `memory` or `block` is invalid, or `spill` is not a folder.

    Examples
    --------
    >>> import numpy as np
    >>> import lloydia
    >>> X = np.arange(24, dtype=np.float32).reshape(12, 2)
    >>> source = lloydia.chunks(X, block=5)
    >>> source.shape
    (12, 2)
    >>> lloydia.KMeans(n_clusters=3, random_state=0).fit(source).n_iter_ >= 1
    True
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
    """Return a choice of columns as a text, a list or None."""
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
    """Return whether `what` can be read by slices as NumPy arrays: no data frame, not sparse."""
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
