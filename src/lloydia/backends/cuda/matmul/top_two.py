r"""The best (smallest) two scores of each row, and the column of the best, over tiles of scores.

Comparing scores and naming columns can cost as much as the products, so every operation for each
score counts.  The scores of a row form a table: a *slot* is a column modulo SLOTS, a *cell* (or
column block) is SLOTS consecutive columns (within one thread: every fourth pair of them), so that a
slot and a cell share one score.  The smallest score of every slot is kept, and the two best cells.
The best score is in the best slot and in the best cell, which name its column.  Any other score is
in another slot or in another cell: so the second best of slots and cells is the second-best score.
Scores are positive, so they are compared as integers.

For few rows more is kept: :func:`crossed` names the three best slots and the three best cells.
They cross in nine columns, and the other scores are bounded; the two best of each cross in four.
"""

from __future__ import annotations

import triton
import triton.language as tl

from lloydia.backends.cuda.device_functions.ptx.selection import min_of_three

__all__ = [
    "add_named_tile",
    "add_tile",
    "begin",
    "begin_named",
    "crossed",
    "crossing",
    "end",
    "split_columns",
]

LAST = tl.constexpr(2147483647)
# More than the number of cells of a row, and more than the sum of the names of all slots.
ONE = tl.constexpr(1 << 20)


@triton.jit
def begin(ROWS: tl.constexpr, PARTS: tl.constexpr, SLOTS: tl.constexpr):
    """Return empty slots, the best two cells of each thread and part, and the tile of the best."""
    slots = tl.full((ROWS, SLOTS), LAST, tl.int32)
    first = tl.full((ROWS, PARTS, 4), LAST, tl.int32)
    tile = tl.zeros((ROWS, PARTS, 4), tl.int32)
    return slots, first, first, tile


@triton.jit
def split_rows(table):
    """Return the two halves of a table along its second dimension of three."""
    HALF: tl.constexpr = table.shape[1] // 2
    cut = tl.reshape(table, (table.shape[0], 2, HALF, table.shape[2]))
    return tl.split(tl.permute(cut, (0, 2, 3, 1)))


@triton.jit
def split_columns(table, COUNT: tl.constexpr):
    """Return the COUNT parts of a table along its second dimension; COUNT is a power of two."""
    parts = (table,)
    # Part i has the columns whose highest bits are those of i.
    for level in tl.static_range(10):
        if 2**level < COUNT:
            more = ()
            for i in tl.static_range(2**level):
                lower, upper = split_rows(parts[i])
                more = more + (lower, upper)
            parts = more
    return parts


@triton.jit
def cell_of(part):
    """Return the smallest score of each cell in a part of a tile."""
    ROWS: tl.constexpr = part.shape[0]
    EIGHTS: tl.constexpr = part.shape[1] // 8
    # A thread holds two neighbouring columns of every eight.
    eights = split_columns(tl.reshape(part, (ROWS, EIGHTS, 8)), EIGHTS)
    even, odd = tl.split(tl.reshape(eights[0], (ROWS, 4, 2)))
    least = tl.minimum(even, odd)
    for i in tl.static_range(1, EIGHTS):
        even, odd = tl.split(tl.reshape(eights[i], (ROWS, 4, 2)))
        least = min_of_three(least, even, odd)
    return least


