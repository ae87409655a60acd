"""A second reading of a table, to write its rows with their clusters.

A fit keeps only the numbers of a table.  When the clusters are written, all columns are read a
second time, in blocks.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from lloydia.data.columns import DataError
from lloydia.data.formats.arrow_files import EXTENSIONS as ARROW
from lloydia.data.formats.opening import STANDARD_INPUT
from lloydia.data.formats.stamps import Stamp
from lloydia.data.labelled.original import Labels, Original, stamp
from lloydia.data.numbers import Grammar

__all__ = ["Labels", "Original", "columns_but", "endings", "original", "stamp"]

NO_NAMES = (".npy", ".npz", ".zarr", ".h5", ".hdf5")


def endings(data: str, option: str) -> tuple[str, ...]:
    """Return the extensions that the table of `data` can be written with.

    Parameters
    ----------
    data : str
    option : str
        The option that needs the table, for errors.

    Raises
    ------
    DataError
        If the table cannot be read a second time, or can hold only numbers.
    """
    path = Path(data)
    if data in STANDARD_INPUT or _is_pipe(path):
        raise DataError(
            f"{option} reads the table a second time, and a pipe can be read once: write it to a "
            "file, and give that."
        )
    suffix = path.suffix.lower()
    if suffix in NO_NAMES:
        raise DataError(
            f"{option} is for text, Parquet and Arrow files, and {data} is an array without other "
            "columns: leave it out."
        )
    if _is_arrow(path):
        return (".parquet", ".arrow", ".feather")
    return (".csv", ".tsv", ".txt")


def original(data: str, before: Stamp, header: bool, grammar: Grammar) -> Original:
    """Open a table to read it again.

    Parameters
    ----------
    data : str
        A file, or a folder of Parquet files.
    before : Stamp
        What :func:`stamp` returned before the first reading.
    header : bool
        Whether the first row of a text is a header.
    grammar : Grammar
        How the numbers of a text are written.
    """
    if _is_arrow(Path(data)):
        from lloydia.data.labelled.arrow import ArrowOriginal

        return ArrowOriginal(Path(data), before)
    from lloydia.data.labelled.text import TextOriginal

    return TextOriginal(Path(data), before, header, grammar)


def columns_but(data: str, id_column: str) -> Sequence[str]:
    """Return the names of all columns of a Parquet table that may be features, without the ids.

    Raises
    ------
    DataError
        If there is no such column of ids, or no other column.
    """
    from lloydia.data.arrow import all_but_id
    from lloydia.data.labelled.arrow import ArrowOriginal

    return (
        all_but_id(ArrowOriginal(Path(data), stamp(Path(data))).schema, None, id_column, data) or ()
    )


def _is_pipe(path: Path) -> bool:
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):  # opening the file later raises the error
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _is_arrow(path: Path) -> bool:
    return path.suffix.lower() in (".parquet", *ARROW) or path.is_dir()
