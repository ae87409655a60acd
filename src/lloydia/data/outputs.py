"""Outputs: checked before the work starts, written under a temporary name, renamed when whole.

A temporary file is locked (flock) by the process that writes it.  The lock goes with the process,
however that ends, on this machine or on another that shares the folder; so a file without one is
left over, and who writes the same output next removes it.
"""

from __future__ import annotations

import csv
import glob
import os
import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, TextIO

import numpy as np
from numpy.typing import NDArray

from lloydia.data.columns import DataError
from lloydia.data.files import STANDARD_INPUT, pyarrow_parquet

try:
    import fcntl
except ImportError:  # Windows: nothing is locked there, and nothing that is left over removed
    fcntl = None  # type: ignore[assignment]

# Of the name of a temporary file.
HEX_DIGITS = 8

TABLES = (".npy", ".csv", ".tsv", ".txt", ".parquet")


def check_output(path: Path, known: Sequence[str], *, others: Sequence[Path] = ()) -> None:
    """Refuse a path that could not be written, before any work is done for it.

    Parameters
    ----------
    path : Path
        Where the output will go.
    known : sequence of str
        Extensions, with the dot, that the output can have.
    others : sequence of Path
        Inputs and other outputs of the same command, which it must not overwrite.  Of a folder of
        Parquet files it must not become one.

    Raises
    ------
    DataError
        The extension is unknown, the folder does not exist or cannot be written, the path is no
        plain file, or it is one of the others or would be read with them.
    """
    if str(path) in STANDARD_INPUT:
        raise DataError("cannot write -: standard output is not supported for it; name a file.")
    if path.suffix.lower() not in known:
        listed = f"one of {', '.join(known)}" if len(known) > 1 else known[0]
        raise DataError(f"cannot write {path}: its extension must be {listed}.")
    if path.suffix.lower() == ".parquet":
        pyarrow_parquet(str(path))
    if any(_same(path, other) for other in others):
        raise DataError(f"cannot write {path}: the command uses that file already.")
    for folder in filter(Path.is_dir, others):
        if _joins(path, folder):
            raise DataError(
                f"cannot write {path}: whoever reads {folder} would take it for a part of that; "
                "name a place outside, or another format."
            )
    if path.exists() and not path.is_file():
        raise DataError(f"cannot write {path}: it exists and is not a file.")
    if path.exists() and not os.access(path, os.W_OK):
        raise DataError(f"cannot write {path}: it is read-only.")
    if not path.parent.exists():
        raise DataError(f"cannot write {path}: there is no folder {path.parent}; make it first.")
    try:
        with _temporary(path):
            pass
    except OSError as error:
        reason = (error.strerror or "unknown reason").lower()
        raise DataError(f"cannot write {path}: {reason}.") from None


def _same(path: Path, other: Path) -> bool:
    """Tell whether two names mean one file, through links of either kind."""
    try:
        return path.resolve() == other.resolve() or os.path.samefile(path, other)
    except OSError:  # one of them does not exist
        return False


def _joins(path: Path, folder: Path) -> bool:
    """Tell whether an output would be read as one of a folder's Parquet files."""
    from lloydia.data.chunks.parquet import is_read

    root = folder.resolve()
    # A link is read where it is; what it leads to may be there too.
    places = (path.parent.resolve() / path.name, path.resolve())
    inside = any(place.is_relative_to(root) and is_read(place, root) for place in places)
    return inside and any(folder.rglob("*.parquet"))


@contextmanager
def writing(path: Path, renames: ExitStack) -> Iterator[Path]:
    """Yield a temporary name to write at once; it is renamed when `renames` closes.

    Raises
    ------
    OSError
        The file cannot be written; the error names `path`.
    """
    with naming(path):
        yield renames.enter_context(replacing(path))


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Make an OSError from within name `path`, the file that was being written.

    Raises
    ------
    OSError
        As within, with `path` as its file.
    """
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from None


@contextmanager
def _temporary(path: Path) -> Iterator[Path]:
    """Yield the name of a new file beside `path`, with its extension; at the end remove it.

    What dead processes left of theirs goes too.
    """
    target = path.resolve()
    _remove_left_over(target)
    with naming(path):
        stream = _locked(target)
    temporary = Path(stream.name)
    try:
        yield temporary
    finally:
        stream.close()
        temporary.unlink(missing_ok=True)


def _named(stem: str, token: str, suffix: str) -> str:
    return f".{stem}.{token}.tmp{suffix}"


def _locked(target: Path) -> BinaryIO:
    """Return a new file, locked for as long as it is open."""
    while True:
        name = _named(target.stem, secrets.token_hex(HEX_DIGITS // 2), target.suffix)
        stream = target.with_name(name).open("xb")
        if fcntl is None:
            stream.close()
            return stream
        with suppress(OSError):  # a file system without locks, where all are taken for locked
            fcntl.flock(stream, fcntl.LOCK_EX)
        # Whoever saw it before it was locked has removed it.
        if os.path.exists(stream.name):
            return stream
        stream.close()


def _remove_left_over(target: Path) -> None:
    if fcntl is None:
        return
    stem, suffix = glob.escape(target.stem), glob.escape(target.suffix)
    for left in target.parent.glob(_named(stem, "[0-9a-f]" * HEX_DIGITS, suffix)):
        # One that is locked, or gone by now, or another user's, stays as it is.
        with suppress(OSError), left.open("r+b") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            left.unlink()


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary file beside `path`; at the end rename it, or remove it on failure.

    The temporary name keeps the extension.

    Several of these can be open at once: nothing is renamed while a later one may still fail.

    Raises
    ------
    OSError
        There can be no such file, or the rename fails.
    """
    with _temporary(path) as temporary:
        yield temporary
        with naming(path):
            os.replace(temporary, path.resolve())


def write_table(to: Path, values: NDArray[Any], names: Sequence[str], suffix: str) -> None:
    """Write labels or centres so that reading gives back every bit.

    Parameters
    ----------
    to : Path
        The file to write.
    values : ndarray, shape (n,) or (n, d)
    names : sequence of str
        One name a column; the header of .csv, .tsv and .parquet. A .txt has no header.
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
        pyarrow_parquet(str(to)).write_table(table, to)
        return
    with to.open("w", encoding="utf-8", newline="") as stream:
        write_rows(stream, columns, names, suffix)


def write_numpy(to: Path, blocks: Iterable[NDArray[Any]], n: int) -> None:
    """Write blocks of n rows, one after the other, as one array.

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
            # Not tofile: that does not say why something did not get there.
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
    # The shortest decimal text that reads back as the same number, in the array's own precision.
    rows = columns.astype(str) if columns.dtype.kind == "f" else columns
    delimiter = {".csv": ",", ".tsv": "\t", ".txt": " "}[suffix]
    writer = csv.writer(stream, delimiter=delimiter, lineterminator="\n")
    if names is not None and suffix != ".txt":
        writer.writerow(names)
    writer.writerows(rows.tolist())