@triton.jit
def added(slots, parts, PARTS: tl.constexpr):
    """Return the slots, updated with the scores of the parts of a tile."""
    if PARTS == 1:
        slots = tl.minimum(slots, parts[0])
    else:
        for i in tl.static_range(PARTS // 2):
            slots = min_of_three(slots, parts[2 * i], parts[2 * i + 1])
    return slots


@triton.jit
def side_by_side(column_blocks, PARTS: tl.constexpr):
    """Return the cells of the parts of a tile as a table of rows, parts and cells."""
    ROWS: tl.constexpr = column_blocks[0].shape[0]
    tl.static_assert((PARTS == 1) | (PARTS == 2) | (PARTS == 4))
    if PARTS == 1:
        table = tl.reshape(column_blocks[0], (ROWS, 1, 4))
    elif PARTS == 2:
        table = tl.permute(tl.join(column_blocks[0], column_blocks[1]), (0, 2, 1))
    else:
        both = tl.join(
            tl.join(column_blocks[0], column_blocks[1]), tl.join(column_blocks[2], column_blocks[3])
        )
        table = tl.reshape(tl.permute(both, (0, 3, 2, 1)), (ROWS, 4, 4))
    return table


@triton.jit
def column_blocks_of(slots, scores, PARTS: tl.constexpr):
    """Return the slots, updated with a tile, and the smallest score of each of its cells."""
    ROWS: tl.constexpr = scores.shape[0]
    SLOTS: tl.constexpr = slots.shape[1]
    keys = tl.reshape(scores.to(tl.int32, bitcast=True), (ROWS, PARTS, SLOTS))
    by_part = split_columns(keys, PARTS)
    parts = ()
    column_blocks = ()
    for i in tl.static_range(PARTS):
        part = tl.reshape(by_part[i], (ROWS, SLOTS))
        parts = parts + (part,)
        column_blocks = column_blocks + (cell_of(part),)
    return added(slots, parts, PARTS), side_by_side(column_blocks, PARTS)


@triton.jit
def add_tile(slots, first, second, tile, scores, t, PARTS: tl.constexpr):
    """Add the scores of tile t."""
    slots, cell = column_blocks_of(slots, scores, PARTS)
    tile = tl.where(cell < first, t, tile)
    second = tl.minimum(second, tl.maximum(first, cell))
    return slots, tl.minimum(first, cell), second, tile


@triton.jit
def end(slots, first, second, tile):
    """Return the best score of each row, the second best, and the column of the best.

    If several scores are equally good, the second best equals the best, and the column is -1.
    """
    SLOTS: tl.constexpr = slots.shape[1]
    PARTS: tl.constexpr = first.shape[1]
    least = tl.min(slots, 1)
    in_slot = slots == least[:, None]
    in_cell = first == least[:, None, None]
    # How many slots or cells are the best, and the name if it is one.
    slot = tl.sum(tl.where(in_slot, ONE + tl.arange(0, SLOTS)[None, :], 0), 1)
    name = tile * PARTS + tl.arange(0, PARTS)[None, :, None]
    cell = tl.sum(tl.sum(tl.where(in_cell, ONE + name, 0), 2), 1)
    second_score = tl.min(tl.min(tl.where(in_cell, second, first), 2), 1)
    second_score = tl.minimum(second_score, tl.min(tl.where(in_slot, LAST, slots), 1))
    named_once = (slot < 2 * ONE) & (cell < 2 * ONE)
    second_score = tl.where(named_once, second_score, least)
    column = tl.where(named_once, (cell & (ONE - 1)) * SLOTS + (slot & (ONE - 1)), -1)
    return least.to(tl.float32, bitcast=True), second_score.to(tl.float32, bitcast=True), column


@triton.jit
def begin_named(ROWS: tl.constexpr, PARTS: tl.constexpr, SLOTS: tl.constexpr):
    """Return empty slots, the best three cells of each thread and part, and the tiles of two."""
    slots, first, _, tile = begin(ROWS, PARTS, SLOTS)
    return slots, first, first, first, tile, tile


@triton.jit
def add_named_tile(slots, first, second, third, tile, next_tile, scores, t, PARTS: tl.constexpr):
    """Add the scores of tile t."""
    slots, cell = column_blocks_of(slots, scores, PARTS)
    next_tile = tl.where(cell < first, tile, tl.where(cell < second, t, next_tile))
    tile = tl.where(cell < first, t, tile)
    third = tl.minimum(third, tl.maximum(second, cell))
    second = tl.minimum(second, tl.maximum(first, cell))
    return slots, tl.minimum(first, cell), second, third, tile, next_tile


@triton.jit
def take_min(values, names):
    """Return the smallest value of each row and its lowest name; the other values."""
    least = tl.min(values, 1)
    name = tl.min(tl.where(values == least[:, None], names, LAST), 1)
    return least, name, tl.where(names == name[:, None], LAST, values)


@triton.jit
def take_cell(first, second, third, name, next_name, group):
    """Return the best cell of each row, or -1 if it has no name, and its score; the other cells.

    The two best cells of a group have names.  The third best has none and bounds all others.
    """
    least = tl.min(first, 1)
    own = tl.min(tl.where(first == least[:, None], group, LAST), 1)
    here = group == own[:, None]
    cell = tl.max(tl.where(here, name, -1), 1)
    first, second = tl.where(here, second, first), tl.where(here, third, second)
    name, next_name = tl.where(here, next_name, name), tl.where(here, -1, next_name)
    return cell, least, first, second, name, next_name


@triton.jit
def crossing(slot, cell, SLOTS: tl.constexpr):
    """Return the column that a slot and a cell share, or -1; a cell is four times its name."""
    shared = (cell >= 0) & ((slot // 2) % 4 == cell % 4)
    return tl.where(shared, cell // 4 * SLOTS + slot, -1)


@triton.jit
def crossed(slots, first, second, third, tile, next_tile):
    """Return the three best slots and the three best cells, and two bounds.

    Only scores where the first two of each cross are below the first bound, and only those where
    all three cross are below the second.  A cell without a name is -1, and its score is a bound.
    """
    ROWS: tl.constexpr = slots.shape[0]
    SLOTS: tl.constexpr = slots.shape[1]
    PARTS: tl.constexpr = first.shape[1]
    column = tl.arange(0, SLOTS)[None, :]
    _, slot1, left = take_min(slots, column)
    _, slot2, left = take_min(left, column)
    third_slot, slot3, left = take_min(left, column)
    # The cells of a row, by thread and part, and their names.
    GROUPS: tl.constexpr = PARTS * 4
    group = tl.arange(0, GROUPS)[None, :]
    a = tl.reshape(first, (ROWS, GROUPS))
    b = tl.reshape(second, (ROWS, GROUPS))
    c = tl.reshape(third, (ROWS, GROUPS))
    name = tl.reshape(tile, (ROWS, GROUPS)) * GROUPS + group
    next_name = tl.reshape(next_tile, (ROWS, GROUPS)) * GROUPS + group
    cell1, _, a, b, name, next_name = take_cell(a, b, c, name, next_name, group)
    cell2, _, a, b, name, next_name = take_cell(a, b, c, name, next_name, group)
    cell3, third_cell, a, b, name, next_name = take_cell(a, b, c, name, next_name, group)
    others = tl.minimum(third_slot, third_cell)
    fourth_cell = tl.where(cell3 >= 0, tl.min(a, 1), third_cell)
    farther = tl.minimum(tl.min(left, 1), fourth_cell)
    return (
        slot1, slot2, slot3, cell1, cell2, cell3,
        others.to(tl.float32, bitcast=True), farther.to(tl.float32, bitcast=True),
    )  # fmt: skip
