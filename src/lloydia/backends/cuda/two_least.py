r"""The two least scores of each row, and the column of the least, over tiles of scores.

Of all scores of a row, name the least and bound the others.  Comparing and naming can cost as much
as the products, so every operation a score counts.  Lay out the scores of a row as a table: a
*slot* is a column modulo SLOTS, a *cell* is SLOTS consecutive columns (within one thread: every
fourth pair of them), so that a slot and a cell share one score.  Keep the least score of every
slot, and the two least cells.  The least score is in the least slot and the least cell, which name
it.  Any other score is in another slot or in another cell: the second least of slots and cells is
the second least score.  Scores are positive, so they are compared as integers.
"""

from __future__ import annotations

import triton
import triton.language as tl

__all__ = ["add_tile", "begin", "end"]

LAST = tl.constexpr(2147483647)
# More than there are cells in a row, or than the sum of the names of all slots.
ONE = tl.constexpr(1 << 20)


@triton.jit
def begin(ROWS: tl.constexpr, PARTS: tl.constexpr, SLOTS: tl.constexpr):
    """Return the slots, the two least cells of each thread and part, and the tile of the least."""
    slots = tl.full((ROWS, SLOTS), LAST, tl.int32)
    first = tl.full((ROWS, PARTS, 4), LAST, tl.int32)
    tile = tl.zeros((ROWS, PARTS, 4), tl.int32)
    return slots, first, first, tile


@triton.jit
def add_tile(slots, first, second, tile, scores, t, PARTS: tl.constexpr):
    """Add the scores of tile t."""
    ROWS: tl.constexpr = slots.shape[0]
    SLOTS: tl.constexpr = slots.shape[1]
    keys = scores.to(tl.int32, bitcast=True)
    slots = tl.minimum(slots, tl.min(tl.reshape(keys, (ROWS, PARTS, SLOTS)), 1))
    # A thread holds two neighbouring columns of every eight.
    cell = tl.min(tl.min(tl.reshape(keys, (ROWS, PARTS, SLOTS // 8, 4, 2)), 4), 2)
    tile = tl.where(cell < first, t, tile)
    second = tl.minimum(second, tl.maximum(first, cell))
    return slots, tl.minimum(first, cell), second, tile


@triton.jit
def end(slots, first, second, tile):
    """Return the least score of each row, the second least, and the column of the least.

    Where two are equal, the least is the second least as well and the column is none.
    """
    SLOTS: tl.constexpr = slots.shape[1]
    PARTS: tl.constexpr = first.shape[1]
    least = tl.min(slots, 1)
    in_slot = slots == least[:, None]
    in_cell = first == least[:, None, None]
    # How many there are, and, of one, its name.
    slot = tl.sum(tl.where(in_slot, ONE + tl.arange(0, SLOTS)[None, :], 0), 1)
    name = tile * PARTS + tl.arange(0, PARTS)[None, :, None]
    cell = tl.sum(tl.sum(tl.where(in_cell, ONE + name, 0), 2), 1)
    rival = tl.min(tl.min(tl.where(in_cell, second, first), 2), 1)
    rival = tl.minimum(rival, tl.min(tl.where(in_slot, LAST, slots), 1))
    rival = tl.where((slot < 2 * ONE) & (cell < 2 * ONE), rival, least)
    column = (cell & (ONE - 1)) * SLOTS + (slot & (ONE - 1))
    return least.to(tl.float32, bitcast=True), rival.to(tl.float32, bitcast=True), column
