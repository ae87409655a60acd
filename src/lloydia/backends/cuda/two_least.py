r"""The two least scores of each row, and the column of the least, over tiles of scores.

Of all scores of a row, name the least and bound the others.  Comparing and naming can cost as much
as the products, so every operation a score counts.  Lay out the scores of a row as a table: a
*slot* is a column modulo SLOTS, a *cell* is SLOTS consecutive columns (within one thread: every
fourth pair of them), so that a slot and a cell share one score.  Keep the least score of every
slot, and the two least cells.  The least score is in the least slot and the least cell, which name
it.  Any other score is in another slot or in another cell: the second least of slots and cells is
the second least score.  Scores are positive, so they are compared as integers.

Of few rows more is kept: :func:`crossings` names the columns where the two least slots and the two
least cells cross, four at most, and bounds all others.
"""

from __future__ import annotations

import triton
import triton.language as tl

__all__ = ["add_named_tile", "add_tile", "begin", "begin_named", "crossings", "end"]

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
def cells_of(scores, PARTS: tl.constexpr, SLOTS: tl.constexpr):
    """Return the least score of each slot and of each cell of a tile."""
    ROWS: tl.constexpr = scores.shape[0]
    keys = scores.to(tl.int32, bitcast=True)
    slot = tl.min(tl.reshape(keys, (ROWS, PARTS, SLOTS)), 1)
    # A thread holds two neighbouring columns of every eight.
    return slot, tl.min(tl.min(tl.reshape(keys, (ROWS, PARTS, SLOTS // 8, 4, 2)), 4), 2)


@triton.jit
def add_tile(slots, first, second, tile, scores, t, PARTS: tl.constexpr):
    """Add the scores of tile t."""
    slot, cell = cells_of(scores, PARTS, slots.shape[1])
    slots = tl.minimum(slots, slot)
    tile = tl.where(cell < first, t, tile)
    second = tl.minimum(second, tl.maximum(first, cell))
    return slots, tl.minimum(first, cell), second, tile


@triton.jit
def end(slots, first, second, tile):
    """Return the least score of each row, the second least, and the column of the least.

    Where two are equal, the least is the second least as well and the column is -1.
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
    alone = (slot < 2 * ONE) & (cell < 2 * ONE)
    rival = tl.where(alone, rival, least)
    column = tl.where(alone, (cell & (ONE - 1)) * SLOTS + (slot & (ONE - 1)), -1)
    return least.to(tl.float32, bitcast=True), rival.to(tl.float32, bitcast=True), column


@triton.jit
def begin_named(ROWS: tl.constexpr, PARTS: tl.constexpr, SLOTS: tl.constexpr):
    """Return the slots, the three least cells of each thread and part, and the tiles of two."""
    slots, first, _, tile = begin(ROWS, PARTS, SLOTS)
    return slots, first, first, first, tile, tile


@triton.jit
def add_named_tile(slots, first, second, third, tile, next_tile, scores, t, PARTS: tl.constexpr):
    """Add the scores of tile t."""
    slot, cell = cells_of(scores, PARTS, slots.shape[1])
    next_tile = tl.where(cell < first, tile, tl.where(cell < second, t, next_tile))
    tile = tl.where(cell < first, t, tile)
    third = tl.minimum(third, tl.maximum(second, cell))
    second = tl.minimum(second, tl.maximum(first, cell))
    return tl.minimum(slots, slot), tl.minimum(first, cell), second, third, tile, next_tile


@triton.jit
def take_least(values, names):
    """Return the least value of each row and the lowest name that has it; values without it."""
    least = tl.min(values, 1)
    name = tl.min(tl.where(values == least[:, None], names, LAST), 1)
    return least, name, tl.where(names == name[:, None], LAST, values)


@triton.jit
def crossing(slot, cell, SLOTS: tl.constexpr):
    """Return the column that a slot and a cell share, or -1; a cell is four times its name."""
    return tl.where((slot // 2) % 4 == cell % 4, cell // 4 * SLOTS + slot, -1)


@triton.jit
def crossings(slots, first, second, third, tile, next_tile):
    """Return four columns (or -1), and what the scores of all other columns are not below."""
    ROWS: tl.constexpr = slots.shape[0]
    SLOTS: tl.constexpr = slots.shape[1]
    PARTS: tl.constexpr = first.shape[1]
    _, slot1, left = take_least(slots, tl.arange(0, SLOTS)[None, :])
    _, slot2, left = take_least(left, tl.arange(0, SLOTS)[None, :])
    other = tl.min(left, 1)
    # Cells of a row side by side, by thread and part; their names.
    GROUPS: tl.constexpr = PARTS * 4
    group = tl.arange(0, GROUPS)[None, :]
    first = tl.reshape(first, (ROWS, GROUPS))
    second = tl.reshape(second, (ROWS, GROUPS))
    third = tl.reshape(third, (ROWS, GROUPS))
    name = tl.reshape(tile, (ROWS, GROUPS)) * GROUPS + group
    next_name = tl.reshape(next_tile, (ROWS, GROUPS)) * GROUPS + group
    least = tl.min(first, 1)
    group1 = tl.min(tl.where(first == least[:, None], group, LAST), 1)
    here = group == group1[:, None]
    cell1 = tl.sum(tl.where(here, name, 0), 1)
    first, second = tl.where(here, second, first), tl.where(here, third, second)
    name = tl.where(here, next_name, name)
    least = tl.min(first, 1)
    group2 = tl.min(tl.where(first == least[:, None], group, LAST), 1)
    here = group == group2[:, None]
    cell2 = tl.sum(tl.where(here, name, 0), 1)
    other = tl.minimum(other, tl.min(tl.where(here, second, first), 1))
    return (
        crossing(slot1, cell1, SLOTS), crossing(slot1, cell2, SLOTS),
        crossing(slot2, cell1, SLOTS), crossing(slot2, cell2, SLOTS),
        other.to(tl.float32, bitcast=True),
    )  # fmt: skip
