"""Potentials of candidates for rows of few features, by the distance of every row.

Distances in float32 nearly always show which candidate is the best, see :mod:`gains`; the others
are canonical.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cpu.runtime.compiled import floats, kernel
from lloydia.backends.cpu.seeding.gains import best_of, margins_of, unit_of
from lloydia.backends.cpu.seeding.protocols import SeedingState
from lloydia.backends.cpu.seeding.screen import aligned
from lloydia.backends.cpu.seeding.weights import MAX_CANDIDATES, ROUNDER, TILE, sum_and_top

__all__ = ["LowPotentials"]


@lru_cache
def evaluate_of(d: int):
    """Return the kernel that evaluates candidates for exactly `d` features.

    The compiler unrolls the loops over features.  The kernel takes the rows as a flat array, so
    that the compiler sees a constant pitch, and allocates its scratch, so that the compiler can
    rule out aliases.
    """

    @kernel
    def evaluate_candidates(flat, first, last, candidates, nearest, weights, low, high, reductions):
        """Add to `reductions` what each candidate takes off the integers of some tiles.

        Parameters
        ----------
        flat : IN, ndarray (n * d,)
            The rows, contiguous.
        first, last : int
            The tiles.
        candidates : IN, ndarray (m, d), float64
        nearest : IN, ndarray (n,), float64
            D to the nearest seed.
        weights : IN, ndarray (n,) or (0,), float64
        low, high : float
            Powers of two whose product brings a term to its grid.
        reductions : IN/OUT, ndarray (m or more,), int64
        """
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

    return evaluate_candidates


@lru_cache
def gains_of(d: int):
    """Return the kernel that evaluates candidates in float32, for rows without weights."""

    @kernel(fastmath={"reassoc", "contract", "nsz"})
    def add_gains(flat, first, last, candidates, unit, nearest, gains):
        """Add to `gains` (m,) by how much each candidate lowers the sum of D of some tiles.

        Rows are multiplied by `unit` and D by its square, as in :mod:`gains`; `candidates` are
        multiplied already.  All are at most about 1.
        """
        x, old = np.empty((d, TILE), flat.dtype), np.empty(TILE, np.float32)
        square = np.float64(unit) * np.float64(unit)
        for tile in range(first, last):
            at = tile * TILE
            m = min(TILE, len(nearest) - at)
            rows, near = flat[at * d : (at + m) * d], nearest[at : at + m]
            for p in range(m):
                for f in range(d):
                    x[f, p] = rows[p * d + f] * unit
                old[p] = np.float32(near[p] * square)
            for p in range(m, TILE):
                old[p] = np.float32(0.0)
            for c in range(len(candidates)):
                total = np.float32(0.0)
                for p in range(TILE):
                    D = np.float32(0.0)
                    for f in range(d):
                        difference = np.float32(x[f, p] - candidates[c, f])
                        D += difference * difference
                    gain = old[p] - D
                    total += gain if gain > np.float32(0.0) else np.float32(0.0)
                gains[c] += np.float64(total)

    return add_gains


@lru_cache
def accept_of(d: int):
    """Return the kernel that makes a candidate a seed, for exactly `d` features."""

    @kernel
    def accept_candidate(
        flat, first, last, seed, nearest, weights, low, high, terms, bits, totals, tops
    ):
        """Lower D in some tiles to that of a seed, and sum their terms again.

        Parameters
        ----------
        flat, first, last, weights, low, high
            As in the kernel of :func:`evaluate_of`.
        seed : IN, ndarray (d,), float64
        nearest : IN/OUT, ndarray (n,), float64
        terms, bits : scratch, ndarray (TILE,), float64 and int64
            The same memory.
        totals, tops : OUT, ndarray (n_tiles,), int64 and float64
            Integer sum and largest of weight times D.
        """
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

    return accept_candidate


class LowPotentials:
    """Potentials of candidates for dense rows of few features."""

    def __init__(self, seeder: SeedingState) -> None:
        self.seeder, self.d = seeder, seeder.dataset.n_features
        largest = float(seeder.dataset.magnitudes().largest.max())
        self.unit = seeder.dataset.dtype.type(unit_of(largest))

    @property
    def flat(self) -> NDArray:
        """The rows as a flat array."""
        return self.seeder.dataset.source.reshape(-1)

    def first(self, values: NDArray) -> None:
        """Make a candidate the only seed."""
        self.seeder.nearest.fill(np.inf)
        self.candidates = values.astype(np.float64)
        self.accept(0, 1.0, 1.0)
        # The factors were 1: the largest terms are right, but the integer sums are on no grid.
        self.seeder.totals_grid = None

    def reductions(self, values: NDArray, low: float, high: float) -> NDArray[np.int64]:
        """Return by how much each candidate lowers the total."""
        seeder, self.candidates = self.seeder, values.astype(np.float64)
        reductions = aligned((seeder.dataset.n_threads, MAX_CANDIDATES), np.int64)
        kernel, flat = evaluate_of(self.d), self.flat
        seeder.each_tile(
            lambda t, a, b: kernel(
                flat, a, b, self.candidates, seeder.nearest, seeder.dataset.weights, low, high,
                reductions[t],
            ), 0.5 + 0.1 * self.d * len(values),
        )  # fmt: skip
        return reductions.sum(axis=0)[: len(values)]

    def best(self, values: NDArray, low: float, high: float) -> int:
        """Return the candidate that lowers the total most, the first one of equals."""
        if len(self.seeder.dataset.weights):
            return int(self.reductions(values, low, high).argmax())
        unit, n = self.unit, self.seeder.dataset.n_samples
        square = float(unit) ** 2
        relative, absolute = margins_of(self.d)
        gains = self._gains(values)
        total = float(self.seeder.totals.sum()) / low / high * square
        # No row is excluded, and each sum of a tile has TILE roundings.
        uncertain = total + n * absolute + TILE * 2.0**-24 / relative * gains
        found = best_of(
            np.stack([gains, uncertain]), (relative, absolute), n, square / low / high,
            lambda some: self.reductions(values[some], low, high),
        )  # fmt: skip
        self.candidates = values.astype(np.float64)
        return found

    def _gains(self, values: NDArray) -> NDArray[np.float64]:
        """Return by how much each candidate lowers the sum of D, in float32."""
        seeder, kernel, flat, unit = self.seeder, gains_of(self.d), self.flat, self.unit
        candidates = np.ascontiguousarray(values * unit)
        gains = np.zeros((seeder.dataset.n_threads, MAX_CANDIDATES))
        seeder.each_tile(
            lambda t, a, b: kernel(flat, a, b, candidates, unit, seeder.nearest, gains[t]),
            0.5 + 0.04 * self.d * len(values),
        )
        return gains.sum(axis=0)[: len(values)]

    def accept(self, j: int, low: float, high: float) -> None:
        """Make candidate `j` of the last :meth:`reductions` a seed."""
        seeder, kernel, seed = self.seeder, accept_of(self.d), self.candidates[j]
        bits, flat = seeder.terms.view(np.int64), self.flat
        seeder.each_tile(
            lambda t, a, b: kernel(
                flat, a, b, seed, seeder.nearest, seeder.dataset.weights, low, high,
                seeder.terms[t], bits[t], seeder.totals, seeder.tops,
            ), 1.0 + 0.1 * self.d,
        )  # fmt: skip
