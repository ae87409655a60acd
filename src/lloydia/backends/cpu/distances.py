"""Canonical distances: of each row to its own centre, and of each row to all."""

from __future__ import annotations

from lloydia.backends.cpu.compiled import floats, kernel
from lloydia.backends.cpu.rows import distance, load
from lloydia.backends.cpu.scan import canonical_row

__all__ = ["own_distances", "squared_distances"]


@kernel
def own_distances(X, start, stop, labels, centers, D):
    """Write D of rows `start` to `stop` to the centre of their label; `centers` is float64."""
    x = floats(centers.shape[1])
    for i in range(start, stop):
        load(X, i, x)
        D[i] = distance(x, centers[labels[i]])


@kernel
def squared_distances(X, start, stop, columns, D, at):
    """Write D of rows `start` to `stop` to every centre into rows `at` and on of D.

    `columns` (d, k), float64, holds the centres feature-major.
    """
    x = floats(len(columns))
    for i in range(start, stop):
        load(X, i, x)
        canonical_row(x, columns, D[at + i - start])
