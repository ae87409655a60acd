"""Candidates against rows with many features.

The :mod:`screen` finds the rows that some candidate may bring nearer to a seed; their canonical
distances, eight candidates a vector, say by how much.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cpu.runtime.compiled import LEAN, kernel, local, minimum, shaped
from lloydia.backends.cpu.runtime.counting import upto
from lloydia.backends.cpu.seeding.protocols import Seeding
from lloydia.backends.cpu.seeding.screen import Screen, aligned, doubtful
from lloydia.backends.cpu.seeding.weights import MOST, TILE, everywhere, fixed
from lloydia.backends.cpu.simd.lanes import OCTET, ROWS, squares

__all__ = ["WideSeeds"]


@kernel(**LEAN)
def weigh(
    X, first, last, m, panel, starts, columns, test, nearest, norms, weights, low, high,
    room, hits, counts, reductions,
):  # fmt: skip
    """Find the rows of tiles that `m` prepared candidates lower, and add up by how much.

    Writes the hits of each tile from its first row on, and their number to `counts`.  `room` is
    that of :func:`room_for`.
    """
    n, d = X.shape
    limits, bits, copies, x, squared = room
    D, pitch = shaped(squared, (ROWS, columns.shape[1])), 8 * columns.shape[1]
    for tile in upto(first, last):
        start, stop = tile * TILE, minimum((tile + 1) * TILE, n)
        found = doubtful(
            X, start, stop, panel, starts, test, nearest, norms, limits, bits, copies, hits
        )
        kept = 0
        for at in upto(0, found, ROWS):
            here = minimum(ROWS, found - at)
            for p in upto(here):
                i = start + (hits[start + at + p] >> MOST)
                for f in upto(d):
                    x[p, f] = X[i, f]
            for octet in upto(0, pitch, 8 * OCTET):
                some = columns.ctypes.data + octet
                squares(x.ctypes.data, d, some, pitch, D.ctypes.data + octet)
            for p in upto(here):
                hit = hits[start + at + p]
                i = start + (hit >> MOST)
                w = weights[i] if len(weights) else 1.0
                near = nearest[i]
                before = fixed(near, w, low, high)
                lowers = np.uint32(0)
                # No branches: a candidate that the screen rules out is not nearer either.
                for c in upto(m):
                    nearer = D[p, c] < near
                    reductions[c] += before - fixed(D[p, c] if nearer else near, w, low, high)
                    lowers |= np.uint32(nearer) << np.uint32(c)
                hits[start + kept] = (hit >> np.uint32(MOST) << np.uint32(MOST)) | lowers
                kept += lowers != 0
        counts[tile] = kept


@kernel(**LEAN)
def adopt(
    X, first, last, columns, j, nearest, weights, low, high, room, hits, counts, totals, tops
):  # fmt: skip
    """Lower the rows that candidate `j` of those weighed last is nearer to."""
    d, lanes = columns.shape
    x, D = room[3:]
    rows, octet, lane = local(np.int64, ROWS), j // OCTET * 8 * OCTET, j % OCTET
    for tile in upto(first, last):
        start, m = tile * TILE, 0
        for at in upto(counts[tile]):
            hit = hits[start + at]
            if hit >> np.uint32(j) & np.uint32(1):
                rows[m] = start + (hit >> MOST)
                m += 1
            if m == ROWS or (m > 0 and at == counts[tile] - 1):
                for p in upto(m):
                    i = rows[p]
                    for f in upto(d):
                        x[p, f] = X[i, f]
                some = columns.ctypes.data + octet
                squares(x.ctypes.data, d, some, 8 * lanes, D.ctypes.data)
                for p in upto(m):
                    i, near = rows[p], D[p * lanes + lane]
                    w = weights[i] if len(weights) else 1.0
                    # The largest term of the tile must be looked for where it may be this row's.
                    tops[tile] = np.nan if w * nearest[i] >= tops[tile] else tops[tile]
                    change = fixed(nearest[i], w, low, high) - fixed(near, w, low, high)
                    totals[tile] -= change
                    nearest[i] = near
                m = 0


def room_for(d: int, dtype: Any) -> tuple[NDArray, ...]:
    """Return a thread's scratch: that of :func:`doubtful`, rows, and their D to candidates."""
    return (
        np.empty(TILE, dtype),
        np.empty(TILE, np.uint16),
        np.zeros((ROWS, d), dtype),
        np.zeros((ROWS, d)),
        np.empty(2 * ROWS * OCTET),
    )


class WideSeeds:
    """The rivals of :class:`picks.Picks` for dense rows of many features.

    Attributes
    ----------
    norms : ndarray of shape (n,)
        Each row's D to the first seed.
    hits : ndarray of shape (n,), uint32
        The rows that the candidates weighed last lower, tile by tile.
    counts : ndarray of shape (n_tiles,), int64
        Hits a tile.
    """

    def __init__(self, picks: Seeding) -> None:
        self.picks = picks
        self.screen: Screen | None = None
        self.rooms = [room_for(picks.n_features, picks.dtype) for _ in range(picks.n_threads)]
        self.hits = np.empty(picks.n_samples, dtype=np.uint32)
        self.counts = np.empty(picks.n_tiles, dtype=np.int64)

    def first(self, values: NDArray) -> None:
        """Make a candidate the only seed."""
        picks, seed = self.picks, values.astype(np.float64)
        columns = aligned((picks.n_features, OCTET), np.float64)
        columns[:, 0] = seed[0]
        everywhere(self.hits, self.counts)
        picks.nearest.fill(np.inf)
        self._adopt(columns, 0, 1.0, 1.0)
        picks.stale()
        self.origin, self.norms = seed[0], picks.nearest.copy()

    def weigh(self, values: NDArray, low: float, high: float) -> NDArray[np.int64]:
        """Return by how much each candidate lowers the total."""
        picks, m = self.picks, len(values)
        if self.screen is None or m > self.screen.columns.shape[1]:
            radius = float(np.sqrt(self.norms.max()))
            self.screen = Screen(self.origin, radius, picks.dtype, m)
        screen = self.screen
        test = screen.load(values.astype(np.float64))
        packed = (screen.panel, screen.starts, screen.columns, test)
        reductions = aligned((picks.n_threads, MOST), np.int64)
        picks.each_tile(
            lambda t, a, b: weigh(
                picks.X, a, b, m, *packed, picks.nearest, self.norms, picks.weights, low, high,
                self.rooms[t], self.hits, self.counts, reductions[t],
            ), 3.0 + 0.25 * picks.width,
        )  # fmt: skip
        return reductions.sum(axis=0)[:m]

    def adopt(self, j: int, low: float, high: float) -> None:
        """Make candidate `j` of those weighed last a seed."""
        assert self.screen is not None
        self._adopt(self.screen.columns, j, low, high)

    def _adopt(self, columns: NDArray[np.float64], j: int, low: float, high: float) -> None:
        picks = self.picks
        picks.each_tile(
            lambda t, a, b: adopt(
                picks.X, a, b, columns, j, picks.nearest, picks.weights, low, high,
                self.rooms[t], self.hits, self.counts, picks.totals, picks.tops,
            ), 1.0 + 0.1 * picks.width,
        )  # fmt: skip
