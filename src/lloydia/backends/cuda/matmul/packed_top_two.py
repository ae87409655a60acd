r"""The best score of each row, its column, and a bound of all others, for few columns.

As in :mod:`top_two`, the scores that a thread has of a row form a table of *column blocks* by
*slots*.  The best score is in the best slot and the best column block; every other score is in
another slot or another block.  So each score takes part in two minima, and only the minima are
given names and compared further.

Scores are at least SMALLEST_SCORE and less than 2**33, so their four highest bits are equal.
Therefore 16 times the bits plus a name of four bits fits in an unsigned 32-bit integer without
loss.  A row's result is its best slot, with its name, and a bound of all others, whose five lowest
bits are a name too: the column block and the thread.  Where two scores differ in those bits only,
the best slot and the best block may belong to different scores; then no column is named.  For a row
with scores out of that range any existing column may be named.
"""

from __future__ import annotations

import triton
import triton.language as tl

from lloydia.backends.cuda.device_functions.ptx.selection import (
    NAMES,
    min_of_three,
    nearest_above,
    packed,
    with_name,
)
from lloydia.backends.cuda.matmul.top_two import split_columns

__all__ = [
    "RAISED",
    "SMALLEST_SCORE",
    "THREADS",
    "of_rows",
    "of_threads",
    "packed_top_two_of",
    "slots_of",
    "unpacked",
]

# The factor by which the bits of a score are multiplied to make room for a name.  Kernels take it
# as an argument, so that the multiplication stays one: it runs in parallel with comparisons.
RAISED = 16
SHARE = tl.constexpr(RAISED)
# Threads that share a row; a name is a column block and a thread.
THREADS = tl.constexpr(4)
# The highest bits of all scores, and the smallest score: the bits of 2, with room for bounds that
# are a little lower.  (Scores begin at 4: :mod:`lloydia.exact.half_certificate`, "Range".)
HIGHEST, SMALLEST_SCORE = tl.constexpr(0x40000000), 2.5


def slots_of(columns: int) -> int:
    """Return the number of slots of a thread.

    Minima are taken of three numbers at a time, so odd numbers take the fewest comparisons.
    """
    return 5 if columns <= 128 else 7 if columns <= 192 else 9


@triton.jit
def numbers_of(tiles):
    """Return the bits of the scores of each row and thread, in the order of columns."""
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
def min_of(values):
    """Return the minimum of some values."""
    COUNT: tl.constexpr = len(values)
    least = values[0]
    for i in tl.static_range(1, COUNT - 1, 2):
        least = min_of_three(least, values[i], values[i + 1])
    if COUNT % 2 == 0:
        least = tl.minimum(least, values[COUNT - 1])
    return least


@triton.jit
def nearest_of(values, bound):
    """Return by how much the smallest of the values above a bound exceeds it, less one."""
    nearest = values[0] + ~bound
    for i in tl.static_range(1, len(values)):
        nearest = nearest_above(values[i], bound, nearest)
    return nearest


@triton.jit
def of_threads(tiles, raised, SLOTS: tl.constexpr):
    """Return the best slot and column block of each row and thread, and a number for all others.

    That number without its four lowest bits is a lower bound of the other scores.
    """
    values = numbers_of(tiles)
    COUNT: tl.constexpr = len(values)
    BLOCKS: tl.constexpr = (COUNT + SLOTS - 1) // SLOTS
    slots = ()
    for i in tl.static_range(SLOTS):
        slots = slots + (min_of(values[i:COUNT:SLOTS]) * raised + i,)
    column_blocks = ()
    for i in tl.static_range(BLOCKS):
        column_blocks = column_blocks + (min_of(values[i * SLOTS : (i + 1) * SLOTS]) * raised + i,)
    slot, cell = min_of(slots), min_of(column_blocks)
    # Of another slot or block than the best, less one.  Names make the best block at most 15
    # smaller than the best slot: so the scores above it are at least slot + above + 1 - 15.
    above = tl.minimum(nearest_of(slots, slot), nearest_of(column_blocks, cell))
    return slot, cell, above + slot - (SHARE - 2)


@triton.jit
def merged(slot, others, slot2, others2):
    """Return the best slot and the bound of all others, with names, of two partial results."""
    # The larger slot is one of the others.
    bound = min_of_three(others, others2, tl.maximum(slot, slot2))
    name = tl.where(slot2 < slot, others2, others)
    return tl.minimum(slot, slot2), with_name(bound, name)


@triton.jit
def of_rows(slot, others):
    """Return the result of all threads of a row as one integer; `others` have names."""
    slot, others = tl.reduce((slot, others), 1, merged)
    return packed(slot, others)


@triton.jit
def packed_top_two_of(tiles, raised, SLOTS: tl.constexpr):
    """Return what :func:`unpacked` reads."""
    slot, cell, others = of_threads(tiles, raised, SLOTS)
    thread = tl.arange(0, THREADS)[None, :].to(tl.uint32)
    return of_rows(slot, with_name(others, cell * THREADS + thread))


@triton.jit
def unpacked(found, slots, columns):
    """Return a column of each row, its score, and a lower bound of all other scores.

    The column is -1 where the best scores hardly differ; both bounds are then of all scores.
    Scores out of range come back as others within the range; nothing detects them here.
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
