"""Weight times distance as integers, tile by tile: what k-means++ draws from.

A tile is TILE consecutive rows.  For each the seedings keep the integer sum of its terms, so that a
draw looks at one tile's rows only, and the largest term, from which the grid follows.  Both change
by what the rows that a new seed lowers lose.
"""

from __future__ import annotations

import numpy as np

from lloydia.backends.cpu.compiled import kernel

__all__ = [
    "MOST",
    "ROUNDER",
    "TILE",
    "draw",
    "everywhere",
    "fixed",
    "sum_terms",
    "top_term",
    "top_terms",
    "total_terms",
]

TILE = 256

# Candidates that are weighed at a time.  A hit is a row that some of them lower: its number in the
# tile, then a bit a candidate.
MOST = 16


# Adding it to a number of magnitude up to 2**51 rounds that to an integer, ties to even, and leaves
# it in the low bits: rint in one instruction, of which every host has vectors.
ROUNDER = 1.5 * 2.0**52
ROUNDER_BITS = int(np.float64(ROUNDER).view(np.int64))


@kernel
def fixed(D, w, low, high):
    """Round ``w * D * low * high`` to an integer; the two factors are powers of two."""
    return np.int64((w * D * low * high + ROUNDER) - ROUNDER)


@kernel
def sum_terms(nearest, weights, start, stop, low, high, terms):
    """Return the sum of :func:`fixed` over the rows of a tile, a vector at a time.

    `terms` is scratch for TILE numbers.
    """
    near, w = nearest[start:stop], weights[start:stop]
    for p in range(len(near)):
        terms[p] = (w[p] if len(w) else 1.0) * near[p] * low * high + ROUNDER
    bits = terms.view(np.int64)
    total = np.int64(0)
    for p in range(len(near)):
        total += bits[p] - ROUNDER_BITS
    return total


@kernel
def top_term(nearest, weights, start, stop, terms):
    """Return the largest weight times distance of a tile; floats of one sign order as integers."""
    near, w = nearest[start:stop], weights[start:stop]
    for p in range(len(near)):
        terms[p] = w[p] * near[p] if len(w) else near[p]
    bits = terms.view(np.int64)
    top = np.int64(0)
    for p in range(len(near)):
        top = bits[p] if bits[p] > top else top
    bits[0] = top
    return terms[0]


@kernel
def total_terms(nearest, weights, first, last, low, high, totals):
    """Write the integer sums of tiles `first` to `last`."""
    terms = np.empty(TILE)
    for tile in range(first, last):
        stop = min((tile + 1) * TILE, len(nearest))
        totals[tile] = sum_terms(nearest, weights, tile * TILE, stop, low, high, terms)


@kernel
def top_terms(nearest, weights, first, last, tops):
    """Write the largest weight times distance of the tiles where it is NaN."""
    terms = np.empty(TILE)
    for tile in range(first, last):
        if np.isnan(tops[tile]):
            stop = min((tile + 1) * TILE, len(nearest))
            tops[tile] = top_term(nearest, weights, tile * TILE, stop, terms)


@kernel
def draw(nearest, weights, totals, low, high, targets, rows):
    """Write for each target the first row whose running integer sum exceeds it."""
    for t in range(len(targets)):
        rest = targets[t]
        tile = 0
        while rest >= totals[tile]:
            rest -= totals[tile]
            tile += 1
        i = tile * TILE
        while True:
            rest -= fixed(nearest[i], weights[i] if len(weights) else 1.0, low, high)
            if rest < 0:
                break
            i += 1
        rows[t] = i


@kernel
def everywhere(hits, counts):
    """List every row of every tile as a hit of candidate 0."""
    for i in range(len(hits)):
        hits[i] = np.uint32(i % TILE) << np.uint32(MOST) | np.uint32(1)
    for tile in range(len(counts)):
        counts[tile] = min(TILE, len(hits) - tile * TILE)
