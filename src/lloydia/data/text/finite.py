"""The check that all values of a table are finite."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lloydia.data.columns import Columns, DataError


def check_finite(
    X: NDArray[np.floating], columns: Columns, where: str, lines: Sequence[int] | None = None
) -> None:
    """Refuse NaN and infinity.

    Parameters
    ----------
    X : ndarray of floats, shape (n, d)
    columns : Columns
        The d columns.
    where : str
        The name of the table in the error.
    lines : sequence of int or None
        For a text, the line of each row, counted from 1.  Texts with NaN and infinity have been
        refused before, so a value that is not finite is too large for float64.

    Raises
    ------
    DataError
        If a value is not finite; the message names the first such row and column.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        # A finite sum proves that every term is finite, at a fraction of the memory of isfinite(X).
        if math.isfinite(X.sum(dtype=np.float64)):
            return
    bad = np.flatnonzero(~np.isfinite(X).ravel())
    if len(bad) == 0:
        return
    row, j = divmod(int(bad[0]), X.shape[1])
    if lines is not None:
        raise DataError(
            f"{where}: row {row + 1} (line {lines[row]}), {columns.label(j)} is infinite, as it is "
            "too large for float64; rescale the data."
        )
    what = "NaN" if np.isnan(X[row, j]) else "infinite"
    raise DataError(
        f"{where}: row {row + 1}, {columns.label(j)} is {what}; remove the row or fill it in."
    )
