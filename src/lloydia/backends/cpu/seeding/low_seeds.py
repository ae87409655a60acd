"""Candidates against rows with few features: canonical distances, eight rows and more at a time."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cpu.runtime.compiled import floats, kernel
from lloydia.backends.cpu.seeding.protocols import Seeding
from lloydia.backends.cpu.seeding.screen import aligned
from lloydia.backends.cpu.seeding.weights import MOST, ROUNDER, TILE, sum_and_top

__all__ = ["LowSeeds"]


@lru_cache
def weigh_of(d: int):
    """Return the kernel for exactly `d` features: the compiler unrolls them.

    It takes the rows end to end, (n * d,), so that the compiler knows their pitch, and has scratch
    of its own, so that it knows that nothing else lies there.
    """

    @kernel
    def weigh(flat, first, last, candidates, nearest, weights, low, high, reductions):
        x, size = np.empty((d, TILE)), np.int64(TILE)
        w, old, terms = floats(size), floats(size), floats(size)
        bits = terms.view(np.int64)
        for p in range(TILE):
            w[p] = 1.0
        for tile in range(first, last):
            at = tile * TILE
            m = min(TILE, len(nearest) - at)
            rows, near = flat[at * d : (at + m) * d], nearest[at : at + m]
            for p in range(m):
                for f in range(d):
                    x[f, p] = rows[p * d + f]
                old[p] = near[p]
            for p in range(m if len(weights) else 0):
                w[p] = weights[at + p]
            for p in range(m, TILE):
                old[p] = 0.0
            before = np.int64(0)
            for p in range(TILE):
                terms[p] = w[p] * old[p] * low * high + ROUNDER
            for p in range(TILE):
                before += bits[p]
            for c in range(len(candidates)):
                for p in range(TILE):
                    total = 0.0
                    for f in range(d):
                        difference = x[f, p] - candidates[c, f]
                        total += difference * difference
                    D = total if total < old[p] else old[p]
                    terms[p] = w[p] * D * low * high + ROUNDER
                after = np.int64(0)
                for p in range(TILE):
                    after += bits[p]
                reductions[c] += before - after

    return weigh


@lru_cache
def adopt_of(d: int):
    """Return the kernel that lowers rows to their distance to a seed, for exactly `d` features."""

    @kernel
    def adopt(flat, first, last, seed, nearest, weights, low, high, terms, bits, totals, tops):
        for tile in range(first, last):
            start, stop = tile * TILE, min((tile + 1) * TILE, len(nearest))
            rows, near = flat[start * d : stop * d], nearest[start:stop]
            for p in range(stop - start):
                total = 0.0
                for f in range(d):
                    difference = np.float64(rows[p * d + f]) - seed[f]
                    total += difference * difference
                near[p] = total if total < near[p] else near[p]
            w = weights[start:stop]
            totals[tile], tops[tile] = sum_and_top(near, w, low, high, terms, bits)

    return adopt


class LowSeeds:
    """The rivals of :class:`picks.Picks` for dense rows of few features."""

    def __init__(self, picks: Seeding) -> None:
        self.picks, self.d = picks, picks.n_features

    @property
    def flat(self) -> NDArray:
        """The rows end to end."""
        return self.picks.source.reshape(-1)

    def first(self, values: NDArray) -> None:
        """Make a candidate the only seed."""
        self.picks.nearest.fill(np.inf)
        self.weighed = values.astype(np.float64)
        self.adopt(0, 1.0, 1.0)
        # The largest terms are known, their sums on a grid are not.
        self.picks.totals_grid = None

    def weigh(self, values: NDArray, low: float, high: float) -> NDArray[np.int64]:
        """Return by how much each candidate lowers the total."""
        picks, self.weighed = self.picks, values.astype(np.float64)
        reductions = aligned((picks.n_threads, MOST), np.int64)
        kernel, flat = weigh_of(self.d), self.flat
        picks.each_tile(
            lambda t, a, b: kernel(
                flat, a, b, self.weighed, picks.nearest, picks.weights, low, high,
                reductions[t],
            ), 0.5 + 0.1 * self.d * len(values),
        )  # fmt: skip
        return reductions.sum(axis=0)[: len(values)]

    def adopt(self, j: int, low: float, high: float) -> None:
        """Make the weighed candidate `j` a seed."""
        picks, kernel, seed = self.picks, adopt_of(self.d), self.weighed[j]
        bits, flat = picks.terms.view(np.int64), self.flat
        picks.each_tile(
            lambda t, a, b: kernel(
                flat, a, b, seed, picks.nearest, picks.weights, low, high,
                picks.terms[t], bits[t], picks.totals, picks.tops,
            ), 1.0 + 0.1 * self.d,
        )  # fmt: skip
