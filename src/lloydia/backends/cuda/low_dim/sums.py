r"""Sums of rows of few features, without weights: a program adds its rows up in a table of its own.

Rows of few clusters would wait for each other at few addresses of memory, and also of more clusters
shared memory is faster: it adds where it is.  It adds 32 bits at once, so a row's integers v (the
first limbs of :func:`lloydia.exact.sums.limbs`) are cut in two, :math:`v = 2^w h + l` with
:math:`|l| < 2^w`, and an entry of the table gets at most :math:`2^{31-w}` parts before they go to
the sums in memory.  There are copies of the table, if there is room one for each thread of a warp:
these then neither meet nor wait for the same bank.  What later limbs hold, mostly nothing of
float32 rows, is added to memory.
"""

from __future__ import annotations

import triton
import triton.language as tl

from lloydia.backends.cuda.device_functions.barrier import THREADS
from lloydia.backends.cuda.device_functions.exact_numbers import SHIFT, rint
from lloydia.backends.cuda.update.shared_table import add_all, read, reserve, write

__all__ = [
    "BESIDE",
    "RESERVE",
    "STEP",
    "WORDS",
    "beyond",
    "clear",
    "flush",
    "is_summed",
    "most_steps",
    "scales_of",
    "sum_rows",
    "table_of",
]

LANES = tl.constexpr(THREADS)
# The words of what holds a table, and more than the bytes that a program needs beside it: two fit
# into 64 KiB, and :func:`shape.shape_of` asks whether those of a multiprocessor fit.
WORDS, BESIDE = 7168, 2048
RESERVE = tl.constexpr(reserve(WORDS))
# Entries that are emptied together: a divisor of WORDS.
CLEARED = tl.constexpr(4 * THREADS)
# What shared memory reads or writes together; a copy for each is the most.
BANKS = tl.constexpr(32)
# Rounds float32 numbers to whole ones; the bits of limbs whose parts it rounds.
SHIFT_SINGLE, MOST_SINGLE = tl.constexpr(12582912.0), 45
# Of fewer rows memory is as fast.
LEAST_ROWS = 1 << 14
# Of more clusters lists of features are no faster than low_moves; of more features they take long
# to compile.
MOST_CLUSTERS, LOW_DIM_FEATURES = 32, 5
# Of up to so many limbs, no number loses bits when it is scaled (scales_of): its last is at least
# 2**-110 then if it is float32, whose least is 2**-149, and 2**-720 if float64, whose is 2**-1074.
MOST_SPANNED, MOST_SPANNED_DOUBLE = tl.constexpr(3), tl.constexpr(16)
# The rows of a thread that a table takes are a multiple of: those of a block, and those that it
# loads ahead to move them.
STEP = tl.constexpr(4)


