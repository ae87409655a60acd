r"""Sums of few clusters by matrix products: digits of rows times which clusters they move between.

A row's integers :math:`v_f` (a limb of :func:`lloydia.exact.sums.limbs`) are written in base
256, :math:`v_f + 2^{8q-1} = \sum_{i<q} 256^i b_{fi}`.  With a column of ones there is a matrix B of
a row's digits, and with :math:`M_j` = 1 for the cluster that a row goes to and -1 for the one it
leaves, :math:`B^T M` are sums of whole numbers below :math:`2^{24}`: matrix units add them in
float16 and float32 without an error, and a program adds to memory once.
"""

from __future__ import annotations

import triton
import triton.language as tl

from lloydia.backends.cuda.barrier import THREADS
from lloydia.backends.cuda.exact_numbers import SHIFT, whole
from lloydia.backends.cuda.launching import next_power
from lloydia.backends.cuda.low_scores import features

__all__ = ["digit_shape", "sum_rows"]

# Up to so many clusters, and columns of digits.
FEW_CLUSTERS, DIGIT_COLUMNS = 32, 32
# Atomic operations are faster where a thread lists so few rows, and of fewer rows in all.
LEAST_SUMMED = 1 << 14
FEW_LIMBS, FEW_STEPS = tl.constexpr(2), tl.constexpr(4)
# Rows that a warp adds up together, and how often before sums may pass 2**24.
LANES, STRIP, WARPS = tl.constexpr(THREADS), tl.constexpr(128), tl.constexpr(THREADS // 32)
TILE = tl.constexpr(128 * THREADS // 32)
STEPS = tl.constexpr(2**24 // 255 // 128)


def digit_shape(n: int, d: int, k: int, bits: int) -> tuple[int, int, int]:
    """Return q, the columns of B and those of M, or 0 where atomic operations are the way.

    An integer of magnitude ``2**bits`` and its sign have q digits.
    """
    digits = (bits + 9) // 8
    width, clusters = next_power(d * digits + 1, 16), next_power(k, 16)
    if n >= LEAST_SUMMED and width <= DIGIT_COLUMNS and clusters <= FEW_CLUSTERS:
        return digits, width, clusters
    return 0, 0, 0


@triton.jit
def digit(v, i: tl.constexpr):
    """Return a digit as float16."""
    # The last bits of 1024 + b are those of b.
    byte = (v >> (8 * i)).to(tl.int16) & 255
    return (byte | 0x6400).to(tl.float16, bitcast=True) - 1024.0


@triton.jit
def joined(columns, COUNT: tl.constexpr):
    """Return vectors as the columns of a matrix; there are COUNT, a power of two up to 64."""
    for level in tl.static_range(1, 7):
        if COUNT >> level > 0:
            before = columns
            columns = ()
            for i in tl.static_range(COUNT >> level):
                columns = columns + (tl.join(before[i], before[i + (COUNT >> level)]),)
    return columns[0]


@triton.jit
def digit_matrix(p, lattice, d: tl.constexpr, DIGITS: tl.constexpr, COLUMNS: tl.constexpr):
    """Return the digits of a limb of TILE rows, feature by feature, and a column of ones last.

    `p` are their products, or what the limbs before left.
    """
    half: tl.constexpr = 1 << (8 * DIGITS - 1)
    # The last bits of a sum with the shift are those of the integer.
    zero = tl.full((), SHIFT, tl.float64).to(tl.int64, bitcast=True) - half
    columns = ()
    for f in tl.static_range(d):
        inverse = tl.load(lattice + 2 * (d + 1) + f)
        v = (p[f] * inverse + SHIFT).to(tl.int64, bitcast=True) - zero
        for i in tl.static_range(DIGITS):
            columns = columns + (digit(v, i),)
    for i in tl.static_range(d * DIGITS, COLUMNS):
        columns = columns + (tl.full((TILE,), 1.0 if i == COLUMNS - 1 else 0.0, tl.float16),)
    return joined(columns, COLUMNS).reshape(WARPS, STRIP, COLUMNS)


@triton.jit
def move_matrix(new, old, CLUSTERS: tl.constexpr):
    """Return 1 for the clusters that TILE rows go to, -1 for those that they leave."""
    columns = ()
    for j in tl.static_range(CLUSTERS):
        off = tl.where(old == j, -1.0, 0.0).to(tl.float16)
        columns = columns + (tl.where(new == j, 1.0, off),)
    return joined(columns, CLUSTERS).reshape(WARPS, STRIP, CLUSTERS)


@triton.jit
def rest_of(p, lattice, bits, d: tl.constexpr):
    """Return what a limb leaves of products, raised by ``2**bits``."""
    step = ((1023 + bits.to(tl.int64)) << 52).to(tl.float64, bitcast=True)
    rest = ()
    for f in tl.static_range(d):
        v = whole(p[f] * tl.load(lattice + 2 * (d + 1) + f))
        rest = rest + ((p[f] - v * tl.load(lattice + d + 1 + f)) * step,)
    return rest


@triton.jit
def left(p, d: tl.constexpr):
    """Return whether any of some vectors is not 0."""
    some = p[0] != 0
    for f in tl.static_range(1, d):
        some = some | (p[f] != 0)
    return tl.max(some.to(tl.int32), 0) > 0


@triton.jit
def add_totals(
    found, first, lattice, sums, k, d: tl.constexpr, DIGITS: tl.constexpr,
    COLUMNS: tl.constexpr, CLUSTERS: tl.constexpr,
):  # fmt: skip
    """Add sums of digits, (WARPS, COLUMNS, CLUSTERS), to the sums of clusters.

    Weights are in the `first` limb alone.
    """
    j = tl.arange(0, CLUSTERS)
    column = tl.arange(0, COLUMNS)
    place = tl.where(column < d * DIGITS, column % DIGITS, 0).to(tl.int64)
    parts = tl.sum(found.to(tl.int32), 0).to(tl.int64) << (8 * place)[:, None]
    count = tl.sum(tl.where((column == COLUMNS - 1)[:, None], parts, 0), 0)
    for f in tl.static_range(d):
        own = (column < d * DIGITS) & (column // DIGITS == f)
        total = tl.sum(tl.where(own[:, None], parts, 0), 0) - (count << (8 * DIGITS - 1))
        tl.atomic_add(sums + j * (d + 1) + f, total, mask=(j < k) & (total != 0), sem="relaxed")
    if first:
        unit = whole(tl.load(lattice + d) * tl.load(lattice + 2 * (d + 1) + d)).to(tl.int64)
        mask = (j < k) & (count != 0)
        tl.atomic_add(sums + j * (d + 1) + d, count * unit, mask=mask, sem="relaxed")


@triton.jit
def places(tile, n, labelled, listed_rows, listed_old, n_listed, steps, EACH: tl.constexpr):
    """Return the rows of a tile, the clusters that they leave, if any, and which are there."""
    entry = tl.arange(0, TILE)
    at = tile * TILE + entry
    i = at // LANES
    first = tl.program_id(0) + i // EACH * tl.num_programs(0)
    rows = (first * EACH + i % EACH) * LANES + entry % LANES
    there = (i < steps) & (rows < n)
    old = tl.full((TILE,), -1, tl.int32)
    if labelled:
        there = i < n_listed
        rows = tl.load(listed_rows + at, mask=there, other=0)
        old = tl.load(listed_old + at, mask=there, other=-1)
    return rows, old, there


@triton.jit
def contents(X, labels, places, d: tl.constexpr):
    """Return the clusters that the rows of a tile go to, those that they leave, and the rows."""
    rows, old, there = places
    new = tl.load(labels + rows, mask=there, other=-1)
    return new, old, features(X, rows.to(tl.int64) * d, there, d)


@triton.jit
def sum_rows(
    X, n, k, labels, labelled, listed_rows, listed_old, counts, steps, lattice, sums,
    bits, n_limbs, limb_size, d: tl.constexpr, EACH: tl.constexpr, DIGITS: tl.constexpr,
    COLUMNS: tl.constexpr, CLUSTERS: tl.constexpr,
):  # fmt: skip
    """Move the rows that this program's threads list, or all of its rows.

    All if they are not `labelled`.  A thread lists as many as its entry of `counts` says; `steps`
    is the most rows of a thread.  Where these are few, or sums have more than FEW_LIMBS, none is
    moved.  Returns the steps that are left.
    """
    refused = (steps <= FEW_STEPS * labelled) | (n_limbs > FEW_LIMBS)
    n_listed = tl.load(counts + tl.arange(0, TILE) % LANES)
    tiles = tl.where(refused, 0, tl.cdiv(steps, TILE // LANES))
    for begin in range(0, tiles, STEPS):
        found = tl.zeros((WARPS, COLUMNS, CLUSTERS), tl.float32)
        second = found
        first = places(begin, n, labelled, listed_rows, listed_old, n_listed, steps, EACH)
        here = contents(X, labels, first, d)
        coming = places(begin + 1, n, labelled, listed_rows, listed_old, n_listed, steps, EACH)
        for tile in tl.range(begin, tl.minimum(begin + STEPS, tiles), num_stages=1):
            new, old, x = here
            # The next tile is on its way while this one is added up, and where that after it is.
            here = contents(X, labels, coming, d)
            coming = places(tile + 2, n, labelled, listed_rows, listed_old, n_listed, steps, EACH)
            p = ()
            for f in tl.static_range(d):
                p = p + (x[f].to(tl.float64) * tl.load(lattice + f),)
            moves = move_matrix(new, old, CLUSTERS)
            digits = digit_matrix(p, lattice, d, DIGITS, COLUMNS)
            found = tl.dot(tl.trans(digits, (0, 2, 1)), moves, found)
            if n_limbs > 1:
                p = rest_of(p, lattice, bits, d)
                # Of float32 rows mostly all of a tile leave nothing.
                if left(p, d):
                    digits = digit_matrix(p, lattice, d, DIGITS, COLUMNS)
                    second = tl.dot(tl.trans(digits, (0, 2, 1)), moves, second)
        add_totals(found, True, lattice, sums, k, d, DIGITS, COLUMNS, CLUSTERS)
        if n_limbs > 1:
            add_totals(
                second, False, lattice, sums + limb_size, k, d, DIGITS, COLUMNS, CLUSTERS,
            )  # fmt: skip
    return tl.where(refused, steps, 0)
