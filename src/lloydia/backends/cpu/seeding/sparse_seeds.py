"""Candidates against CSR rows: the test of :mod:`screen` in float64, with the origin at 0.

The products are those of a row's non-zeros with a table of the candidates, (d, m) and dense; where
a candidate may lower a row, their canonical distance is evaluated by merging the two rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cpu.runtime.compiled import kernel
from lloydia.backends.cpu.seeding.protocols import Seeding
from lloydia.backends.cpu.seeding.weights import MOST, TILE, everywhere, fixed

__all__ = ["SparseSeeds"]


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
def norms_of(X, start, stop, norms):
    """Write the squared norms of rows, summed in feature order."""
    data, _, indptr = X
    for i in range(start, stop):
        total = 0.0
        for at in range(indptr[i], indptr[i + 1]):
            total += np.float64(data[at]) * np.float64(data[at])
        norms[i] = total


@kernel
def weigh(
    X, first, last, candidates, table, starts, spread, spare, nearest, norms, weights, low, high,
    hits, counts, reductions,
):  # fmt: skip
    """Do what :func:`lloydia.backends.cpu.seeding.wide_seeds.weigh` does, for CSR rows."""
    data, indices, indptr = X
    m = len(starts)
    scores = np.empty(m)
    own = np.zeros(m, np.int64)
    for tile in range(first, last):
        start, kept = tile * TILE, 0
        for i in range(start, min(start + TILE, len(nearest))):
            for c in range(m):
                scores[c] = starts[c]
            for at in range(indptr[i], indptr[i + 1]):
                value, f = np.float64(data[at]), indices[at]
                for c in range(m):
                    scores[c] += value * table[f, c]
            limit = 0.5 * (norms[i] - nearest[i]) - spread * norms[i] - spare
            w = weights[i] if len(weights) else 1.0
            lowers = np.uint32(0)
            for c in range(m):
                if scores[c] > limit:
                    nearer = sparse_distance(X, i, candidates, c)
                    if nearer < nearest[i]:
                        own[c] += fixed(nearest[i], w, low, high) - fixed(nearer, w, low, high)
                        lowers |= np.uint32(1) << np.uint32(c)
            hits[start + kept] = np.uint32(i - start) << np.uint32(MOST) | lowers
            kept += lowers != 0
        counts[tile] = kept
    for c in range(m):
        reductions[c] += own[c]


@kernel
def adopt(X, first, last, seeds, j, nearest, weights, low, high, hits, counts, totals, tops):
    """Lower the rows that the weighed candidate `j` is nearer to."""
    for tile in range(first, last):
        start = tile * TILE
        for at in range(start, start + counts[tile]):
            if hits[at] >> np.uint32(j) & np.uint32(1):
                i = start + (hits[at] >> MOST)
                D = sparse_distance(X, i, seeds, j)
                w = weights[i] if len(weights) else 1.0
                # The largest term of the tile must be looked for where it may be this row's.
                tops[tile] = np.nan if w * nearest[i] >= tops[tile] else tops[tile]
                change = fixed(nearest[i], w, low, high) - fixed(D, w, low, high)
                totals[tile] -= change
                nearest[i] = D


class SparseSeeds:
    """The rivals of :class:`lloydia.backends.cpu.seeding.picks.Picks` for CSR rows.

    The attributes are those of :class:`lloydia.backends.cpu.seeding.wide_seeds.WideSeeds`, `norms`
    being D to 0.
    """

    def __init__(self, picks: Seeding) -> None:
        self.picks = picks
        self.spread = 3.0 * (picks.n_features + 8) * 2.0**-53
        self.norms = np.empty(picks.n_samples)
        self.hits = np.empty(picks.n_samples, dtype=np.uint32)
        self.counts = np.empty(picks.n_tiles, dtype=np.int64)
        picks.each_block(lambda t, a, b: norms_of(picks.X, a, b, self.norms), 1.0 + picks.width)

    def first(self, values: Any) -> None:
        """Make a candidate the only seed."""
        self.weighed = (values.data, values.indices, values.indptr)
        everywhere(self.hits, self.counts)
        self.picks.nearest.fill(np.inf)
        self.adopt(0, 1.0, 1.0)
        self.picks.stale()

    def weigh(self, values: Any, low: float, high: float) -> NDArray[np.int64]:
        """Return by how much each candidate lowers the total."""
        picks = self.picks
        self.weighed = (values.data, values.indices, values.indptr)
        count = values.shape[0]
        table = np.ascontiguousarray(values.T.toarray(), dtype=np.float64)
        norms = np.empty(count)
        norms_of(self.weighed, 0, count, norms)
        reductions = np.zeros((picks.n_threads, count), dtype=np.int64)
        spare = self.spread * float(norms.max()) + (picks.n_features + 4) * 2.0**-1072
        starts = -0.5 * norms
        picks.each_tile(
            lambda t, a, b: weigh(
                picks.X, a, b, self.weighed, table, starts, self.spread, spare,
                picks.nearest, self.norms, picks.weights, low, high,
                self.hits, self.counts, reductions[t],
            ), 10.0 + 3.0 * picks.width,
        )  # fmt: skip
        return reductions.sum(axis=0)

    def adopt(self, j: int, low: float, high: float) -> None:
        """Make the weighed candidate `j` a seed."""
        picks = self.picks
        picks.each_tile(
            lambda t, a, b: adopt(
                picks.X, a, b, self.weighed, j, picks.nearest, picks.weights, low, high,
                self.hits, self.counts, picks.totals, picks.tops,
            ), 2.0 + picks.width,
        )  # fmt: skip
