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
    """Return the least score of each row, the second least, and the column of the least."""
    ROWS: tl.constexpr = slots.shape[0]
    SLOTS: tl.constexpr = slots.shape[1]
    CELLS: tl.constexpr = 4 * first.shape[1]
    slot = tl.arange(0, SLOTS)[None, :]
    cell = tl.arange(0, CELLS)[None, :]
    least = tl.min(slots, 1)
    in_slot = tl.min(tl.where(slots == least[:, None], slot, SLOTS), 1)
    rival = tl.min(tl.where(slot == in_slot[:, None], LAST, slots), 1)
    first = tl.reshape(first, (ROWS, CELLS))
    in_cell = tl.min(tl.where(first == least[:, None], cell, CELLS), 1)
    mine = cell == in_cell[:, None]
    # The other cells' least, and the second least of this one's part.
    others = tl.where(mine, tl.reshape(second, (ROWS, CELLS)), first)
    rival = tl.minimum(rival, tl.min(others, 1))
    part = tl.sum(tl.where(mine, tl.reshape(tile, (ROWS, CELLS)) * (CELLS // 4) + cell // 4, 0), 1)
    as_score = tl.float32
    return (
        least.to(as_score, bitcast=True),
        rival.to(as_score, bitcast=True),
        part * SLOTS + in_slot,
    )
