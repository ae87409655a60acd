r"""The least score of each row, its column, and a bound of all others, of few scores.

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

from lloydia.backends.cuda.launching import COMPILED
from lloydia.backends.cuda.two_least import least_of_three, pieces

__all__ = ["MOST_COLUMNS", "UNNAMED", "least_of"]

# Columns of a cell, and of all: names have three bits.
CELL, MOST_COLUMNS = tl.constexpr(32), 256
NAME = tl.constexpr(7)
# What names are cut off by.  Kernels take it as an argument: of two constants, one is loaded anew
# for every number that is named.
UNNAMED = -8


@triton.jit
def named(values, name: tl.constexpr, unnamed):
    """Return numbers of one row and thread each, by a name."""
    return (values & unnamed) | name


@triton.jit
def eight_of(cell):
    """Return the eight numbers of each row and thread of a cell."""
    # A thread holds two neighbouring columns of every eight.
    eights = pieces(tl.reshape(cell, (cell.shape[0], 4, 8)), 4)
    found = ()
    for i in tl.static_range(4):
        even, odd = tl.split(tl.reshape(eights[i], (cell.shape[0], 4, 2)))
        found = found + (even, odd)
    return found


@triton.jit
def least_of_all(values):
    """Return the least of several."""
    least = values[0]
    for i in tl.static_range(1, len(values) - 1, 2):
        least = least_of_three(least, values[i], values[i + 1])
    if len(values) % 2 == 0:
        least = tl.minimum(least, values[len(values) - 1])
    return least


@triton.jit
def nearest_above(value, bound, nearest):
    """Return the lesser of `nearest` and how far a value is above a bound: on Hopper one operation.

    Both are numbers without a sign, less one: what equals the bound is far above it.
    """
    if COMPILED:
        return tl.inline_asm_elementwise(
            "{ .reg .u32 above; add.u32 above, $1, $2; min.u32 $0, above, $3; }", "=r,r,r,r",
            [value, -1 - bound, nearest], dtype=tl.int32, is_pure=True, pack=1,
        )  # fmt: skip
    above = (value - bound - 1).to(tl.uint32, bitcast=True)
    return tl.minimum(above, nearest.to(tl.uint32, bitcast=True)).to(tl.int32, bitcast=True)


@triton.jit
def two_least_of(values):
    """Return the two least of several, of which no two are the same."""
    first = least_of_all(values)
    above = values[0] - first - 1
    for i in tl.static_range(1, len(values)):
        above = nearest_above(values[i], first, above)
    return first, above + first + 1


@triton.jit
def all_named(values, unnamed):
    """Return numbers by their names, in turn."""
    found = ()
    for i in tl.static_range(len(values)):
        found = found + (named(values[i], i, unnamed),)
    return found


@triton.jit
def of_threads(tiles, unnamed):
    """Return the two least slots and the two least cells of each row and thread.

    The scores are positive, in tiles of whole cells, two or more cells in all.
    """
    ROWS: tl.constexpr = tiles[0].shape[0]
    CELLS: tl.constexpr = tiles[0].shape[1] // CELL
    cells = ()
    for t in tl.static_range(len(tiles)):
        bits = tl.reshape(tiles[t].to(tl.int32, bitcast=True), (ROWS, CELLS, CELL))
        cells = cells + pieces(bits, CELLS)
    least = ()
    for i in tl.static_range(len(cells)):
        least = least + (least_of_all(eight_of(cells[i])),)
    slot, next_slot = two_least_of(all_named(eight_of(least_of_all(cells)), unnamed))
    cell, next_cell = two_least_of(all_named(least, unnamed))
    return slot, next_slot, cell, next_cell


@triton.jit
def bounds_of(slot, next_slot, cell, next_cell, thread, unnamed):
    """Return bounds of the least score of each row and thread, and of all others; and its column.

    The first is an upper one, the other a lower one, both as the integers that their bits are.
    `thread` is a thread's number of those that share a row.
    """
    column = (cell & NAME) * CELL + (slot & 6) * 4 + thread * 2 + (slot & 1)
    return slot | NAME, column, tl.minimum(next_slot, next_cell) & unnamed


@triton.jit
def least_of_both(least, column, others, least2, column2, others2):
    """Return the least of two, its column, and a bound of all others of both."""
    # The larger is another one, and what it is at least has no name.
    others = least_of_three(others, others2, tl.maximum(least, least2) - NAME)
    return tl.minimum(least, least2), tl.where(least2 < least, column2, column), others


@triton.jit
def of_rows(least, column, others):
    """Return :func:`least_of`, given what is of each row and thread."""
    least, column, others = tl.reduce((least, column, others), 1, least_of_both)
    column = tl.where(others <= least, -1, column)
    return column, least.to(tl.float32, bitcast=True), others.to(tl.float32, bitcast=True)


@triton.jit
def least_of(tiles, unnamed):
    """Return a column of each row, an upper bound of its score and a lower bound of all others.

    The scores are as for :func:`of_threads`.  The column may be -1 where the least are hardly
    different; then the bounds are of all scores.
    """
    slot, next_slot, cell, next_cell = of_threads(tiles, unnamed)
    thread = tl.arange(0, 4)[None, :]
    least, column, others = bounds_of(slot, next_slot, cell, next_cell, thread, unnamed)
    return of_rows(least, column, others)
