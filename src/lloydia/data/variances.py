"""The shares of a table's columns in its variance."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from lloydia.data.columns import Columns
from lloydia.spelling import option

__all__ = ["DOMINANT", "Variances", "warn_of_dominant", "warning_of_blocks"]

# A column with a larger share of the variance decides the clusters almost alone.
DOMINANT = 0.95

# The number of values that are summed at a time.
PORTION = 1 << 20


class Variances:
    """The variance of each column, computed from blocks of rows.

    Parameters
    ----------
    n_features : int

    Attributes
    ----------
    n_samples : int
        Number of rows so far.
    sums, squares : ndarray of shape (n_features,)
        Sums and sums of squares of the differences from the first row, so that an offset common to
        all rows costs no precision.
    """

    def __init__(self, n_features: int) -> None:
        self.n_samples = 0
        self.sums, self.squares = np.zeros(n_features), np.zeros(n_features)
        self.first = np.zeros(n_features)

    def add(self, rows: Any) -> None:
        """Add rows: an array or a CSR matrix of shape (m, n_features)."""
        with np.errstate(over="ignore", invalid="ignore"):
            if sp.issparse(rows):
                places, values = rows.indices, rows.data.astype(np.float64)
                size = len(self.sums)
                self.sums += np.bincount(places, values, size)
                self.squares += np.bincount(places, values * values, size)
            elif len(rows):
                if self.n_samples == 0:
                    self.first = rows[0].astype(np.float64)
                step = max(PORTION // rows.shape[1], 1)
                for start in range(0, len(rows), step):
                    apart = rows[start : start + step] - self.first
                    self.sums += apart.sum(axis=0)
                    self.squares += np.einsum("ij,ij->j", apart, apart)
        self.n_samples += rows.shape[0]

    def dominant(self) -> tuple[int, float] | None:
        """Return the column that has more than DOMINANT of the variance, and its share, or None."""
        if len(self.sums) == 1:
            return None
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            each = np.maximum(self.squares - self.sums * self.sums / self.n_samples, 0.0)
            shares = each / each.sum()
        column = int(np.argmax(shares))
        return (column, float(shares[column])) if shares[column] > DOMINANT else None


def warn_of_dominant(rows: Any, columns: Columns, where: str) -> None:
    """Warn of a column that decides the clusters almost alone.

    Parameters
    ----------
    rows : ndarray or CSR matrix of shape (n, d), or Variances
        The rows, or the variances of rows that are not in memory.
    columns : Columns
    where : str
        The name of the table in the warning.

    Warns
    -----
    UserWarning
        If a column has more than DOMINANT of the variance.
    """
    if not isinstance(rows, Variances):
        found = Variances(rows.shape[1])
        found.add(rows)
    else:
        found = rows
    if (dominant := found.dominant()) is None:
        return
    column, share = dominant
    percent = min(round(100 * share, 1), 99.9)
    warnings.warn(
        f"{where}: {columns.label(column)} has {percent} % of the variance of all columns, so it "
        "decides the clusters almost alone: divide each column by its standard deviation first, or "
        f"leave it out with {option('columns')}.",
        stacklevel=2,
    )


def warning_of_blocks(
    columns: Columns, shape: tuple[int, int], where: str
) -> Callable[[NDArray[Any]], None]:
    """Return a function of blocks that warns of a dominant column after the last block."""
    found = Variances(shape[1])

    def look(block: NDArray[Any]) -> None:
        found.add(block)
        if found.n_samples == shape[0]:
            warn_of_dominant(found, columns, where)

    return look
