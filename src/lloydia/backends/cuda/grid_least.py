r"""The least score of each row, its column, and a bound of all others, of few scores.

As in :mod:`two_least`, but with names in the lowest bits of numbers instead of registers of their
own.  A thread's scores of a row are a table of *cells* by *slots*; its least of all is in the least
slot and the least cell, any other score is in another slot or in another cell.  So what is compared
of each score is two minima, and only those of slots and cells are given names and compared further.

A name overwrites the lowest bits: cut off, such a number is at most the score; with all of them
set, at least.  So the least comes as an upper bound and the others as a lower one, which is all
that :mod:`lloydia.exact.half_certificate` asks for.  What threads tell of a row are the least slot,
with a name of three bits, and the bound of all others, with one of five: the cell and the thread.
Where two are one but for those bits, the least slot and the least cell may be of both: then no
column is named.
"""

from __future__ import annotations

import triton
import triton.language as tl

from lloydia.backends.cuda.launching import COMPILED
from lloydia.backends.cuda.two_least import least_of_three, pieces

__all__ = [
    "MOST_COLUMNS",
    "THREADS",
    "UNNAMED",
    "least_of",
    "of_rows",
    "of_threads",
    "told",
    "with_name",
]

# Columns of a cell, and of all: names have three bits.
CELL, MOST_COLUMNS = tl.constexpr(32), 256
NAME = tl.constexpr(7)
# Threads that share a row, and the bits that name a cell and one of them.
THREADS = tl.constexpr(4)
NAMES = tl.constexpr(31)
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
def all_named(values, unnamed):
    """Return numbers by their names, in turn."""
    found = ()
    for i in tl.static_range(len(values)):
        found = found + (named(values[i], i, unnamed),)
    return found


@triton.jit
def of_threads(tiles, unnamed):
    """Return the least slot and the least cell of each row and thread, and a number for all others.

    Its three lowest bits cut off, that is a bound.  The scores are positive, in tiles of whole
    cells, two or more cells in all.
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
    slots = all_named(eight_of(least_of_all(cells)), unnamed)
    cells = all_named(least, unnamed)
    slot, cell = least_of_all(slots), least_of_all(cells)
    # By how much another slot is above the least one, or another cell above its least.
    above = slots[0] - slot - 1
    for i in tl.static_range(1, len(slots)):
        above = nearest_above(slots[i], slot, above)
    for i in tl.static_range(len(cells)):
        above = nearest_above(cells[i], cell, above)
    # Added to the least slot: the least cell is no more than a name less, or more.
    return slot, cell, above + (slot + (1 - NAME))


@triton.jit
def with_name(bound, name):
    """Return a bound with a name instead of its lowest bits; of the name, those: one operation."""
    if COMPILED:
        return tl.inline_asm_elementwise(
            "lop3.b32 $0, $1, $2, -32, 0xE4;", "=r,r,r", [bound, name],
            dtype=tl.int32, is_pure=True, pack=1,
        )  # fmt: skip
    return (bound & ~NAMES) | (name & NAMES)


@triton.jit
def least_of_both(slot, others, slot2, others2):
    """Return the least slot, and the bound of all others with names, of two that share a row."""
    # The larger is another one.
    bound = least_of_three(others, others2, tl.maximum(slot, slot2))
    name = tl.where(slot2 < slot, others2, others)
    return tl.minimum(slot, slot2), with_name(bound, name)


@triton.jit
def of_rows(slot, others):
    """Return what all threads of a row have found, as one integer; `others` with names."""
    slot, others = tl.reduce((slot, others), 1, least_of_both)
    if COMPILED:
        return tl.inline_asm_elementwise(
            "mov.b64 $0, {$1, $2};", "=l,r,r", [slot, others], dtype=tl.int64, is_pure=True, pack=1
        )
    return (others.to(tl.int64) << 32) | slot.to(tl.int64)


@triton.jit
def least_of(tiles, unnamed):
    """Return what :func:`told` tells of."""
    slot, cell, others = of_threads(tiles, unnamed)
    thread = tl.arange(0, THREADS)[None, :]
    return of_rows(slot, with_name(others, cell * THREADS + thread))


@triton.jit
def told(found):
    """Return a column of each row, an upper bound of its score and a lower bound of all others.

    The column may be -1 where the least are hardly different; then the bounds are of all scores.
    """
    slot, others = found.to(tl.int32), (found >> 32).to(tl.int32)
    cell, thread = (others & NAMES) // THREADS, others & (THREADS - 1)
    column = cell * CELL + (slot & 6) * 4 + thread * 2 + (slot & 1)
    least, others = slot | NAME, others & ~NAMES
    column = tl.where(others <= least, -1, column)
    return column, least.to(tl.float32, bitcast=True), others.to(tl.float32, bitcast=True)