def table_of(n: int, d: int, k: int, bits: int, itemsize: int) -> tuple[int, int, int]:
    """Return the limbs that a program's table holds, a cluster's entries, and the copies.

    Of n rows without weights; `itemsize` is that of the numbers they are computed with.  No copies:
    there is no table, and memory is added to; so also where it would be emptied before it has taken
    two rows a cluster.
    """
    held = 2 if itemsize == 8 else 1
    # Two for each limb of a number, and one that counts rows.
    entries = 2 * d * held + 1
    copies = min(BANKS.value, 1 << (WORDS // (k * entries)).bit_length() >> 1)
    fine = itemsize < 8 and bits > MOST_SINGLE
    # The table takes STEP rows of each thread (most_steps).
    least = max(STEP.value * THREADS, 2 * k)
    if n < LEAST_ROWS or fine or copies << (31 - (bits + 2) // 2) < least:
        copies = 0
    return held, entries, copies


def is_summed(d: int, k: int) -> bool:
    """Return whether :mod:`summed` adds rows to a table, if there is one."""
    return d <= LOW_DIM_FEATURES and k <= MOST_CLUSTERS


@triton.jit
def lower_bits(bits):
    """Return w for integers of magnitude ``2**bits``; then the upper part is of such, too."""
    return (bits + 2) >> 1


@triton.jit
def most_steps(bits, COPIES: tl.constexpr):
    """Return how many rows of a thread the table takes, a multiple of STEP."""
    return ((COPIES << (31 - lower_bits(bits))) // (LANES * STEP)) * STEP


@triton.jit
def clear(table, k, ENTRIES: tl.constexpr, COPIES: tl.constexpr):
    """Empty the table."""
    for first in range(0, k * ENTRIES * COPIES, CLEARED):
        # Beyond the last entry there is room.
        at = first + tl.arange(0, CLEARED)
        write(table, at, tl.zeros((CLEARED,), tl.int32))
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
def scales_of(X, fixed_point_grid, bits, d: tl.constexpr):
    """Return what brings each feature to units of its first limb: two powers of two.

    Of rows that are not float64, to units of that limb's upper part, by factors that float32 holds.
    """
    scales = ()
    if X.dtype.element_ty == tl.float64:
        for f in tl.static_range(d):
            scales = scales + (
                (tl.load(fixed_point_grid + f), tl.load(fixed_point_grid + 2 * (d + 1) + f)),
            )
    else:
        down = ((1023 - lower_bits(bits).to(tl.int64)) << 52).to(tl.float64, bitcast=True)
        for f in tl.static_range(d):
            scale = (
                tl.load(fixed_point_grid + f) * tl.load(fixed_point_grid + 2 * (d + 1) + f) * down
            )
            first = tl.minimum(scale, 2.0**100)
            scales = scales + ((first.to(tl.float32), (scale / first).to(tl.float32)),)
    return scales


@triton.jit
def double_parts(x, scale, bits, HELD: tl.constexpr):
    """Return the parts of HELD limbs of float64 numbers, and whether they leave anything.

    Sums of float64 rows have that many limbs, at least.
    """
    step = ((1023 + bits.to(tl.int64)) << 52).to(tl.float64, bitcast=True)
    # The last bits of a sum with the shift are those of the integer.
    zero = tl.full((), SHIFT, tl.float64).to(tl.int64, bitcast=True)
    w = lower_bits(bits).to(tl.int64)
    y = x * scale[0] * scale[1]
    parts = ()
    for _ in tl.static_range(HELD):
        raised = y + SHIFT
        v = raised.to(tl.int64, bitcast=True) - zero
        parts = parts + ((v & ((1 << w) - 1)).to(tl.int32), (v >> w).to(tl.int32))
        left = y - (raised - SHIFT)
        y = left * step
    return parts, left != 0


@triton.jit
def sum_rows(
    x, mask, old, new, table, scales, bits,
    d: tl.constexpr, HELD: tl.constexpr, ENTRIES: tl.constexpr, COPIES: tl.constexpr,
    TAKES: tl.constexpr,
):  # fmt: skip
    """Move rows, whose features are `x`, to the entries of their new clusters.

    As :func:`lloydia.backends.cuda.low_dim.moves.move` does, whose parameters these are; but
    outside the mask features are 0, and `new` is a cluster, too.  Returns whether the limbs of the
    table leave anything of a row.  Unless it TAKES, no row has an old cluster: `old` is -1.
    """
    copy = tl.arange(0, LANES) % COPIES
    values, left = (), tl.zeros((LANES,), tl.int1)
    for f in tl.static_range(d):
        if x[0].dtype == tl.float64:
            parts, more = double_parts(x[f], scales[f], bits, HELD)
        else:
            parts, more = single_parts(x[f].to(tl.float32), scales[f], bits)
        values, left = values + parts, left | more
    values = values + (mask.to(tl.int32),)
    takes = None
    if TAKES:
        takes = mask & (old >= 0)
    add_all(
        table, new * (ENTRIES * COPIES) + copy, old * (ENTRIES * COPIES) + copy, values, takes,
        COPIES,
    )  # fmt: skip
    return left


@triton.jit
def beyond(left, n_limbs, HELD: tl.constexpr):
    """Return which rows have something left beyond the table's limbs, or may have."""
    # Numbers that span more limbs may vanish when rows are scaled.
    spanned: tl.constexpr = MOST_SPANNED if HELD == 1 else MOST_SPANNED_DOUBLE
    left = left | (tl.full((LANES,), spanned, tl.int32) < n_limbs)
    return left & (tl.full((LANES,), HELD, tl.int32) < n_limbs)


@triton.jit
def total_of(table, at, COPIES: tl.constexpr, TOGETHER: tl.constexpr):
    """Return the totals of entries, one a thread, over all copies: so many are read together."""
    # Threads of a warp begin with different ones, so that most read other banks.
    first = tl.arange(0, LANES) // (BANKS // COPIES)
    total = tl.zeros((LANES,), tl.int64)
    for begin in range(0, COPIES, TOGETHER):
        for i in tl.static_range(TOGETHER):
            total += read(table, at + (first + begin + i) % COPIES).to(tl.int64)
    return total


@triton.jit
def flush(
    table, fixed_point_grid, sums, k, bits, limb_size,
    d: tl.constexpr, HELD: tl.constexpr, ENTRIES: tl.constexpr, COPIES: tl.constexpr,
):  # fmt: skip
    """Add the table to the sums, and empty it."""
    m: tl.constexpr = d + 1
    # Reading all of two limbs together takes registers that the rows want.
    TOGETHER: tl.constexpr = COPIES if HELD == 1 else 1
    w = lower_bits(bits).to(tl.int64)
    unit = rint(tl.load(fixed_point_grid + d) * tl.load(fixed_point_grid + 2 * m + d)).to(tl.int64)
    tl.debug_barrier()
    for first in range(0, k * m, LANES):
        cell = first + tl.arange(0, LANES)
        real = cell < k * m
        f = cell % m
        # Of a cell that is not there, what the first cluster has.
        at = (tl.where(real, cell // m, 0) * ENTRIES + 2 * HELD * f) * COPIES
        for limb in tl.static_range(HELD):
            parted = f < d
            low_at = at + tl.where(parted, 2 * limb * COPIES, 0)
            high_at = at + tl.where(parted, (2 * limb + 1) * COPIES, 0)
            low = total_of(table, low_at, COPIES, TOGETHER)
            high = total_of(table, high_at, COPIES, TOGETHER)
            # Rows are counted in the first limb.
            counted = low * unit if limb == 0 else tl.zeros((LANES,), tl.int64)
            total = tl.where(parted, low + (high << w), counted)
            to = sums + limb * limb_size + cell
            tl.atomic_add(to, total, mask=real & (total != 0), sem="relaxed")
    tl.debug_barrier()
    clear(table, k, ENTRIES, COPIES)
