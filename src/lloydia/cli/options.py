"""Options that several commands share, as dataclasses that the parser fills."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Group, Parameter
from cyclopts.validators import Number

from lloydia.data.numbers import real_number, whole_number

if TYPE_CHECKING:
    pass

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
