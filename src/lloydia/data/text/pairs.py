"""Streams of numbers that are read as points: x y x y."""

from __future__ import annotations

import re
from array import array
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from lloydia.data.columns import Columns, DataError
from lloydia.data.numbers import Grammar
from lloydia.data.text.finite import check_finite
from lloydia.data.text.records import BLANKS, decoded
from lloydia.spelling import option


def read_pairs(
    stream: BinaryIO,
    where: str,
    grammar: Grammar = Grammar(),  # noqa: B008 - frozen
) -> NDArray[np.float64]:
    """Read a stream of numbers as points x y x y, independently of line breaks.

    Parameters
    ----------
    stream : binary file
        Numbers are separated by white space, semicolons, and commas that are not part of a number;
        lines that start with ``#`` are skipped.
    where : str
        The name of the stream in errors.
    grammar : Grammar

    Returns
    -------
    ndarray of float64, shape (n, 2)

    Raises
    ------
    DataError
        If the stream is empty, holds an odd count of numbers, or holds anything but finite numbers.
    """
    values, lines = array("d"), array("q")
    cuts = ";" if "," in (grammar.decimal, grammar.thousands) else ";,"
    try:
        with decoded(stream) as text:
            for number, line in enumerate(text, 1):
                if line.lstrip().startswith("#"):
                    continue
                for cut in cuts:
                    line = line.replace(cut, " ")
                cells = (
                    line.split() if line.isascii() else re.split(f"[{BLANKS}]+", line.strip(BLANKS))
                )
                lines.extend([number] * len(cells))
                before = len(values)
                if (bad := grammar.extend(values, cells)) is not None:
                    at = before + bad
                    raise DataError(
                        f"{where}: pair {at // 2 + 1} (line {number}), {'xy'[at % 2]} "
                        f"{grammar.complaint(cells[bad])}."
                    )
    except UnicodeDecodeError:
        raise DataError(f"{where} is not UTF-8 text; save it as UTF-8.") from None
    if not values:
        raise DataError(f"{where} is empty.")
    if len(values) % 2:
        raise DataError(
            f"{where} holds {len(values)} numbers, an odd count; {option('pairs', True)} reads "
            "them as x y x y."
        )
    X = np.frombuffer(values, dtype=np.float64).reshape(-1, 2)
    check_finite(X, Columns((0, 1), ("x", "y")), where, lines[::2])
    return X
