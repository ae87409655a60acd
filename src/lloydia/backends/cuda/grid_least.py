r"""The least score of each row, its column, and a bound of all others, of few tiles of scores.

As in :mod:`two_least`, but with names in the lowest bits of numbers instead of registers of their
own.  A thread's scores of a row are a table of *cells* by *slots*; its least of all is in the least
slot and the least cell, any other score is in another slot or in another cell.  So what is compared
of each score is two minima, and only those of slots and cells are given names and compared further.

The name overwrites three bits: cut off, such a number is at most the score; with all of them set,
at least.  So the least comes as an upper bound and the others as a lower one, which is all that
:mod:`lloydia.exact.half_certificate` asks for.  Where two are one but for those bits, the least
slot and the least cell may be of both: then no column is named.
"""

from __future__ import annotations

import triton
import triton.language as tl

__all__ = ["MOST_COLUMNS", "add_tile", "begin", "end"]

# Columns of a cell and of all: names have three bits.
CELL, MOST_COLUMNS = tl.constexpr(32), 256
NAME = tl.constexpr(7)
LAST = tl.constexpr(2147483647)


@triton.jit
def begin(ROWS: tl.constexpr):
    """Return the slots, and the two least cells of each thread, of no scores."""
    # A thread holds two neighbouring columns of every eight: of a cell, eight.
    slots = tl.full((ROWS, 4, 4, 2), LAST, tl.int32)
    cell = tl.full((ROWS, 4), LAST, tl.int32)
    return slots, cell, cell


@triton.jit
def halves_of(table):
    """Return the two halves of the second dimension of three."""
    ROWS: tl.constexpr = table.shape[0]
    HALF: tl.constexpr = table.shape[1] // 2
    return tl.split(tl.permute(tl.reshape(table, (ROWS, 2, HALF, 4)), (0, 2, 3, 1)))


@triton.jit
def with_two(first, second, a, b):
    """Return the two least of `first`, which is at most `second`, and it, and of a and b."""
    low, high = tl.minimum(a, b), tl.maximum(a, b)
    second = tl.minimum(tl.maximum(first, low), tl.minimum(second, high))
    return tl.minimum(first, low), second


@triton.jit
def named(values, name: tl.constexpr):
    """Return numbers of one row and thread each, by a name."""
    return (tl.reshape(values, (values.shape[0], 4)) & ~NAME) | name


@triton.jit
def add_tile(slots, first, second, scores, t: tl.constexpr):
    """Add the scores of tile t, of two or four cells."""
    ROWS: tl.constexpr = scores.shape[0]
    CELLS: tl.constexpr = scores.shape[1] // CELL
    bits = tl.reshape(scores.to(tl.int32, bitcast=True), (ROWS, CELLS, 4, 4, 2))
    slots = tl.minimum(slots, tl.min(bits, 1))
    cells = halves_of(tl.min(tl.min(bits, 4), 2))
    if CELLS == 2:
        a, b = named(cells[0], 2 * t), named(cells[1], 2 * t + 1)
        first, second = with_two(first, second, a, b)
    else:
        for half in tl.static_range(2):
            a, b = halves_of(cells[half])
            a, b = named(a, 4 * t + 2 * half), named(b, 4 * t + 2 * half + 1)
            first, second = with_two(first, second, a, b)
    return slots, first, second


@triton.jit
def two_slots(slots):
    """Return the two least slots of each thread."""
    even, odd = tl.split(slots)
    first = tl.full((slots.shape[0], 4), LAST, tl.int32)
    second = first
    for half in tl.static_range(2):
        a, b = halves_of(even)[half], halves_of(odd)[half]
        for i in tl.static_range(2):
            x = named(halves_of(a)[i], 4 * half + 2 * i)
            y = named(halves_of(b)[i], 4 * half + 2 * i + 1)
            first, second = with_two(first, second, x, y)
    return first, second


@triton.jit
def least_of_both(least, column, others, least2, column2, others2):
    """Return the least of two, its column, and a bound of all others of both."""
    # The larger is another one, and what it is at least has no name.
    others = tl.minimum(tl.minimum(others, others2), tl.maximum(least, least2) - NAME)
    return tl.minimum(least, least2), tl.where(least2 < least, column2, column), others


@triton.jit
def end(slots, cell, next_cell):
    """Return a column of each row, an upper bound of its score and a lower bound of all others.

    The column may be -1 where the least are hardly different; then the bounds are of all scores.
    """
    slot, next_slot = two_slots(slots)
    lane = tl.arange(0, 4)[None, :]
    column = (cell & NAME) * CELL + (slot & 6) * 4 + lane * 2 + (slot & 1)
    others = tl.minimum(next_slot, next_cell) & ~NAME
    least, column, others = tl.reduce((slot | NAME, column, others), 1, least_of_both)
    column = tl.where(others <= least, -1, column)
    return column, least.to(tl.float32, bitcast=True), others.to(tl.float32, bitcast=True)
