"""Potentials of candidates for CSR rows: the test of :mod:`screen` in float64, with origin 0.

A score multiplies the non-zeros of a row with a dense table of the candidates, (d, m).  Where a
candidate may lower a row, merging the two rows gives their canonical distance.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cpu.runtime.compiled import kernel
from lloydia.backends.cpu.seeding.protocols import SeedingState
from lloydia.backends.cpu.seeding.weights import MAX_CANDIDATES, TILE, everywhere, fixed

__all__ = ["SparsePotentials"]


@kernel
def sparse_distance(X, i, Y, c):
    """Return the canonical D of CSR rows: features where both are 0 add nothing."""
    data, indices, indptr = X
    others, columns, other_indptr = Y
    a, a_end, b, b_end = indptr[i], indptr[i + 1], other_indptr[c], other_indptr[c + 1]
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
def norms_of(X, start, stop, norms):
    """Write the squared norms of rows, summed in feature order."""
    data, _, indptr = X
    for i in range(start, stop):
        total = 0.0
        for at in range(indptr[i], indptr[i + 1]):
            total += np.float64(data[at]) * np.float64(data[at])
        norms[i] = total


@kernel
def evaluate_candidates(
    X, first, last, candidates, table, half_squares, relative, absolute, nearest, norms, weights,
    low, high, hits, counts, reductions,
):  # fmt: skip
    """Do for CSR rows what the function of this name in :mod:`wide_potentials` does.

    Parameters
    ----------
    candidates : IN
        The parts of a CSR matrix of m rows.
    table : IN, ndarray (d, m), float64
        The same, dense.
    half_squares : IN, ndarray (m,), float64
        Minus half the squared norms of the candidates.
    relative, absolute : float
        The error of a score is at most ``relative * norm + absolute``.
    """
    data, indices, indptr = X
    m = len(half_squares)
    scores = np.empty(m)
    of_block = np.zeros(m, np.int64)
    for tile in range(first, last):
        start, n_hits = tile * TILE, 0
        for i in range(start, min(start + TILE, len(nearest))):
            for c in range(m):
                scores[c] = half_squares[c]
            for at in range(indptr[i], indptr[i + 1]):
                value, f = np.float64(data[at]), indices[at]
                for c in range(m):
                    scores[c] += value * table[f, c]
            limit = 0.5 * (norms[i] - nearest[i]) - relative * norms[i] - absolute
            w = weights[i] if len(weights) else 1.0
            improves = np.uint32(0)
            for c in range(m):
                if scores[c] > limit:
                    nearer = sparse_distance(X, i, candidates, c)
                    if nearer < nearest[i]:
                        of_block[c] += fixed(nearest[i], w, low, high) - fixed(nearer, w, low, high)
                        improves |= np.uint32(1) << np.uint32(c)
            hits[start + n_hits] = np.uint32(i - start) << np.uint32(MAX_CANDIDATES) | improves
            n_hits += improves != 0
        counts[tile] = n_hits
    for c in range(m):
        reductions[c] += of_block[c]


@kernel
def accept_candidate(
    X, first, last, seeds, j, nearest, weights, low, high, hits, counts, totals, tops
):
    """Lower the rows that candidate `j` is nearer to."""
    for tile in range(first, last):
        start = tile * TILE
        for at in range(start, start + counts[tile]):
            if hits[at] >> np.uint32(j) & np.uint32(1):
                i = start + (hits[at] >> MAX_CANDIDATES)
                D = sparse_distance(X, i, seeds, j)
                w = weights[i] if len(weights) else 1.0
                # If this row has the tile's largest term, the new largest term is unknown.
                tops[tile] = np.nan if w * nearest[i] >= tops[tile] else tops[tile]
                change = fixed(nearest[i], w, low, high) - fixed(D, w, low, high)
                totals[tile] -= change
                nearest[i] = D


class SparsePotentials:
    """Potentials of candidates for CSR rows.

    The attributes are those of :class:`wide_potentials.WidePotentials`, but `norms` are D to 0.
    """

    def __init__(self, seeder: SeedingState) -> None:
        self.seeder = seeder
        self.relative = 3.0 * (seeder.dataset.n_features + 8) * 2.0**-53
        self.norms = np.empty(seeder.dataset.n_samples)
        self.hits = np.empty(seeder.dataset.n_samples, dtype=np.uint32)
        self.counts = np.empty(seeder.n_tiles, dtype=np.int64)
        seeder.dataset.each_block(
            lambda t, a, b: norms_of(seeder.dataset.X, a, b, self.norms), 1.0 + seeder.dataset.width
        )

    def first(self, values: Any) -> None:
        """Make a candidate the only seed."""
        self.candidates = (values.data, values.indices, values.indptr)
        everywhere(self.hits, self.counts)
        self.seeder.nearest.fill(np.inf)
        self.accept(0, 1.0, 1.0)
        self.seeder.stale()

    def reductions(self, values: Any, low: float, high: float) -> NDArray[np.int64]:
        """Return by how much each candidate lowers the total."""
        seeder = self.seeder
        self.candidates = (values.data, values.indices, values.indptr)
        count = values.shape[0]
        table = np.ascontiguousarray(values.T.toarray(), dtype=np.float64)
        norms = np.empty(count)
        norms_of(self.candidates, 0, count, norms)
        reductions = np.zeros((seeder.dataset.n_threads, count), dtype=np.int64)
        absolute = self.relative * float(norms.max()) + (seeder.dataset.n_features + 4) * 2.0**-1072
        half_squares = -0.5 * norms
        seeder.each_tile(
            lambda t, a, b: evaluate_candidates(
                seeder.dataset.X, a, b, self.candidates, table, half_squares, self.relative,
                absolute, seeder.nearest, self.norms, seeder.dataset.weights, low, high,
                self.hits, self.counts, reductions[t],
            ), 10.0 + 3.0 * seeder.dataset.width,
        )  # fmt: skip
        return reductions.sum(axis=0)

    def best(self, values: Any, low: float, high: float) -> int:
        """Return the candidate that lowers the total most, the first one of equals."""
        return int(self.reductions(values, low, high).argmax())

    def accept(self, j: int, low: float, high: float) -> None:
        """Make candidate `j` of the last :meth:`reductions` a seed."""
        seeder = self.seeder
        seeder.each_tile(
            lambda t, a, b: accept_candidate(
                seeder.dataset.X, a, b, self.candidates, j, seeder.nearest,
                seeder.dataset.weights, low, high, self.hits, self.counts,
                seeder.totals, seeder.tops,
            ), 2.0 + seeder.dataset.width,
        )  # fmt: skip
