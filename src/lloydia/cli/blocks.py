"""Tables that commands read by blocks, because they are told how much memory there is."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from cyclopts import Parameter

from lloydia.cli.options import READING, FileName
from lloydia.cli.reading import Reading

if TYPE_CHECKING:
    from lloydia.data.chunks import Chunks
    from lloydia.data.files import Table

Memory = Annotated[
    str | None,
    Parameter(
        group=READING,
        # -1GB is no option: it is refused for what it is.
        allow_leading_hyphen=True,
        help="Read DATA in blocks, with the same result, and use at most this much memory: 2GB. "
        "Folders of .parquet files, .zarr and .h5 are always read in blocks, by default within "
        "half of the free memory.",
    ),
]

Spill = Annotated[
    Path | None,
    Parameter(
        group=READING,
        help="A folder for decoded blocks that do not fit into memory: they are read from there "
        "again, which is faster than from DATA. It needs as much disk space as all rows would "
        "need memory.",
    ),
]

ALWAYS = (".zarr", ".h5", ".hdf5")
KNOWN = (*ALWAYS, ".npy", ".parquet")
TEXTS = (".csv", ".tsv", ".txt")


def by_blocks(data: FileName, memory: str | None) -> bool:
    """Return whether DATA is to be read by blocks."""
    path = Path(data)
    by_kind = path.suffix.lower() in ALWAYS or (data != "" and path.is_dir())
    return memory is not None or by_kind


def read_by_blocks(
    reading: Reading,
    data: FileName,
    memory: str | None,
    *,
    dtype: str | None = None,
    names: Sequence[str] | None = None,
    spill: Path | None = None,
) -> tuple[Chunks, Table]:
    """Open DATA; `names` are its columns, in that order, where it has names.

    Parameters
    ----------
    reading : Reading
    data : str
    memory : str or None
    dtype : str, optional
    names : sequence of str, optional
    spill : Path, optional
        As for :func:`lloydia.chunks`.

    Returns
    -------
    Chunks
    Table
        With them as its rows.

    Raises
    ------
    ValueError
        An option is for texts, or as for :func:`lloydia.chunks`.
    """
    from lloydia.data.chunks import chunks
    from lloydia.data.columns import in_order_of
    from lloydia.data.files import Table
    from lloydia.data.formats.compressed import EXTENSIONS

    if Path(data).suffix.lower() in (*TEXTS, *EXTENSIONS) and not Path(data).is_dir():
        raise ValueError(
            f"{data} is text, which is not read by blocks: leave out --memory, or make a .parquet "
            "of it."
        )
    if reading.pairs or reading.header is not None:
        raise ValueError(
            "--pairs and --header are for text, which is not read by blocks: leave them out."
        )
    if reading.decimal != "." or reading.thousands is not None:
        raise ValueError(
            "--decimal and --thousands are for text, which is not read by blocks: leave them out."
        )
    path = Path(data)
    if path.suffix.lower() not in KNOWN and path.is_file():
        raise ValueError(
            f"{data} is not read by blocks: leave out --memory, or make a .npy or .parquet file of "
            "it."
        )
    if spill is not None and not spill.is_dir():
        raise ValueError(f"--spill {spill} is not a folder: make it, or name another.")
    columns: str | Sequence[str] | None = reading.columns
    # Arrays have no names: they are read as a whole.
    if columns is None and names is not None and path.suffix.lower() not in (".npy", *ALWAYS):
        columns = names
    elif columns is None and reading.id is not None:
        from lloydia.data.labelled import columns_but

        columns = columns_but(str(data), reading.id)
    source = chunks(data, columns=columns, memory=memory, spill=spill)
    if reading.columns is not None and names is not None and source.columns.names is not None:
        in_order_of(names, source.columns, str(data))
        source = chunks(data, columns=names, memory=memory, spill=spill)
    source = source if dtype is None else source.astype(dtype)
    # They have what commands ask of rows: a shape and a type.
    return source, Table(cast(Any, source), source.columns, str(data))


def announce(plan: object) -> None:
    """Say how much memory the command is going to take, and what for."""
    print(f"lloydia: {plan}.", file=sys.stderr)
