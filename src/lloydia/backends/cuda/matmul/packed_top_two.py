r"""The least score of each row, its column, and a bound of all others, of few scores.

As in :mod:`top_two`, but with names in numbers instead of registers of their own.  A thread's
scores of a row are a table of *cells* by *slots*; its least of all is in the least slot and the
least cell, any other score is in another slot or in another cell.  So what is compared of each
score is two minima, and only those of slots and cells are given names and compared further.

Scores are at least SMALLEST_SCORE and less than 2**33: of such numbers the four highest bits are
the same.  So a name of four bits is added to 16 times the bits, as unsigned integers of 32 bits,
and nothing is lost.  What threads tell of a row are the least slot, with its name, and a bound of
all others, in which the five lowest bits are a name, too: the cell and the thread.  Where two
scores are one but for those bits, the least slot and the least cell may be of both: then no column
is named.  For a row with scores out of that range any existing column may be named.
"""

from __future__ import annotations

import triton
import triton.language as tl

from lloydia.backends.cuda.matmul.top_two import min_of_three, split_columns
from lloydia.backends.cuda.runtime.launching import COMPILED

__all__ = [
    "MAX_RESIDENT_COLUMNS",
    "RAISED",
    "SMALLEST_SCORE",
    "THREADS",
    "of_rows",
    "of_threads",
    "packed",
    "packed_top_two_of",
    "slots_of",
    "unpacked",
    "with_name",
]

# Columns of all centres.
MAX_RESIDENT_COLUMNS = 256
# What the bits of a score are multiplied by to make room for a name.  Kernels take it as an
# argument: a multiplication runs beside comparisons, what compilers make of a constant does not.
RAISED = 16
SHARE = tl.constexpr(RAISED)
# Threads that share a row, and how many names a cell and one of them have.
THREADS = tl.constexpr(4)
NAMES = tl.constexpr(32)
# The highest bits of all scores, and what they are at least: those of 2, and room for bounds that
# are some bits lower.  (They begin at 4: :mod:`lloydia.exact.half_certificate`, "Range".)
HIGHEST, SMALLEST_SCORE = tl.constexpr(0x40000000), 2.5


def slots_of(columns: int) -> int:
    """Return how many slots a thread has: three numbers are compared at a time.

    So slots and cells of odd numbers of scores take the fewest comparisons.
    """
    return 5 if columns <= 128 else 7 if columns <= 192 else 9


@triton.jit
def numbers_of(tiles):
    """Return the bits of the scores of each row and thread, in the order of their columns."""
    ROWS: tl.constexpr = tiles[0].shape[0]
    EIGHTS: tl.constexpr = tiles[0].shape[1] // 8
    found = ()
    for t in tl.static_range(len(tiles)):
        # A thread holds two neighbouring columns of every eight.
        bits = tl.reshape(tiles[t].to(tl.uint32, bitcast=True), (ROWS, EIGHTS, 8))
        eights = split_columns(bits, EIGHTS)
        for i in tl.static_range(EIGHTS):
            even, odd = tl.split(tl.reshape(eights[i], (ROWS, 4, 2)))
            found = found + (even, odd)
    return found


@triton.jit
def min_of_some(values, FIRST: tl.constexpr, END: tl.constexpr, STEP: tl.constexpr):
    """Return the least of values from a first one on, in steps, as far as there are any."""
    LAST: tl.constexpr = END if END < len(values) else len(values)
    COUNT: tl.constexpr = (LAST - FIRST + STEP - 1) // STEP
    least = values[FIRST]
    for i in tl.static_range(1, COUNT - 1, 2):
        least = min_of_three(least, values[FIRST + i * STEP], values[FIRST + (i + 1) * STEP])
    if COUNT % 2 == 0:
        least = tl.minimum(least, values[FIRST + (COUNT - 1) * STEP])
    return least


@triton.jit
def nearest_above(value, bound, nearest):
    """Return the lesser of `nearest` and how far a value is above a bound: on Hopper one operation.

    Less one: what equals the bound is far above it.
    """
    if COMPILED:
        return tl.inline_asm_elementwise(
            "{ .reg .u32 above; add.u32 above, $1, $2; min.u32 $0, above, $3; }", "=r,r,r,r",
            [value, ~bound, nearest], dtype=tl.uint32, is_pure=True, pack=1,
        )  # fmt: skip
    return tl.minimum(value + ~bound, nearest)


