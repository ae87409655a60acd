r"""The least score of each row, its column, and a bound of all others, where all scores are a tile.

As in :mod:`two_least`, but once, and with names in the lowest bits of scores instead of registers.
A thread's scores of a row are a table of *cells* by *slots*; its least of all is in the least slot
and the least cell, any other score is in another slot or in another cell.  So what is compared of
each score is two minima, and only those of slots and cells are given names and compared further.

The name overwrites bits: cut off, such a number is at most the score; with all of them set, at
least.  So the least comes as an upper bound and the others as a lower one, which is all that
:mod:`lloydia.exact.half_certificate` asks for.  Where two of a thread are one but for those bits,
the least slot and the least cell may be of both: one bit more says so, and no column is named.
"""

from __future__ import annotations

import triton
import triton.language as tl

__all__ = ["COLUMNS", "least_of_tile"]

COLUMNS = tl.constexpr(64)


@triton.jit
def halved(table):
    """Return the two halves of the second dimension of three."""
    ROWS: tl.constexpr = table.shape[0]
    HALF: tl.constexpr = table.shape[1] // 2
    return tl.split(tl.permute(tl.reshape(table, (ROWS, 2, HALF, 4)), (0, 2, 3, 1)))


@triton.jit
def two_of(keys):
    """Return the two least of four along the second dimension of three; they are a thread's."""
    a, b = halved(keys)
    least, above = halved(tl.minimum(a, b))
    next_least, next_above = halved(tl.maximum(a, b))
    second = tl.minimum(tl.maximum(least, above), tl.minimum(next_least, next_above))
    ROWS: tl.constexpr = keys.shape[0]
    return tl.reshape(tl.minimum(least, above), (ROWS, 4)), tl.reshape(second, (ROWS, 4))


@triton.jit
def least_of_tile(scores):
    """Return a column of each row, an upper bound of its score and a lower bound of all others.

    The column may be -1 where the least are hardly different; then the bounds are of all scores.
    `scores` have :data:`COLUMNS` columns.
    """
    ROWS: tl.constexpr = scores.shape[0]
    # A thread holds two neighbouring columns of every eight: of a row four cells of four slots.
    bits = tl.reshape(scores.to(tl.int32, bitcast=True), (ROWS, 4, 2, 4, 2))
    cells = tl.min(tl.min(bits, 4), 2)
    slots = tl.permute(tl.min(bits, 1), (0, 1, 3, 2))
    cells = (cells & -COLUMNS) | (tl.arange(0, 4) * 16)[None, :, None]
    name = (tl.arange(0, 2) * 8)[:, None] + tl.arange(0, 2)[None, :]
    slots = (slots & -COLUMNS) | name[None, :, :, None]
    slot, next_slot = two_of(tl.reshape(slots, (ROWS, 4, 4)))
    cell, next_cell = two_of(cells)
    # The same score under both names, unless another of this thread is one but for these.
    others = tl.minimum(next_slot, next_cell)
    own = slot | (cell & (COLUMNS - 1)) | (2 * tl.arange(0, 4))[None, :]
    tied = tl.where(others <= (own | (COLUMNS - 1)), COLUMNS, 0)
    own = (own & ~COLUMNS) | tied
    least = tl.min(own, 1)
    others = tl.min(tl.where(own == least[:, None], others, own), 1) & -(2 * COLUMNS)
    column = tl.where((least & COLUMNS) == 0, least & (COLUMNS - 1), -1)
    upper = (least | (2 * COLUMNS - 1)).to(tl.float32, bitcast=True)
    return column, upper, others.to(tl.float32, bitcast=True)
