r"""Sums of rows of few features in shared memory, without weights: a table for each program.

Rows of few clusters would wait for each other at few addresses of memory, and also of more clusters
shared memory is faster: it adds where it is.  It adds 32 bits at once, so a row's integers v (the
first limbs of :func:`lloydia.exact.sums.limbs`) are cut in two, :math:`v = 2^w h + l` with
:math:`|l| < 2^w`, and an entry of the table gets at most :math:`2^{31-w}` parts before they go to
the sums in memory.  There are copies of the table, if there is room one for each thread of a warp:
threads then neither add to the same entry nor use the same bank.  What later limbs hold, mostly
nothing of float32 rows, is added to memory.

A copy of a cluster has its entries side by side: two for each limb of a feature, and one that
counts rows.  Their number is odd, so copies begin in different banks.
"""

from __future__ import annotations

import triton
import triton.language as tl

from lloydia.backends.cuda.device_functions.exact_numbers import (
    ROUNDING_CONSTANT,
    power_of_two,
    rint,
)
from lloydia.backends.cuda.device_functions.ptx.shared_table import add_all, read, reserve, write
from lloydia.backends.cuda.runtime.launching import next_power

__all__ = [
    "RESERVE",
    "TABLE_ROWS",
    "TABLE_THREADS",
    "WORDS",
    "add_rows",
    "beyond",
    "clear",
    "copies_of",
    "flush",
    "rows_before_flush",
    "scales_of",
    "table_limbs",
    "words_of",
]

# Threads of a program, and rows that it adds at a time.
TABLE_THREADS, TABLE_ROWS = 256, 512
LANES, ROWS = tl.constexpr(TABLE_THREADS), tl.constexpr(TABLE_ROWS)
# Words of the shared memory that holds a table.
WORDS = 7168
RESERVE = tl.constexpr(reserve(WORDS))
# Banks of shared memory; a copy for each is the most.
BANKS = tl.constexpr(32)
# Rounds float32 numbers to whole ones; the bits of limbs whose parts it rounds.
SHIFT_SINGLE, SINGLE_BITS = tl.constexpr(12582912.0), 45
# Of fewer rows memory is as fast.
MIN_ROWS = 1 << 14
# Of up to so many limbs, no number loses bits when it is scaled (scales_of): its last is at least
# 2**-110 then if it is float32, whose least is 2**-149, and 2**-720 if float64, whose is 2**-1074.
SPANNED_LIMBS, SPANNED_LIMBS_DOUBLE = tl.constexpr(3), tl.constexpr(16)


@triton.constexpr_function
def table_limbs(double):
    """Return how many limbs of a number the table holds."""
    return 2 if double else 1


@triton.constexpr_function
def words_of(d, double):
    """Return the entries of a cluster in a copy of the table."""
    return 2 * d * table_limbs(double) + 1


