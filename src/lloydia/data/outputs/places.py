"""Checks of the places of outputs, before any work is done for them."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from lloydia.data.columns import DataError
from lloydia.data.formats.opening import STANDARD_INPUT
from lloydia.data.formats.parquet import pyarrow_parquet
from lloydia.data.outputs.seals import refuse_others
from lloydia.data.outputs.temporary import target_of, temporary

__all__ = ["check_output"]


def check_output(
    path: Path, known: Sequence[str], *, others: Sequence[Path] = (), force: bool = True
) -> None:
    """Refuse a path that could not be written, before any work is done for it.

    Parameters
    ----------
    path : Path
        The file to write.
    known : sequence of str
        The extensions, with the dot, that the output can have.
    others : sequence of Path
        Inputs and other outputs of the same command.  The output must not overwrite them, nor
        become a part of a folder of Parquet files among them.
    force : bool
        Whether an existing file is replaced in any case, or only if Lloydia wrote it.

    Raises
    ------
    DataError
        If the extension is unknown, if the folder does not exist or cannot be written to, if the
        path is not a plain file, if it is one of the others or would be read with them, or, without
        `force`, if Lloydia did not write the existing file.
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
    if not force:
        refuse_others(path)


def _check_place(path: Path, others: Sequence[Path]) -> None:
    """Refuse a path that is in use, or where no file can be created."""
    if any(_same(path, other) for other in others):
        raise DataError(
            f"cannot write {path}: the command uses that file already; name another file."
        )
    for folder in filter(Path.is_dir, others):
        if _joins(path, folder):
            raise DataError(
                f"cannot write {path}: it would become a part of the table that is read from "
                f"{folder}; name a file in another folder, or of another format."
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
    with temporary(path):
        pass


def _same(path: Path, other: Path) -> bool:
    """Return whether two names are the same file, through symbolic or hard links."""
    try:
        return target_of(path) == target_of(other) or os.path.samefile(path, other)
    except OSError:  # one of them does not exist
        return False


def _joins(path: Path, folder: Path) -> bool:
    """Return whether an output would be read as one of a folder's Parquet files."""
    from lloydia.data.chunks.parquet import is_read

    root = target_of(folder)
    # A link is read in its own folder; its target may be in the folder as well.
    places = (target_of(path.parent) / path.name, target_of(path))
    inside = any(place.is_relative_to(root) and is_read(place, root) for place in places)
    return inside and any(folder.rglob("*.parquet"))


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower().rstrip(".")
