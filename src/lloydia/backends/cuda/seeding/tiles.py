"""Draws by weight times D: a tile of rows has one integer sum, so that a draw reads one tile only.

A tile is TILE consecutive rows.  Its terms are rounded to the grid of
:func:`lloydia.exact.sums.total_grid`, which follows from the largest.  `terms` has two numbers: one
that determines the grid of the sums, and the largest term.

A *step* adds one seed.  Its kernels are always launched with the same arguments: a counter on the
device determines which draws they read and where they write their results.
"""

from __future__ import annotations

import triton
import triton.language as tl

from lloydia.backends.cuda.device_functions.exact_numbers import rint
from lloydia.backends.cuda.device_functions.run_state import wait_for_previous_kernel
from lloydia.backends.cuda.rows.totals import exponent_of, power, raise_to, term_of
from lloydia.backends.cuda.seeding.int8_rows import encode_candidate

__all__ = ["TILE", "best_of", "draw", "end_step", "factors", "raise_largest", "sum_of", "sum_tiles"]

TILE = tl.constexpr(1024)  # rows of a tile
SPAN = tl.constexpr(1024)  # tiles that a draw reads at a time


@triton.jit
def factors(largest, bits):
    """Return two powers of two, whose product brings a term to the grid."""
    exponent = bits - exponent_of(tl.load(largest))
    half = exponent >> 1
    return power(half), power(exponent - half)


@triton.jit
def fraction_of(u, total):
    """Return ``floor(u * total)``, see :func:`lloydia.exact.sums.fraction_of`."""
    u = (u * 9007199254740992.0).to(tl.int64)
    return (tl.umulhi(u, total) << 11) | ((u * total >> 53) & 2047)


@triton.jit
def best_of(changes, count):
    """Return the first of the candidates, at most 16, with the least change."""
    candidate = tl.arange(0, 16)
    change = tl.load(changes + candidate, mask=candidate < count, other=2**63 - 1)
    return tl.min(tl.where(change == tl.min(change, axis=0), candidate, 16), axis=0)


@triton.jit
def sum_of(term, low, high):
    """Return the integer sum of terms, brought to the grid by two factors."""
    return tl.sum(rint(term * low * high).to(tl.int64), axis=0)


@triton.jit
def raise_largest(terms, term):
    """Raise the largest term to the largest of some."""
    top = tl.max(term, axis=0)
    # A plain load first: few programs find a larger one.
    if top > tl.load(terms + 1, volatile=True):
        raise_to(terms + 1, top)


@triton.jit(do_not_specialize=["weighted", "n", "bits"])
def sum_tiles(nearest, weights, weighted, terms, totals, n, bits):
    """Write the integer sum of each tile's terms, on the present grid; raise the largest."""
    wait_for_previous_kernel()
    tile = tl.program_id(0).to(tl.int64)
    rows = tile * TILE + tl.arange(0, TILE)
    low, high = factors(terms, bits)
    term = term_of(nearest, weights, weighted, rows, rows < n)
    tl.store(totals + tile, sum_of(term, low, high))
    raise_largest(terms, term)


@triton.jit(do_not_specialize=["weighted", "n", "n_tiles", "bits"])
def end_step(nearest, weights, weighted, terms, totals, step, n, n_tiles, bits):
    """Sum all tiles again if the largest term has another grid; count the step."""
    wait_for_previous_kernel()
    if tl.program_id(0) == 0:
        tl.store(step, tl.load(step) + 1)
    if exponent_of(tl.load(terms)) != exponent_of(tl.load(terms + 1)):
        low, high = factors(terms + 1, bits)
        for tile in range(tl.program_id(0), n_tiles, tl.num_programs(0)):
            rows = (tl.zeros([], tl.int64) + tile) * TILE + tl.arange(0, TILE)
            term = term_of(nearest, weights, weighted, rows, rows < n)
            tl.store(totals + tile, sum_of(term, low, high))


