"""Files that are written under a temporary name and renamed when they are whole.

A temporary file is locked (flock) by the process that writes it.  The lock goes with the process,
however that ends, on this machine or on another that shares the folder; so a file without one is
left over, and who writes the same output next removes it.
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
except ImportError:  # Windows: nothing is locked there, and nothing that is left over removed
    fcntl = None  # type: ignore[assignment]

# Of the name of a temporary file; and the bytes that file systems allow a name.
HEX_DIGITS = 8
NAME_BYTES = 255

# What a disk answers that is full, broken or read-only.
DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS)


def target_of(path: Path) -> Path:
    """Return the file that is written for a path: what links lead to.

    Of links that lead in a circle it is one of them, and the system says what is wrong with it.
    """
    return Path(os.path.realpath(path))


class Renames(ExitStack):
    """Outputs under temporary names, which are all renamed when it closes.

    Parameters
    ----------
    force : bool
        Whether a file that is there by then is replaced whoever wrote it.  Otherwise nothing is
        renamed if one output would replace a file that :func:`refuse_others` refuses: the user may
        have written it while the outputs were computed.
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
        The file cannot be written; the error names `path`.
    """
    with naming(path):
        to = renames.enter_context(replacing(path))
        renames.paths.append(path)
        yield to


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Make an OSError from within name `path`, the file that was being written.

    A library may have put an error of its own in the place of what the disk answered: the reason is
    what the disk answered.  A DataError stays as it is, since it names an input.

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
    """Yield the name of a new file beside `path`, with its extension; at the end remove it.

    What dead processes left of theirs goes too.
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
        # An error here would hide the one that is under way.
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
    with temporary(path) as to:
        yield to
        seal(to)
        with naming(path):
            os.replace(to, target_of(path))
