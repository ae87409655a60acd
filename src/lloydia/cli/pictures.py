"""Reading pictures for commands, with the option that lifts the limits."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from typing import Annotated

from cyclopts import Parameter

from lloydia.cli.options import READING

__all__ = ["AllowHuge", "reading"]

STANDARD_ERROR = 2

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
def reading() -> Iterator[None]:
    """Have an error about a picture be one sentence that names options, not parameters.

    Raises
    ------
    DataError
        As within.
    """
    from lloydia.data.columns import DataError
    from lloydia.images.decoding import HugeImageError

    try:
        with _decoders_silent():
            yield
    except HugeImageError as error:
        raise DataError(f"{error.args[0]}; --allow-huge reads it.") from None


@contextmanager
def _decoders_silent() -> Iterator[None]:
    """Keep what libtiff writes about damaged files away from standard error.

    It writes to the file descriptor, where this process has nothing but standard error; what
    Python writes within goes to a copy of it.
    """
    try:
        direct = sys.stderr.fileno() == STANDARD_ERROR
        copy = os.dup(STANDARD_ERROR) if direct else -1
    except (OSError, ValueError, AttributeError):  # standard error is closed, or no file
        direct = False
    if not direct:
        yield
        return
    with open(copy, "w", buffering=1, encoding=sys.stderr.encoding) as stream:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, STANDARD_ERROR)
        os.close(nowhere)
        try:
            with redirect_stderr(stream):
                yield
        finally:
            os.dup2(copy, STANDARD_ERROR)