def copies_of(n: int, d: int, k: int, bits: int, double: bool) -> int:
    """Return how many copies of the table a program has; 0: memory is added to.

    Of n rows without weights, whose numbers are computed as float64 if they are `double`.  There is
    no table either where it would be emptied before it has taken two rows a cluster.
    """
    copies = min(BANKS.value, next_power(WORDS // (k * words_of(d, double)) + 1) // 2)
    rounds_exactly = double or bits <= SINGLE_BITS
    least = max(TABLE_ROWS, 2 * k)
    enough = n >= MIN_ROWS and rounds_exactly and copies << (31 - (bits + 2) // 2) >= least
    return copies if enough else 0


@triton.jit
def lower_bits(bits):
    """Return w for integers of magnitude ``2**bits``; then the upper part is of such, too."""
    return (bits + 2) >> 1


@triton.jit
def rows_before_flush(bits, copies):
    """Return how many rows the table takes before it has to be emptied, a multiple of ROWS.

    Copies take equally many of each ROWS.
    """
    return (copies << (31 - lower_bits(bits))) // ROWS * ROWS


@triton.jit
def clear(table, size):
    """Empty the first `size` entries of the table."""
    for first in range(0, size, LANES):
        at = first + tl.arange(0, LANES)
        # Beyond the last entry there is room: WORDS is a multiple of LANES.
        write(table, at, tl.zeros((LANES,), tl.int32))
    tl.debug_barrier()


@triton.jit
def single_parts(x, scale, bits):
    """Return the two parts of float32 numbers' first limb, and whether they leave anything.

    All is exact: products by powers of two, and rounding by the shift, up to ``2**22``.
    """
    base = tl.full((), SHIFT_SINGLE, tl.float32).to(tl.int32, bitcast=True)
    back = ((127 + lower_bits(bits)) << 23).to(tl.float32, bitcast=True)
    y = x * scale[0] * scale[1]
    high = y + SHIFT_SINGLE
    rest = (y - (high - SHIFT_SINGLE)) * back
    low = rest + SHIFT_SINGLE
    left = rest != low - SHIFT_SINGLE
    low, high = low.to(tl.int32, bitcast=True) - base, high.to(tl.int32, bitcast=True) - base
    return (low, high), left


@triton.jit
def double_parts(x, scale, bits, TABLE_LIMBS: tl.constexpr):
    """Return the parts of TABLE_LIMBS limbs of float64 numbers, and whether they leave anything.

    Sums of float64 rows have that many limbs, at least.
    """
    step = power_of_two(bits.to(tl.int64))
    # The last bits of a sum with the shift are those of the integer.
    zero = tl.full((), ROUNDING_CONSTANT, tl.float64).to(tl.int64, bitcast=True)
    w = lower_bits(bits).to(tl.int64)
    y = x * scale[0] * scale[1]
    parts = ()
    for _ in tl.static_range(TABLE_LIMBS):
        raised = y + ROUNDING_CONSTANT
        v = raised.to(tl.int64, bitcast=True) - zero
        parts = parts + ((v & ((1 << w) - 1)).to(tl.int32), (v >> w).to(tl.int32))
        left = y - (raised - ROUNDING_CONSTANT)
        y = left * step
    return parts, left != 0


@triton.jit
def scales_of(X, columns, bits, d: tl.constexpr):
    """Return what brings each feature to units of its first limb: two powers of two.

    Of rows that are not float64, to units of that limb's upper part, by factors that float32 holds.
    """
    scales = ()
    if X.dtype.element_ty == tl.float64:
        for f in tl.static_range(d):
            scales = scales + ((tl.load(columns + f), tl.load(columns + 2 * (d + 1) + f)),)
    else:
        down = power_of_two(-lower_bits(bits).to(tl.int64))
        for f in tl.static_range(d):
            scale = tl.load(columns + f) * tl.load(columns + 2 * (d + 1) + f) * down
            first = tl.minimum(scale, 2.0**100)
            scales = scales + ((first.to(tl.float32), (scale / first).to(tl.float32)),)
    return scales


@triton.jit
def add_rows(x, mask, old, new, table, scales, bits, copies, d: tl.constexpr):
    """Add rows, whose features are `x`, to their new clusters; take them from their old ones.

    Outside the mask features are 0, and `new` is a cluster, too.  `old` is -1 for rows that had no
    cluster.  Returns whether the limbs of the table leave anything of a row.
    """
    double: tl.constexpr = x[0].dtype == tl.float64
    CLUSTER_WORDS: tl.constexpr = words_of(d, double)
    values, left = (), tl.zeros(mask.shape, tl.int1)
    for f in tl.static_range(d):
        if double:
            parts, more = double_parts(x[f], scales[f], bits, table_limbs(double))
        else:
            parts, more = single_parts(x[f].to(tl.float32), scales[f], bits)
        values, left = values + parts, left | more
    values = values + (mask.to(tl.int32),)
    copy = tl.arange(0, ROWS) & (copies - 1)
    add_all(
        table, (new * copies + copy) * CLUSTER_WORDS, (old * copies + copy) * CLUSTER_WORDS, values,
        mask & (old >= 0),
    )  # fmt: skip
    return left


@triton.jit
def beyond(left, n_limbs, TABLE_LIMBS: tl.constexpr):
    """Return which rows have something left beyond the table's limbs, or may have."""
    # Numbers that span more limbs may vanish when rows are scaled.
    spanned: tl.constexpr = SPANNED_LIMBS if TABLE_LIMBS == 1 else SPANNED_LIMBS_DOUBLE
    left = left | (tl.full(left.shape, spanned, tl.int32) < n_limbs)
    return left & (tl.full(left.shape, TABLE_LIMBS, tl.int32) < n_limbs)


@triton.jit
def total_of(table, cluster, entry, copies, CLUSTER_WORDS: tl.constexpr):
    """Return the totals of an entry of some clusters, one a thread, over all copies."""
    total = tl.zeros((LANES,), tl.int64)
    for i in range(copies):
        # Clusters begin with different copies, in different banks.
        copy = (cluster + i) & (copies - 1)
        total += read(table, (cluster * copies + copy) * CLUSTER_WORDS + entry).to(tl.int64)
    return total


@triton.jit
def flush(
    table, columns, sums, k, bits, limb_size, copies, d: tl.constexpr, TABLE_LIMBS: tl.constexpr
):
    """Add the table to the sums, and empty it."""
    m: tl.constexpr = d + 1
    CLUSTER_WORDS: tl.constexpr = 2 * d * TABLE_LIMBS + 1
    w = lower_bits(bits).to(tl.int64)
    unit = rint(tl.load(columns + d) * tl.load(columns + 2 * m + d)).to(tl.int64)
    tl.debug_barrier()
    for first in range(0, k * m, LANES):
        cell = first + tl.arange(0, LANES)
        real = cell < k * m
        # Of a cell that is not there, what the first cluster has.
        cluster, f = tl.where(real, cell // m, 0), cell % m
        for limb in tl.static_range(TABLE_LIMBS):
            parted = f < d
            low_entry = tl.where(parted, 2 * TABLE_LIMBS * f + 2 * limb, 2 * TABLE_LIMBS * d)
            high_entry = tl.where(parted, low_entry + 1, 2 * TABLE_LIMBS * d)
            low = total_of(table, cluster, low_entry, copies, CLUSTER_WORDS)
            high = total_of(table, cluster, high_entry, copies, CLUSTER_WORDS)
            # Rows are counted in the first limb.
            counted = low * unit if limb == 0 else tl.zeros((LANES,), tl.int64)
            total = tl.where(parted, low + (high << w), counted)
            to = sums + limb * limb_size + cell
            tl.atomic_add(to, total, mask=real & (total != 0), sem="relaxed")
    tl.debug_barrier()
    clear(table, k * copies * CLUSTER_WORDS)