@triton.jit
def nearest_of(values, bound):
    """Return by how much the nearest of values that are above a bound is so, less one."""
    nearest = values[0] + ~bound
    for i in tl.static_range(1, len(values)):
        nearest = nearest_above(values[i], bound, nearest)
    return nearest


@triton.jit
def of_threads(tiles, raised, SLOTS: tl.constexpr):
    """Return the least slot and the least cell of each row and thread, and a number for all others.

    Its four lowest bits cut off, that is a bound.
    """
    values = numbers_of(tiles)
    COUNT: tl.constexpr = len(values)
    BLOCKS: tl.constexpr = (COUNT + SLOTS - 1) // SLOTS
    slots = ()
    for i in tl.static_range(SLOTS):
        slots = slots + (min_of_some(values, i, COUNT, SLOTS) * raised + i,)
    column_blocks = ()
    for i in tl.static_range(BLOCKS):
        column_blocks = column_blocks + (
            min_of_some(values, i * SLOTS, (i + 1) * SLOTS, 1) * raised + i,
        )
    slot, cell = min_of_some(slots, 0, SLOTS, 1), min_of_some(column_blocks, 0, BLOCKS, 1)
    # Of another slot than the least, or another cell, less one.  The least cell is at most 15 below
    # the least slot, by their names: so what is above it is at least slot + above + 1 - 15.
    above = tl.minimum(nearest_of(slots, slot), nearest_of(column_blocks, cell))
    return slot, cell, above + slot - (SHARE - 2)


@triton.jit
def with_name(bound, name):
    """Return a bound with a name instead of its lowest bits; of the name, those: one operation."""
    if COMPILED:
        return tl.inline_asm_elementwise(
            "lop3.b32 $0, $1, $2, -32, 0xE4;", "=r,r,r", [bound, name],
            dtype=tl.uint32, is_pure=True, pack=1,
        )  # fmt: skip
    return bound // NAMES * NAMES + name % NAMES


@triton.jit
def merged(slot, others, slot2, others2):
    """Return the least slot, and the bound of all others with names, of two that share a row."""
    # The larger is another one.
    bound = min_of_three(others, others2, tl.maximum(slot, slot2))
    name = tl.where(slot2 < slot, others2, others)
    return tl.minimum(slot, slot2), with_name(bound, name)


@triton.jit
def packed(slot, others):
    """Return two numbers as one."""
    if COMPILED:
        return tl.inline_asm_elementwise(
            "mov.b64 $0, {$1, $2};", "=l,r,r", [slot, others], dtype=tl.int64, is_pure=True, pack=1
        )
    return (others.to(tl.int64) << 32) | slot.to(tl.int64)


@triton.jit
def of_rows(slot, others):
    """Return what all threads of a row have found, as one integer; `others` with names."""
    slot, others = tl.reduce((slot, others), 1, merged)
    return packed(slot, others)


@triton.jit
def packed_top_two_of(tiles, raised, SLOTS: tl.constexpr):
    """Return what :func:`unpacked` tells of."""
    slot, cell, others = of_threads(tiles, raised, SLOTS)
    thread = tl.arange(0, THREADS)[None, :].to(tl.uint32)
    return of_rows(slot, with_name(others, cell * THREADS + thread))


@triton.jit
def unpacked(found, slots, columns):
    """Return a column of each row, its score, and a lower bound of all others.

    The column may be -1 where the least are hardly different; then the bounds are of all scores.
    Scores out of range come back as others that are in it: nothing sees them here.
    """
    slot, others = found.to(tl.uint32), (found >> 32).to(tl.uint32)
    name = (others % NAMES).to(tl.int32)
    cell, thread = name // THREADS, name % THREADS
    number = cell * slots + (slot % SHARE).to(tl.int32)
    column = number // 2 * 8 + thread * 2 + number % 2
    least, others = slot // SHARE, others // NAMES * (NAMES // SHARE)
    column = tl.where((others > least) & (column < columns), column, -1)
    least, others = least | HIGHEST, others | HIGHEST
    return column, least.to(tl.float32, bitcast=True), others.to(tl.float32, bitcast=True)
