"""Weight times distance as integers, tile by tile: what k-means++ draws from.

A tile is TILE consecutive rows.  For each the seedings keep the integer sum of its terms, so that a
draw looks at one tile's rows only, and the largest term, from which the grid follows.  Both change
by what the rows that a new seed lowers lose.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from lloydia.backends.cpu.runtime.compiled import LEAN, kernel, part, subroutine
from lloydia.backends.cpu.runtime.counting import upto

__all__ = [
    "LOW",
    "MOST",
    "ROUNDER",
    "TILE",
    "draw",
    "everywhere",
    "find",
    "fixed",
    "sum_and_top",
    "survey",
]

TILE = 256

# Features up to which all distances are canonical from the start.
LOW = 8

# Candidates that are weighed at a time.  A hit is a row that some of them lower: its number in the
# tile, then a bit a candidate.
MOST = 16


# Adding it to a number of magnitude up to 2**51 rounds that to an integer, ties to even, and leaves
# it in the low bits: rint in one instruction, of which every host has vectors.
ROUNDER = 1.5 * 2.0**52
ROUNDER_BITS = int(np.float64(ROUNDER).view(np.int64))


@intrinsic
def fixed(typingctx, D, w, low, high):
    """Round ``w * D * low * high`` to an integer; the two factors are powers of two."""
    signature = types.int64(*[types.float64] * 4)

    def codegen(context, builder, sig, args):
        D, w, low, high = args
        term = builder.fmul(builder.fmul(builder.fmul(w, D), low), high)
        rounder = ir.Constant(ir.DoubleType(), ROUNDER)
        term = builder.fsub(builder.fadd(term, rounder), rounder)
        return builder.fptosi(term, ir.IntType(64))

    return signature, codegen


@subroutine(inline="always")
def sum_and_top(near, w, low, high, terms, bits):
    """Return the sum of :func:`fixed` over the rows of a tile, and the largest weight times D.

    A vector at a time: floats of one sign order as integers.  `terms` is scratch for TILE numbers,
    and `bits` the same memory as integers.
    """
    top = total = np.int64(0)
    for p in upto(len(near)):
        terms[p] = w[p] * near[p] if len(w) else near[p]
    for p in upto(len(near)):
        top = bits[p] if bits[p] > top else top
    for p in upto(len(near)):
        terms[p] = terms[p] * low * high + ROUNDER
    for p in upto(len(near)):
        total += bits[p] - ROUNDER_BITS
    bits[0] = top
    return total, terms[0]


@kernel(**LEAN)
def survey(nearest, weights, first, last, low, high, terms, bits, totals, tops):
    """Write the integer sums and the largest terms of the tiles whose largest is NaN."""
    for tile in upto(first, last):
        top = tops[tile]
        if top != top:
            start, stop = tile * TILE, (tile + 1) * TILE
            near, w = part(nearest, start, stop), part(weights, start, stop)
            totals[tile], tops[tile] = sum_and_top(near, w, low, high, terms, bits)


@subroutine(inline="always")
def find(nearest, weights, totals, low, high, rest):
    """Return the first row whose running integer sum exceeds `rest`, which is below that of all."""
    tile = 0
    while rest >= totals[tile]:
        rest -= totals[tile]
        tile += 1
    i = tile * TILE
    while True:
        rest -= fixed(nearest[i], weights[i] if len(weights) else 1.0, low, high)
        if rest < 0:
            return i
        i += 1


@kernel(**LEAN)
def draw(nearest, weights, totals, low, high, targets, rows):
    """Write for each target the first row whose running integer sum exceeds it."""
    for t in upto(len(targets)):
        rows[t] = find(nearest, weights, totals, low, high, targets[t])


def everywhere(hits: NDArray[np.uint32], counts: NDArray[np.int64]) -> None:
    """List every row of every tile as a hit of candidate 0."""
    pattern = (np.arange(TILE) << MOST | 1).astype(np.uint32)
    whole = len(hits) - len(hits) % TILE
    hits[:whole].reshape(-1, TILE)[:] = pattern
    hits[whole:] = pattern[: len(hits) - whole]
    counts.fill(TILE)
    counts[-1] = len(hits) - (len(counts) - 1) * TILE
