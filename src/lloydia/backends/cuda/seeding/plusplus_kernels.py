"""The kernels of k-means++: draws by weight times D, and the potentials of candidates.

A tile is TILE consecutive rows.  Its terms, rounded to the grid of
:func:`lloydia.exact.sums.total_grid`, add up to an integer, so that a draw reads the rows of one
tile only.
"""

from __future__ import annotations

import triton
import triton.language as tl

from lloydia.backends.cuda.rows.distances import squares
from lloydia.backends.cuda.rows.totals import exponent_of, power, raise_to, rounded, term_of

__all__ = [
    "BLOCK",
    "SPAN",
    "TILE",
    "accept_candidate",
    "add_potentials",
    "draw",
    "fetch",
    "sum_tiles",
]

TILE = tl.constexpr(1024)  # rows of a tile
SPAN = tl.constexpr(1024)  # tiles that a draw reads at a time
BLOCK = tl.constexpr(128)  # rows of a program that computes distances: one for each thread


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


@triton.jit(do_not_specialize=["n", "bits"])
def sum_tiles(nearest, weights, largest, totals, n, bits):
    """Write the integer sum of the terms of each tile."""
    tile = tl.program_id(0).to(tl.int64)
    rows = tile * TILE + tl.arange(0, TILE)
    low, high = factors(largest, bits)
    terms = rounded(term_of(nearest, weights, rows, rows < n) * low * high)
    tl.store(totals + tile, tl.sum(terms.to(tl.int64), axis=0))


@triton.jit(do_not_specialize=["n", "n_tiles", "bits"])
def draw(fractions, totals, nearest, weights, largest, rows, n, n_tiles, bits):
    """Write the first row whose running sum exceeds a fraction of the total; -1 where that is 0."""
    offsets = tl.arange(0, SPAN)
    sums = tl.zeros([SPAN], tl.int64)
    for first in range(0, n_tiles, SPAN):
        sums += tl.load(totals + first + offsets, mask=first + offsets < n_tiles, other=0)
    total = tl.sum(sums, axis=0)
    target = fraction_of(tl.load(fractions + tl.program_id(0)), total)
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
    low, high = factors(largest, bits)
    terms = rounded(term_of(nearest, weights, within, within < n) * low * high).to(tl.int64)
    below_target = before + tl.cumsum(terms, axis=0) <= target
    row = start * TILE + tl.sum(below_target.to(tl.int64), axis=0)
    tl.store(rows + tl.program_id(0), tl.where(total > 0, row, -1))


@triton.jit(do_not_specialize=["count"])
def fetch(X, rows, table, count, d, COUNT: tl.constexpr, CHUNK: tl.constexpr):
    """Write rows as candidates, feature by feature, float64; the first one repeats past `count`."""
    t = tl.program_id(0)
    row = tl.maximum(tl.load(rows + tl.where(t < count, t, 0)), 0)
    for first in range(0, d, CHUNK):
        f = first + tl.arange(0, CHUNK)
        x = tl.load(X + row * d + f, mask=f < d, other=0.0)
        tl.store(table + f * COUNT + t, x.to(tl.float64), mask=f < d)


@triton.jit(do_not_specialize=["n", "bits", "count"])
def add_potentials(
    columns, row_pitch, feature_pitch, table, nearest, weights, largest, improved, potentials, n, d,
    bits, count, COUNT: tl.constexpr,
):  # fmt: skip
    """Add up the potential of each candidate; mark the candidates that are nearer to each row.

    Bit t of `improved` belongs to candidate t.
    """
    candidate = tl.arange(0, COUNT)
    low, high = factors(largest, bits)
    sums = tl.zeros([COUNT, BLOCK], tl.int64)
    rows = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    for _ in range(tl.program_id(0), tl.cdiv(n, BLOCK), tl.num_programs(0)):
        inside = rows < n
        x_at = columns + rows * row_pitch
        D = squares(x_at, feature_pitch, inside, table + candidate, COUNT, d, COUNT)
        near = tl.load(nearest + rows, mask=inside, other=0.0)
        bit = (D < near[None, :]).to(tl.int32) << candidate[:, None]
        tl.store(improved + rows, tl.sum(bit, axis=0), mask=inside)
        terms = tl.minimum(D, near[None, :])
        if weights is not None:
            terms = tl.load(weights + rows, mask=inside, other=0.0)[None, :] * terms
        sums += rounded(terms * low * high).to(tl.int64)
        rows += tl.num_programs(0) * BLOCK
    total = tl.sum(sums, axis=1)
    tl.atomic_add(potentials + candidate, total, mask=candidate < count, sem="relaxed")


@triton.jit(do_not_specialize=["n", "count"])
def accept_candidate(
    columns, row_pitch, feature_pitch, table, nearest, weights, largest, improved, potentials, n, d,
    count, COUNT: tl.constexpr,
):  # fmt: skip
    """Make the candidate with the smallest potential a seed; ties go to the first.

    Without potentials, candidate 0 becomes a seed and every row is read.  `largest` becomes the
    largest term, if it was 0.
    """
    if potentials is None:
        best = 0
    else:
        candidate = tl.arange(0, COUNT)
        total = tl.load(potentials + candidate, mask=candidate < count, other=2**63 - 1)
        best = tl.min(tl.where(total == tl.min(total, axis=0), candidate, COUNT), axis=0)
    top = tl.zeros([BLOCK], tl.float64)
    rows = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    c_at = table + best + tl.arange(0, 1)
    for _ in range(tl.program_id(0), tl.cdiv(n, BLOCK), tl.num_programs(0)):
        inside = rows < n
        near = tl.load(nearest + rows, mask=inside, other=0.0)
        nearer = inside
        if potentials is not None:
            nearer = (tl.load(improved + rows, mask=inside, other=0) >> best & 1) != 0
        if tl.max(nearer.to(tl.int32), axis=0) != 0:
            D = squares(columns + rows * row_pitch, feature_pitch, nearer, c_at, COUNT, d, 1)
            near = tl.where(nearer, tl.minimum(near, tl.sum(D, axis=0)), near)
            tl.store(nearest + rows, near, mask=nearer)
        if weights is not None:
            near = tl.load(weights + rows, mask=inside, other=0.0) * near
        top = tl.maximum(top, near)
        rows += tl.num_programs(0) * BLOCK
    raise_to(largest, tl.max(top, axis=0))
