"""Files that are written under a temporary name and renamed when they are complete.

The process that writes a temporary file locks it (flock).  The system releases the lock when the
process ends, on this machine or on another one that shares the folder.  So a temporary file without
a lock is left over from a dead process, and the next process that writes the same output removes
it.
"""

from __future__ import annotations

import errno
import glob
import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from lloydia.data.columns import DataError
from lloydia.data.outputs.seals import refuse_others, seal

try:
    import fcntl
except ImportError:  # on Windows, files are not locked, and left-over files are not removed
    fcntl = None  # type: ignore[assignment]

# The digits in the name of a temporary file, and the largest number of bytes in a file name.
HEX_DIGITS = 8
NAME_BYTES = 255

# The errors of a disk that is full, broken or read-only.
DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS)


def target_of(path: Path) -> Path:
    """Return the file that is written for a path: the target of its links.

    For links in a circle the result is one of them, and opening it raises the error.
    """
    return Path(os.path.realpath(path))


class Renames(ExitStack):
    """A context in which outputs have temporary names; at its end all of them are renamed.

    Parameters
    ----------
    force : bool
        Whether existing files are replaced in any case.  Otherwise, nothing is renamed if one
        output would replace a file that :func:`refuse_others` refuses, because the user may have
        written that file while the outputs were computed.
    """

    def __init__(self, *, force: bool = True) -> None:
        super().__init__()
        self.force = force
        self.paths: list[Path] = []

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> bool:
        if kind is None and not self.force:
            try:
                for path in self.paths:
                    refuse_others(path)
            except Exception:
                super().__exit__(*sys.exc_info())
                raise
        return bool(super().__exit__(kind, error, trace))


@contextmanager
def writing(path: Path, renames: Renames) -> Iterator[Path]:
    """Yield a temporary name to write at once; it is renamed when `renames` closes.

    Raises
    ------
    OSError
        If the file cannot be written; the error names `path`.
    """
    with naming(path):
        to = renames.enter_context(replacing(path))
        renames.paths.append(path)
        yield to


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Change OSErrors from within so that they name `path`, the file that is being written.

    A library may have replaced the error of the disk by one of its own; the reason is then taken
    from the error of the disk.  A DataError is not changed, because it names an input.

    Raises
    ------
    OSError
        As within, with `path` as its file.
    """
    try:
        yield
    except DataError:
        raise
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


@contextmanager
def temporary(path: Path) -> Iterator[Path]:
    """Yield the name of a new file in the folder of `path`, with its extension; finally remove it.

    Temporary files that dead processes left are removed as well.
    """
    target = target_of(path)
    with naming(path):
        if target.is_symlink():
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        _remove_left_over(target)
        stream = _locked(target)
    to = Path(stream.name)
    try:
        yield to
    finally:
        stream.close()
        # An error here would hide an earlier one.
        with suppress(OSError):
            to.unlink()


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
        # Another process may have removed the file before it was locked.
        if os.path.exists(stream.name):
            return stream
        stream.close()


def _remove_left_over(target: Path) -> None:
    if fcntl is None:
        return
    digits = "0" * HEX_DIGITS
    before, after = map(glob.escape, _named(target.stem, digits, target.suffix).rsplit(digits, 1))
    for left in target.parent.glob(before + "[0-9a-f]" * HEX_DIGITS + after):
        # Skip files that are locked, already removed, or owned by another user.
        with suppress(OSError), left.open("r+b") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            left.unlink()


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary file in the folder of `path`; finally rename it, or remove it on failure.

    The temporary name keeps the extension.  Several of these contexts can be nested, so that
    nothing is renamed before all outputs are complete.

    Raises
    ------
    OSError
        If the file cannot be created or renamed.
    """
    with temporary(path) as to:
        yield to
        seal(to)
        with naming(path):
            os.replace(to, target_of(path))
