"""Options that several commands share, as dataclasses that the parser fills."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Group, Parameter
from cyclopts.validators import Number

from lloydia.data.numbers import real_number, whole_number

if TYPE_CHECKING:
    from lloydia.data.files import Table

READING = Group("Reading", sort_key=1)
METHOD = Group("Method", sort_key=2)
OUTPUT = Group("Output", sort_key=3)


def whole(_: type, tokens: Sequence[Any]) -> int:
    """Convert the text of an option to an int: the parser's own conversion rounds 2.5 to 2."""
    return whole_number(tokens[0].value)


def real(_: type, tokens: Sequence[Any]) -> float:
    """Convert the text of an option to a float: the parser's own conversion takes 1_0 and nan."""
    return real_number(tokens[0].value)


def whole_or_auto(type_: type, tokens: Sequence[Any]) -> int | Literal["auto"]:
    """Convert the text of an option to a positive int, or leave it as "auto"."""
    if tokens[0].value == "auto":
        return "auto"
    if (value := whole(type_, tokens)) < 1:
        raise ValueError(f"{value} is not positive")
    return value


def file_name(_: type, tokens: Sequence[Any]) -> Path:
    """Convert the text of an option to a path: the parser's own takes "" for the folder here."""
    if not tokens[0].value:
        raise ValueError("an empty file name")
    return Path(tokens[0].value)


def device_name(_: type, tokens: Sequence[Any]) -> str:
    """Convert the text of an option to the name of a device, before anything is read for it."""
    from lloydia.backends.device_names import check_device

    check_device(tokens[0].value)
    return tokens[0].value


FILE = Parameter(converter=file_name)
# The parser completes file names for Path, and converts to the first of the types, which keeps
# the user's words.
FileName = str | Path
# As for files: the choices are for completion, and the converter takes more.
Device = Annotated[
    Literal["auto", "cpu", "cuda", "cuda:all"] | str,
    Parameter(
        converter=device_name,
        show_choices=False,
        help="Where to compute: auto, cpu, cuda, cuda:N, cuda:N,M or cuda:all.",
    ),
]
OneDevice = Annotated[
    Literal["auto", "cpu", "cuda"] | str,
    Parameter(
        converter=device_name,
        show_choices=False,
        help="Where to compute: auto, cpu, cuda or cuda:N.",
    ),
]
POSITIVE = Parameter(converter=whole, validator=Number(gte=1))
SEED = Parameter(converter=whole, validator=Number(gte=0, lte=2**32 - 1))

Json = Annotated[
    bool,
    Parameter(
        group=OUTPUT,
        negative="",
        show_default=False,
        help="Print one JSON object instead of a text.",
    ),
]
Data = Annotated[
    FileName,
    Parameter(
        help="Text (.csv, .tsv, .txt; also .gz, .bz2, .xz, .zst), .npy, .npz, .parquet, .feather "
        "or .arrow; - is standard input."
    ),
]

TableOrFolder = Annotated[
    FileName,
    Parameter(
        help="Text (.csv, .tsv, .txt; also .gz, .bz2, .xz, .zst), .npy, .npz, .parquet, .feather, "
        ".arrow, .zarr or .h5, or a folder: all .parquet files in it, read as one table; - is "
        "standard input."
    ),
]


@Parameter(name="*", group=READING)
@dataclass(frozen=True)
class Reading:
    """How DATA is read."""

    columns: Annotated[
        str | None,
        Parameter(
            help="Columns to use, by name, number (from 1) or range: a,b,3-5. A name with a comma "
            "stands in double quotes."
        ),
    ] = None
    header: Annotated[
        bool | None, Parameter(help="Whether the first row is a header; found out by default.")
    ] = None
    pairs: Annotated[
        bool,
        Parameter(
            negative="", show_default=False, help="Read a stream of numbers as consecutive x y."
        ),
    ] = False
    decimal: Annotated[
        str, Parameter(help="What divides the fraction of numbers in a text: . or a comma.")
    ] = "."
    thousands: Annotated[
        str | None,
        Parameter(help="What divides thousands in a text: a comma, a point, a blank or '."),
    ] = None

    def table(
        self,
        data: FileName,
        *,
        dtype: str | None = None,
        names: Sequence[str] | None = None,
        sparse: bool = False,
        json: bool = False,
    ) -> Table:
        """Read DATA; `names` are its columns, in that order, where it has a header.

        A sparse matrix gets its zeros unless `sparse`.  With `json` no progress is shown.
        """
        from lloydia.cli.progress import progress
        from lloydia.data.files import read_table

        with progress(f"reading {data}", json=json):
            table = read_table(
                data,
                # A stream of pairs has no columns that names could choose.
                columns=names if self.columns is None and not self.pairs else self.columns,
                header=self.header,
                pairs=self.pairs,
                dtype=dtype,
                decimal=self.decimal,
                thousands=self.thousands,
                sparse=sparse,
            )
        if self.columns is None and names is None:
            _warn_of_unnamed(table)
        if self.columns is not None and names is not None and table.names is not None:
            return _in_order_of(names, table)
        return table


def _in_order_of(names: Sequence[str], table: Table) -> Table:
    import numpy as np

    from lloydia.data.columns import Columns, in_order_of
    from lloydia.data.files import Table

    order = in_order_of(names, table.columns, table.where)
    places = tuple(table.columns.places[j] for j in order)
    X = np.ascontiguousarray(table.X[:, order])
    return Table(X, Columns(places, tuple(names)), table.where)


def _warn_of_unnamed(table: Table) -> None:
    """Warn of columns without a name under a header: most often they are row numbers."""
    from lloydia.data.columns import spans
    from lloydia.data.proposals import proposed

    names = table.names or ()
    named = [j for j, name in enumerate(names) if name]
    if unnamed := [j for j, name in enumerate(names) if not name]:
        one = len(unnamed) == 1
        what = "column {} has no name in the header and is used as a feature; leave it out"
        many = "columns {} have no name in the header and are used as features; leave them out"
        how = f" with {proposed(named, names)}" if named else ""
        text = (what if one else many).format(spans(unnamed))
        warnings.warn(f"{table.where}: {text}{how}.", stacklevel=2)
