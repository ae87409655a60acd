"""Distances to candidates, and sums of them as integers, for the seedings."""

from __future__ import annotations

import numpy as np

from lloydia.backends.cpu.compiled import kernel

__all__ = ["add_seed", "draw", "fixed", "potentials"]

# Rows at a time: enough for long vectors, few enough for their features to stay in the cache.
TILE = 64


@kernel
def fixed(D, w, low, high):
    """Round ``w * D * low * high`` to an integer; the two factors are powers of two."""
    return np.int64(np.rint(w * D * low * high))


@kernel
def tile_distances(X, at, m, candidates, c, x, out):
    """Write the canonical D of `m` dense rows from `at` to candidate `c`; `x` is (d, TILE)."""
    out[:] = 0.0
    for f in range(len(x)):
        value = candidates[c, f]
        for p in range(TILE):
            difference = np.float64(x[f, p]) - value
            out[p] += difference * difference


@kernel
def fill_tile(X, at, m, x):
    """Copy `m` dense rows into a feature-major tile."""
    for p in range(m):
        for f in range(len(x)):
            x[f, p] = X[at + p, f]


@kernel
def potentials(X, start, stop, candidates, nearest, weights, low, high, totals):
    """Add up what weight times D would be with each candidate (m, d) as a centre."""
    x = np.zeros((X.shape[1], TILE), X.dtype)
    D = np.empty(TILE)
    for at in range(start, stop, TILE):
        m = min(TILE, stop - at)
        fill_tile(X, at, m, x)
        for c in range(len(candidates)):
            tile_distances(X, at, m, candidates, c, x, D)
            total = np.int64(0)
            for p in range(m):
                w = weights[at + p] if len(weights) else 1.0
                total += fixed(min(nearest[at + p], D[p]), w, low, high)
            totals[c] += total


@kernel
def add_seed(X, start, stop, candidates, first, nearest, weights):
    """Fold the distance to ``candidates[0]`` into `nearest`; return the largest weight times it."""
    x = np.zeros((X.shape[1], TILE), X.dtype)
    D = np.empty(TILE)
    largest = 0.0
    for at in range(start, stop, TILE):
        m = min(TILE, stop - at)
        fill_tile(X, at, m, x)
        tile_distances(X, at, m, candidates, 0, x, D)
        for p in range(m):
            i = at + p
            nearest[i] = D[p] if first else min(nearest[i], D[p])
            term = weights[i] * nearest[i] if len(weights) else nearest[i]
            largest = max(largest, term)
    return largest


@kernel
def sparse_distance(X, i, Y, c):
    """Return the canonical D of CSR rows: features where both are 0 add nothing."""
    data, indices, indptr = X
    others, columns, starts = Y
    a, a_end, b, b_end = indptr[i], indptr[i + 1], starts[c], starts[c + 1]
    total = 0.0
    while a < a_end or b < b_end:
        if b >= b_end or (a < a_end and indices[a] < columns[b]):
            difference = np.float64(data[a])
            a += 1
        elif a >= a_end or columns[b] < indices[a]:
            difference = np.float64(others[b])
            b += 1
        else:
            difference = np.float64(data[a]) - np.float64(others[b])
            a += 1
            b += 1
        total += difference * difference
    return total


@kernel
def sparse_potentials(X, start, stop, candidates, nearest, weights, low, high, totals):
    """Do what :func:`potentials` does, for CSR rows and candidates."""
    for i in range(start, stop):
        w = weights[i] if len(weights) else 1.0
        for c in range(len(totals)):
            D = sparse_distance(X, i, candidates, c)
            totals[c] += fixed(min(nearest[i], D), w, low, high)


@kernel
def sparse_add_seed(X, start, stop, candidates, first, nearest, weights):
    """Do what :func:`add_seed` does, for CSR rows and candidates."""
    largest = 0.0
    for i in range(start, stop):
        D = sparse_distance(X, i, candidates, 0)
        nearest[i] = D if first else min(nearest[i], D)
        term = weights[i] * nearest[i] if len(weights) else nearest[i]
        largest = max(largest, term)
    return largest


@kernel
def draw(nearest, weights, start, stop, low, high, target):
    """Return the first row whose running integer sum exceeds `target`, and the sum.

    The row is -1 if there is none: the sum is then that of the whole range.
    """
    total = np.int64(0)
    for i in range(start, stop):
        w = weights[i] if len(weights) else 1.0
        total += fixed(nearest[i], w, low, high)
        if total > target:
            return i, total
    return -1, total