@triton.jit
def drawn_row(u, totals, nearest, weights, weighted, terms, n, n_tiles, bits):
    """Return the first row whose running sum exceeds a fraction of the total; -1 if that is 0."""
    offsets = tl.arange(0, SPAN)
    sums = tl.zeros([SPAN], tl.int64)
    for first in range(0, n_tiles, SPAN):
        sums += tl.load(totals + first + offsets, mask=first + offsets < n_tiles, other=0)
    total = tl.sum(sums, axis=0)
    target = fraction_of(u, total)
    # The tiles before the drawn one are those whose running sum does not exceed the target.
    start = tl.zeros([], tl.int64)
    before = tl.zeros([], tl.int64)
    running = tl.zeros([], tl.int64)
    for first in range(0, n_tiles, SPAN):
        part = tl.load(totals + first + offsets, mask=first + offsets < n_tiles, other=0)
        sums = running + tl.cumsum(part, axis=0)
        start += tl.sum((sums <= target).to(tl.int64), axis=0)
        before = tl.maximum(before, tl.max(tl.where(sums <= target, sums, 0), axis=0))
        running += tl.sum(part, axis=0)
    within = start * TILE + tl.arange(0, TILE)
    low, high = factors(terms + 1, bits)
    term = term_of(nearest, weights, weighted, within, within < n)
    term = rint(term * low * high).to(tl.int64)
    below_target = before + tl.cumsum(term, axis=0) <= target
    row = start * TILE + tl.sum(below_target.to(tl.int64), axis=0)
    return tl.where(total > 0, row, -1)


@triton.jit(
    do_not_specialize=["weighted", "n", "n_tiles", "bits", "count", "takes"],
    do_not_specialize_on_alignment=["fractions", "rows"],
)
def draw(
    fractions, step, totals, nearest, weights, weighted, terms, rows, n, n_tiles, bits, count,
    X, table, takes, d, n_pairs, offsets, frame, digits, numbers, width, BLOCK: tl.constexpr,
):  # fmt: skip
    """Each program draws a row and makes it a candidate.

    Parameters
    ----------
    fractions : float64 (steps, count), IN
    step : int32 (1,), IN
    totals : int64 (n_tiles,), IN
    nearest : float64 (n,), IN
    weights, weighted
        As for :func:`~lloydia.backends.cuda.rows.totals.load_weights`.
    terms : float64 (2,), IN and OUT
        The first becomes the second, the largest term, whose grid the totals have.
    rows : int64 (steps, count), OUT
        What is drawn, -1 where all D are 0.
    n, n_tiles, bits, count : int, IN
    X : (n, d), IN
    table : (16, d), OUT
        The rows as candidates, float32 or float64, if `takes` is 1.
    takes, d : int, IN
    n_pairs : int64 (1,), OUT, or None
        It becomes 0.
    offsets, frame, digits, numbers, width
        As for :func:`lloydia.backends.cuda.seeding.int8_rows.encode_candidate`; or None.
    """
    wait_for_previous_kernel()
    t = tl.program_id(0)
    if t == 0:
        tl.store(terms, tl.load(terms + 1))
        if n_pairs is not None:
            tl.store(n_pairs, tl.zeros([], tl.int64))
    at = tl.load(step) * count + t
    row = drawn_row(
        tl.load(fractions + at), totals, nearest, weights, weighted, terms, n, n_tiles, bits
    )
    tl.store(rows + at, row)
    if takes != 0:
        x_at = X + tl.maximum(row, 0) * d
        for first in range(0, d, BLOCK):
            f = first + tl.arange(0, BLOCK)
            x = tl.load(x_at + f, mask=f < d, other=0.0)
            tl.store(table + t * d + f, x.to(table.dtype.element_ty), mask=f < d)
        if digits is not None:
            double: tl.constexpr = table.dtype.element_ty == tl.float64
            encode_candidate(x_at, t, offsets, frame, digits, numbers, d, width, double, BLOCK)
