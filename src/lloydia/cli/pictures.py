"""Reading pictures for commands, with the option that lifts the limits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

from cyclopts import Parameter

from lloydia.cli.options import READING

__all__ = ["AllowHuge", "spelled"]

AllowHuge = Annotated[
    bool,
    Parameter(
        group=READING,
        negative="",
        show_default=False,
        help="Read images and animations beyond the limits that guard the memory.",
    ),
]


@contextmanager
def spelled() -> Iterator[None]:
    """Have an error about a picture that is too large name the option, not the parameter.

    Raises
    ------
    DataError
        As within.
    """
    from lloydia.data.columns import DataError
    from lloydia.images.decoding import HugeImageError

    try:
        yield
    except HugeImageError as error:
        raise DataError(f"{error.args[0]}; --allow-huge reads it.") from None
