"""Reading pictures for commands, with the option that lifts the limits."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from typing import Annotated, Literal

from cyclopts import Parameter

from lloydia.cli.options import READING

__all__ = ["AllowHuge", "decoders_silent"]

STANDARD_ERROR = 2

# The choices are for completion; capitals make no difference, and other names are refused later.
SpaceName = Literal["RGB", "sRGB", "linear", "HSV", "HSL", "HSI", "CMY", "Lab", "Oklab"] | str

AllowHuge = Annotated[
    bool,
    Parameter(
        group=READING,
        negative="",
        show_default=False,
        help="Read images and animations that are larger than the limits that protect the memory.",
    ),
]


@contextmanager
def decoders_silent() -> Iterator[None]:
    """Keep what decoders write about damaged files away from standard error.

    Pillow logs it.  libtiff writes to the file descriptor; what Python writes within goes to a copy
    of that.
    """
    logging.getLogger("PIL").addHandler(logging.NullHandler())
    try:
        direct = sys.stderr.fileno() == STANDARD_ERROR
        copy = os.dup(STANDARD_ERROR) if direct else -1
    except (OSError, ValueError, AttributeError):  # standard error is closed, or no file
        direct = False
    if not direct:
        yield
        return
    with open(
        copy, "w", buffering=1, encoding=sys.stderr.encoding, errors="backslashreplace"
    ) as stream:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, STANDARD_ERROR)
        os.close(nowhere)
        try:
            with redirect_stderr(stream):
                yield
        finally:
            os.dup2(copy, STANDARD_ERROR)
