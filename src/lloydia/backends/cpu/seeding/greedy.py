"""k-means++ on few rows of few features, in one kernel.

The kernel does what :func:`lloydia.seeding.plusplus.plusplus` does with :mod:`seeder`, with the
same integers.  For few rows, calls between the steps would take most of the time.  Rows are stored
feature-major; the last tile is filled up with the last row, at weight 0.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from lloydia.backends.cpu.runtime.compiled import LEAN, kernel, maximum, subroutine
from lloydia.backends.cpu.runtime.counting import upto
from lloydia.backends.cpu.seeding.weights import ROUNDER, ROUNDER_BITS, TILE, find

__all__ = ["MAX_DISTANCES", "MAX_ROWS", "greedy_of"]

# The kernel takes at most this many rows: they all stay in the cache.
MAX_ROWS = 1 << 14

# The kernel evaluates at most this many distances, which takes about a second.  For more, separate
# steps take no longer, and can show progress and be interrupted.
MAX_DISTANCES = 1 << 28


@subroutine(inline="always")
def two_factors(bits, largest):
    """Return two powers of two that bring a term to the grid: see exact.sums.total_grid."""
    exponent = bits - math.frexp(largest)[1]
    half = exponent // 2
    return math.ldexp(1.0, half), math.ldexp(1.0, exponent - half)


@subroutine(inline="always")
def fraction_of(u, total):
    """Return ``floor(u * total)`` of a total below 2**62: exact.sums.fraction_of."""
    half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    a, b = np.uint64(u * 2.0**53), np.uint64(total)
    low = (a & mask) * (b & mask)
    middle = (a >> half) * (b & mask) + (a & mask) * (b >> half) + (low >> half)
    high = (a >> half) * (b >> half) + (middle >> half)
    low = middle << half | low & mask
    return np.int64(high << np.uint64(11) | low >> np.uint64(53))


@subroutine(**LEAN)
def sum_terms(near, w, low, high, totals, terms, bits):
    """Write the integer sum of the terms of each tile, and return that of all."""
    total = np.int64(0)
    for tile in upto(len(totals)):
        at, of_tile = tile * TILE, np.int64(0)
        for p in upto(TILE):
            terms[p] = w[at + p] * near[at + p] * low * high + ROUNDER
        for p in upto(TILE):
            of_tile += bits[p] - ROUNDER_BITS
        totals[tile] = of_tile
        total += of_tile
    return total


@subroutine(inline="always")
def largest_term(near, w):
    """Return the largest weight times D."""
    top = 0.0
    for p in upto(len(near)):
        top = maximum(top, w[p] * near[p])
    return top


@lru_cache
def greedy_of(d: int):
    """Return the kernel for exactly `d` features."""

    @kernel(**LEAN)
    def greedy(
        flat, weights, first, fractions, bits, rows, terms, term_bits, scratch, totals, trial_totals
    ):
        """Write the chosen rows; return how many, which is fewer than k if every D becomes 0.

        Parameters
        ----------
        flat : IN, ndarray (n * d,)
            The rows, contiguous.
        weights : IN, ndarray (n,) or (0,), float64
        first : float
            In [0, 1): draws the first row, by weight.
        fractions : IN, ndarray (k - 1, n_trials)
            In [0, 1): each row of them draws the candidates for one seed.
        bits : int
            Bits per limb, see :mod:`lloydia.exact.sums`.
        rows : OUT, ndarray (k,), int64
        terms, term_bits : scratch, ndarray (TILE,), float64 and int64
            The same memory.
        scratch : ndarray (d + 3, size), float64
            `size` is the number of rows of all tiles.
        totals, trial_totals : scratch, ndarray (n_tiles,), int64
        """
        n = len(flat) // d
        size = scratch.shape[1]
        near, w, improved = scratch[d], scratch[d + 1], scratch[d + 2]
        for p in upto(size):
            i = p if p < n else n - 1
            near[p] = 1.0
            w[p] = 0.0 if p >= n else weights[i] if len(weights) else 1.0
            for f in upto(d):
                scratch[f, p] = flat[i * d + f]
        for seed in upto(len(rows)):
            low, high = two_factors(bits, largest_term(near, w))
            total = sum_terms(near, w, low, high, totals, terms, term_bits)
            if total == 0:
                return seed
            best = best_potential = -1
            # The last pass, after the trials, lowers D by the best candidate.
            n_trials = fractions.shape[1] if seed else 1
            for trial in upto(n_trials + 1):
                i = best
                if trial < n_trials:
                    u = fractions[seed - 1, trial] if seed else first
                    i = find(near, w, totals, low, high, fraction_of(u, total))
                elif seed == 0:
                    for p in upto(size):
                        near[p] = np.inf
                for p in upto(size):
                    D = 0.0
                    for f in upto(d):
                        difference = scratch[f, p] - scratch[f, i]
                        D += difference * difference
                    improved[p] = D if D < near[p] else near[p]
                if trial < n_trials:
                    potential = sum_terms(improved, w, low, high, trial_totals, terms, term_bits)
                    if best < 0 or potential < best_potential:
                        best, best_potential = i, potential
            near, improved = improved, near
            rows[seed] = best
        return len(rows)

    return greedy
