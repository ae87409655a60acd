"""Canonical distances: of each row to its own centre, and of each row to all."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from lloydia.backends.cpu.rows.features import canonical_row, distance, load
from lloydia.backends.cpu.runtime.compiled import LEAN, floats, kernel, local, minimum, part
from lloydia.backends.cpu.runtime.counting import upto
from lloydia.backends.cpu.simd.row_lanes import LANES, add_squares

__all__ = ["own_distances", "own_distances_of", "sparse_own_distances", "squared_distances"]

# Rows at a time, whose distances are first written to memory that no other thread uses.
TILE = 256


@kernel(**LEAN)
def own_distances(X, start, stop, labels, centers, D):
    """Write D of dense rows `start` to `stop` to the centre of their label.

    `centers`, float64, are contiguous.
    """
    rows, assigned = local(np.int64, LANES), local(np.int64, LANES)
    found = local(np.float64, LANES)
    for at in upto(start, stop, LANES):
        m = minimum(LANES, stop - at)
        for p in upto(LANES):
            i = at + minimum(p, m - 1)
            rows[p] = X.ctypes.data + i * X.strides[0]
            assigned[p] = centers.ctypes.data + labels[i] * centers.strides[0]
        add_squares(
            X, rows.ctypes.data, assigned.ctypes.data, X.strides[1], X.shape[1], found.ctypes.data
        )
        for p in upto(m):
            D[at + p] = found[p]


@kernel
def sparse_own_distances(X, start, stop, labels, centers, D):
    """Write the same distances for CSR rows."""
    x = floats(centers.shape[1])
    for i in upto(start, stop):
        load(X, i, x)
        D[i] = distance(x, centers[labels[i]])


@lru_cache
def own_distances_of(d: int):
    """Return a kernel for dense rows of exactly `d` features, which fills vectors with rows.

    It takes rows and centres as flat arrays, (n * d,) and (k * d,).
    """

    @kernel(**LEAN)
    def labelled_distances(flat, start, stop, labels, centers, D):
        near = local(np.float64, TILE)
        for at in upto(start, stop, TILE):
            m = minimum(TILE, stop - at)
            rows, names = part(flat, at * d, (at + m) * d), part(labels, at, at + m)
            for p in upto(m):
                # Unsigned: a signed index would be tested for counting from the end.
                j = np.uint32(names[p]) * np.uint64(d)
                total = 0.0
                for f in upto(d):
                    difference = np.float64(rows[p * d + f]) - centers[j + np.uint64(f)]
                    total += difference * difference
                near[p] = total
            for p in upto(m):
                D[at + p] = near[p]

    return labelled_distances


@kernel
def squared_distances(X, start, stop, columns, D, at):
    """Write D of rows `start` to `stop` to every centre into rows `at` and on of D.

    `columns` (d, k), float64, holds the centres feature-major.
    """
    x = floats(len(columns))
    for i in upto(start, stop):
        load(X, i, x)
        canonical_row(x, columns, D[at + i - start])
