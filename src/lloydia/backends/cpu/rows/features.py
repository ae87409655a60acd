"""One row of X as float64, whatever X is: the dense array, or the parts of a CSR matrix."""

from __future__ import annotations

import numpy as np
from numba import types
from numba.extending import overload

from lloydia.backends.cpu.runtime.compiled import LEAN, subroutine
from lloydia.backends.cpu.runtime.counting import upto

__all__ = ["EVERY", "canonical_row", "distance", "load", "nearest_center"]

# This list of rows means all rows.
EVERY = np.empty(0, dtype=np.int64)


def load(X, i, out):
    """Write row `i` of `X` to `out`, shape (d,), float64."""
    raise NotImplementedError("compiled code only")


@overload(load, jit_options={"nogil": True, "error_model": "numpy", "forceinline": True})
def _load(X, i, out):
    if isinstance(X, types.Array):

        def dense(X, i, out):
            for f in upto(len(out)):
                out[f] = X[i, f]

        return dense

    def sparse(X, i, out):
        data, indices, indptr = X
        out[:] = 0.0
        for at in upto(indptr[i], indptr[i + 1]):
            out[indices[at]] = data[at]

    return sparse


@subroutine(**LEAN)
def distance(x, center):
    """Return the canonical D of a row (d,) to a centre (d,), float64."""
    total = 0.0
    for f in upto(len(x)):
        difference = x[f] - center[f]
        total += difference * difference
    return total


@subroutine
def canonical_row(x, columns, out):
    """Write the D of one row to every centre; `columns` (d, k) is feature-major, float64."""
    out[:] = 0.0
    for f in upto(len(x)):
        value = x[f]
        for j in upto(len(out)):
            difference = value - columns[f, j]
            out[j] += difference * difference


@subroutine(**LEAN)
def nearest_center(x, columns, D):
    """Return the nearest centre of a row (d,) by canonical D, the first of equals, and its D.

    `columns` (d, k) is feature-major, float64; `D` (k,) is scratch.
    """
    for j in upto(len(D)):
        D[j] = 0.0
    for f in upto(len(x)):
        value = x[f]
        for j in upto(len(D)):
            difference = value - columns[f, j]
            D[j] += difference * difference
    nearest = 0
    for j in upto(1, len(D)):
        nearest = j if D[j] < D[nearest] else nearest
    return nearest, D[nearest]
