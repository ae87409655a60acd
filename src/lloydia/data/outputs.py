"""Outputs: checked before the work starts, written under a temporary name, renamed when whole.

A temporary file is locked (flock) by the process that writes it.  The lock goes with the process,
however that ends, on this machine or on another that shares the folder; so a file without one is
left over, and who writes the same output next removes it.
"""

from __future__ import annotations

import csv
import errno
import glob
import io
import os
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, TextIO

import numpy as np
from numpy.typing import NDArray

from lloydia.data.columns import DataError
from lloydia.data.files import pyarrow_parquet
from lloydia.data.formats.opening import STANDARD_INPUT

try:
    import fcntl
except ImportError:  # Windows: nothing is locked there, and nothing that is left over removed
    fcntl = None  # type: ignore[assignment]

# Of the name of a temporary file; and the bytes that file systems allow a name.
HEX_DIGITS = 8
NAME_BYTES = 255

# What a disk answers that is full, broken or read-only.
DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS)

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
    try:
        _check_place(path, others)
    except OSError as error:
        raise DataError(f"cannot write {path}: {_reason(error)}.") from None
    except ValueError as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"cannot write {str(path)!r}: {error}.") from None


def _check_place(path: Path, others: Sequence[Path]) -> None:
    """Refuse a path that is taken, or where no file can be made."""
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
    try:
        parent = os.stat(path.parent)
    except FileNotFoundError:
        missing = f"there is no folder {path.parent}; make it first."
        raise DataError(f"cannot write {path}: {missing}") from None
    if not stat.S_ISDIR(parent.st_mode):
        raise DataError(f"cannot write {path}: {path.parent} is a file, not a folder.")
    with _temporary(path):
        pass


def target_of(path: Path) -> Path:
    """Return the file that is written for a path: what links lead to.

    Of links that lead in a circle it is one of them, and the system says what is wrong with it.
    """
    return Path(os.path.realpath(path))


def _same(path: Path, other: Path) -> bool:
    """Tell whether two names mean one file, through links of either kind."""
    try:
        return target_of(path) == target_of(other) or os.path.samefile(path, other)
    except OSError:  # one of them does not exist
        return False


def _joins(path: Path, folder: Path) -> bool:
    """Tell whether an output would be read as one of a folder's Parquet files."""
    from lloydia.data.chunks.parquet import is_read

    root = target_of(folder)
    # A link is read where it is; what it leads to may be there too.
    places = (target_of(path.parent) / path.name, target_of(path))
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

    A library may have put an error of its own in the place of what the disk answered: the reason is
    what the disk answered.

    Raises
    ------
    OSError
        As within, with `path` as its file.
    """
    try:
        yield
    except Exception as error:
        answer = _of_disk(error) or error
        if not isinstance(answer, OSError):
            raise
        reason = os.strerror(answer.errno) if answer.errno else answer.strerror or str(answer)
        raise OSError(answer.errno, reason, str(path)) from None


def _of_disk(error: BaseException | None) -> OSError | None:
    """Return the error of the disk that led to an error, if one did."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in DISK_ERRORS:
            return error
        error = error.__cause__ or error.__context__
    return None


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower().rstrip(".")


@contextmanager
def _temporary(path: Path) -> Iterator[Path]:
    """Yield the name of a new file beside `path`, with its extension; at the end remove it.

    What dead processes left of theirs goes too.
    """
    target = target_of(path)
    with naming(path):
        if target.is_symlink():
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        _remove_left_over(target)
        stream = _locked(target)
    temporary = Path(stream.name)
    try:
        yield temporary
    finally:
        stream.close()
        # An error here would hide the one that is under way.
        with suppress(OSError):
            temporary.unlink()


def _named(stem: str, token: str, suffix: str) -> str:
    """Return the name of a temporary file, with as much of the stem as fits."""
    room = NAME_BYTES - len(os.fsencode(f"..{'0' * HEX_DIGITS}.tmp{suffix}"))
    stem = os.fsencode(stem)[: max(room, 0)].decode(errors="ignore")
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
    digits = "0" * HEX_DIGITS
    before, after = map(glob.escape, _named(target.stem, digits, target.suffix).rsplit(digits, 1))
    for left in target.parent.glob(before + "[0-9a-f]" * HEX_DIGITS + after):
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
            os.replace(temporary, target_of(path))


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
        # A file of ours, for pyarrow's own errors do not say what the disk answered.
        with to.open("wb") as stream:
            pyarrow_parquet(str(to)).write_table(table, stream)
        return
    with to.open("w", encoding="utf-8", newline="") as text:
        write_rows(text, columns, names, suffix)


def write_encoded(to: Path, encode: Callable[[BinaryIO], object]) -> None:
    """Have a library encode a picture in memory, and write it.

    Encoders that write to a full disk raise errors that do not say so.

    Parameters
    ----------
    to : Path
    encode : callable
        Takes the stream to encode into.

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
