"""Options that several commands share, as dataclasses that the parser fills."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Group, Parameter
from cyclopts.validators import Number

from lloydia.data.numbers import real_number, whole_number

if TYPE_CHECKING:
    from lloydia.data.files import Table
    from lloydia.data.formats.stamps import Stamp
    from lloydia.data.labelled import Labels, Original
    from lloydia.data.outputs import Renames

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


def require_device(device: str) -> None:
    """Refuse a GPU that is not there, or cannot be used, before anything is read for it.

    Raises
    ------
    ValueError, ImportError
        As :func:`lloydia.backends.put`.
    """
    if not device.startswith("cuda"):
        return
    import numpy as np

    from lloydia.backends import put

    several = device.removeprefix("cuda:").split(",")
    names = [f"cuda:{n}" for n in several] if len(several) > 1 else [device.removesuffix(":all")]
    for name in names:
        put(name, np.zeros((1, 1), dtype=np.float32))


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

# Labels that are written at a time.
SLICE = 1 << 20

Threads = Annotated[
    int | None,
    POSITIVE,
    Parameter(help="Number of threads; all cores by default. The result does not depend on it."),
]

Json = Annotated[
    bool,
    Parameter(
        group=OUTPUT,
        negative="",
        show_default=False,
        help="Print one JSON object instead of text.",
    ),
]
Force = Annotated[
    bool,
    Parameter(
        group=OUTPUT,
        negative="",
        show_default=False,
        help="Also replace files that Lloydia did not write. Files that it wrote, other than "
        "checkpoints, are always replaced.",
    ),
]
Data = Annotated[
    FileName,
    Parameter(
        help="A table: text (.csv, .tsv, .txt; also .gz, .bz2, .xz, .zst), .npy, .npz, .parquet, "
        ".feather or .arrow; - is standard input."
    ),
]

TableOrFolder = Annotated[
    FileName,
    Parameter(
        help="A table: text (.csv, .tsv, .txt; also .gz, .bz2, .xz, .zst), .npy, .npz, .parquet, "
        ".feather, .arrow, .zarr or .h5, or a folder whose .parquet files are read as one table; "
        "- is standard input."
    ),
]


@Parameter(name="*", group=READING)
@dataclass(frozen=True)
class Reading:
    """How DATA is read."""

    columns: Annotated[
        str | None,
        Parameter(
            help="Columns to use as features: names, numbers (from 1) or ranges, with commas "
            "between them: a,b,3-5. Put double quotes around a name that has a comma."
        ),
    ] = None
    id: Annotated[
        str | None,
        Parameter(
            help="The column with the ids of the rows, by name or number, of any type. It is not "
            "a feature; files of labels have it before the label."
        ),
    ] = None
    header: Annotated[
        bool | None, Parameter(help="Whether the first row is a header; detected by default.")
    ] = None
    pairs: Annotated[
        bool,
        Parameter(
            negative="",
            show_default=False,
            help="Read all numbers of the file, one after the other, as points: x y x y.",
        ),
    ] = False
    decimal: Annotated[
        str, Parameter(help="The decimal mark in a text file: a point or a comma.")
    ] = "."
    thousands: Annotated[
        str | None,
        Parameter(
            help="The mark between thousands in a text file: a comma, a point, a blank or '."
        ),
    ] = None

    def original(self, data: FileName, before: Stamp, table: Table) -> Original:
        """Return DATA to be read once more, for what stands beside the features.

        Parameters
        ----------
        data : str
        before : Stamp
            Of DATA, before `table` was read from it.
        table : Table

        Raises
        ------
        DataError
            There is no such column of ids, or it is one of the features.
        """
        from lloydia.data.columns import name_column
        from lloydia.data.labelled import original
        from lloydia.data.numbers import Grammar

        grammar = Grammar(self.decimal, self.thousands)
        found = original(str(data), before, table.names is not None, grammar)
        if self.id is not None and (place := found.place(self.id)) in table.columns.places:
            what = name_column(place, found.id_name(self.id))
            raise ValueError(
                f"{data}: {what} holds the ids, and is among the columns that are clustered: leave "
                "it out of --columns, or leave out --id."
            )
        return found

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
                id_column=self.id,
            )
        if self.columns is not None and names is not None and table.names is not None:
            return _in_order_of(names, table)
        return table


@Parameter(name="*", group=OUTPUT)
@dataclass(frozen=True)
class Labelled:
    """Files that say which cluster each row belongs to."""

    labels: Annotated[
        Path | None,
        FILE,
        Parameter(
            help="File for the cluster of each row, after its id with --id: .npy, .csv, .tsv, "
            ".txt, .parquet."
        ),
    ] = None
    out: Annotated[
        Path | None,
        FILE,
        Parameter(
            help="File for the whole table with the cluster of each row as its last column, in "
            "the format of DATA: text (all else unchanged), .parquet, .arrow or .feather."
        ),
    ] = None
    cluster_name: Annotated[str, Parameter(help="Name of the column of clusters in --out.")] = (
        "cluster"
    )

    def check(self, data: FileName, reading: Reading, used: list[Path], force: bool) -> None:
        """Refuse an output that could not be written, before any work is done; add them to `used`.

        Raises
        ------
        ValueError
            It could not be written, or what is asked for has no place in it.
        """
        from lloydia.data.labelled import endings
        from lloydia.data.outputs import TABLES, check_output

        if reading.id is not None:
            endings(str(data), "--id")
            if self.labels is not None and self.labels.suffix.lower() == ".npy":
                raise ValueError(
                    f"cannot write {self.labels}: a .npy file has no column of ids; name a .csv, "
                    ".tsv, .txt or .parquet, or leave out --id."
                )
        for path, ends in ((self.labels, TABLES), (self.out, None)):
            if path is not None:
                known = ends or endings(str(data), "--out")
                check_output(path, known, others=used, force=force)
                used.append(path)

    def stamp(self, data: FileName, reading: Reading) -> Stamp | None:
        """Return the stamp of DATA before it is read, if it will be read once more."""
        from lloydia.data.labelled import stamp

        return stamp(Path(data)) if reading.id is not None or self.out is not None else None

    def original(
        self, data: FileName, before: Stamp | None, reading: Reading, table: Table
    ) -> Original | None:
        """Return DATA to be read once more, if that is needed, before any work is done.

        Raises
        ------
        ValueError
            It has no such column of ids, or has one named as that of the clusters.
        """
        if before is None:
            return None
        original = reading.original(data, before, table)
        if self.out is not None:
            original.check_name(self.cluster_name)
            original.check_ending(self.out)
        return original

    def write(
        self, labels: Labels, original: Original | None, id_column: str | None, renames: Renames
    ) -> None:
        """Write the files under temporary names; they are renamed when `renames` closes."""
        from lloydia.data.chunks.writing import put_blocks
        from lloydia.data.outputs import writing

        if self.labels is not None:
            with writing(self.labels, renames) as to:
                suffix = self.labels.suffix.lower()
                if id_column is not None and original is not None:
                    original.write_ids(to, labels, id_column, suffix)
                else:
                    slices = (labels[i : i + SLICE] for i in range(0, len(labels), SLICE))
                    put_blocks(to, slices, len(labels), ["label"], suffix)
        if self.out is not None and original is not None:
            with writing(self.out, renames) as to:
                original.write(to, labels, self.cluster_name, self.out.suffix.lower())


def _in_order_of(names: Sequence[str], table: Table) -> Table:
    import numpy as np

    from lloydia.data.columns import Columns, in_order_of
    from lloydia.data.files import Table

    order = in_order_of(names, table.columns, table.where)
    places = tuple(table.columns.places[j] for j in order)
    X = np.ascontiguousarray(table.X[:, order])
    return Table(X, Columns(places, tuple(names)), table.where)
