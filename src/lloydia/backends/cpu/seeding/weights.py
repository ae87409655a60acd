"""Weight times distance as integers, tile by tile: k-means++ draws rows by these.

A tile is TILE consecutive rows, and a term is a row's weight times its D.  For each tile a seeding
keeps the integer sum of its terms, so that a draw reads the rows of one tile only, and the largest
term, from which the grid of the integers follows.
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
    "LOW_DIM",
    "MAX_CANDIDATES",
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

# Up to this many features, canonical distances are evaluated for all rows, without a screen.
LOW_DIM = 8

# Candidates that are evaluated at a time.  A row whose D some of them lower is listed as its number
# in the tile, shifted by this many bits, and a bit per candidate.
MAX_CANDIDATES = 16

# Adding this to a number of magnitude up to 2**51 rounds it to an integer, ties to even, and leaves
# the integer in the low bits.  Every processor has vectors of this instruction, unlike of rint.
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

    Non-negative floats are compared as integers, which vectorises.  `terms` is scratch for TILE
    numbers, `bits` the same memory as int64.
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
    """Sum the terms of tiles `first` to `last` whose largest term is not known.

    Parameters
    ----------
    nearest : IN, ndarray (n,), float64
        D of each row.
    weights : IN, ndarray (n,) or (0,), float64
    low, high : float
        Powers of two whose product brings a term to its grid.
    terms, bits : scratch, ndarray (TILE,), float64 and int64
        The same memory.
    totals : OUT, ndarray (n_tiles,), int64
    tops : IN/OUT, ndarray (n_tiles,), float64
        The largest terms; NaN marks those to compute.
    """
    for tile in upto(first, last):
        top = tops[tile]
        if top != top:
            start, stop = tile * TILE, (tile + 1) * TILE
            near, w = part(nearest, start, stop), part(weights, start, stop)
            totals[tile], tops[tile] = sum_and_top(near, w, low, high, terms, bits)


@subroutine(inline="always")
def find(nearest, weights, totals, low, high, remainder):
    """Return the first row whose running integer sum exceeds `remainder`, less than the total."""
    tile = 0
    while remainder >= totals[tile]:
        remainder -= totals[tile]
        tile += 1
    i = tile * TILE
    while True:
        remainder -= fixed(nearest[i], weights[i] if len(weights) else 1.0, low, high)
        if remainder < 0:
            return i
        i += 1


@kernel(**LEAN)
def draw(nearest, weights, totals, low, high, targets, rows):
    """Write for each target the first row whose running integer sum exceeds it."""
    for t in upto(len(targets)):
        rows[t] = find(nearest, weights, totals, low, high, targets[t])


def everywhere(hits: NDArray[np.uint32], counts: NDArray[np.int64]) -> None:
    """List every row of every tile, as if candidate 0 lowered its D."""
    pattern = (np.arange(TILE) << MAX_CANDIDATES | 1).astype(np.uint32)
    n_whole = len(hits) - len(hits) % TILE
    hits[:n_whole].reshape(-1, TILE)[:] = pattern
    hits[n_whole:] = pattern[: len(hits) - n_whole]
    counts.fill(TILE)
    counts[-1] = len(hits) - (len(counts) - 1) * TILE
