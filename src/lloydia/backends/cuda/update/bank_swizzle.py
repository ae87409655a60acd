"""The order in which a warp adds to a table, so that it uses all banks of shared memory.

A warp adds 32 numbers at a time: four threads, each with four columns of float32, share a row, so
there are eight rows in a warp.  That takes as many cycles as the busiest of the 32 banks has
numbers to add.  So every four rows add different columns at a time (:func:`bank_swizzled`), and
with two copies of all sums, of 16 columns each, the other four rows add to the second copy:
whatever the clusters are, 32 numbers go to 32 banks.  With room for one copy only, two rows collide
if both clusters are in the same half of the banks.  In float64 a thread has two columns, a cluster
eight, and four copies keep all rows apart.
"""

from __future__ import annotations

import triton
import triton.language as tl

__all__ = ["bank_swizzled", "places_of"]


@triton.jit
def places_of(in_tile, COLUMNS: tl.constexpr, EACH: tl.constexpr, COPIES: tl.constexpr):
    """Return the column of each number after :func:`bank_swizzled`, and its place in the table.

    Rows (by their number in the tile) that add the same columns at a time use different copies.
    """
    column = tl.arange(0, COLUMNS)[None, :] ^ (in_tile % EACH)
    return column, column + in_tile // EACH % COPIES * COLUMNS


@triton.jit
def bank_swizzled(x, in_tile, EACH: tl.constexpr):
    """Return rows with their columns swizzled: column c comes from column ``c ^ (in_tile % EACH)``.

    All threads of a warp add the first of their EACH columns, then the second, and so on.  EACH
    consecutive rows then add different columns at a time, to different banks.  With four columns,
    a row's first thread adds them in this order::

        row 0    0 1 2 3
        row 1    1 0 3 2
        row 2    2 3 0 1
        row 3    3 2 1 0

    No number moves between threads if a thread has EACH neighbouring columns, as where rows begin
    at multiples of 16 bytes; otherwise EACH is 1, and nothing is swizzled.
    """
    ROWS: tl.constexpr = x.shape[0]
    COLUMNS: tl.constexpr = x.shape[1]
    if EACH > 1:
        x = swapped(x.reshape(ROWS, COLUMNS // 2, 2), in_tile % 2 == 1)
    if EACH > 2:
        tl.static_assert(EACH == 4)
        pairs = x.reshape(ROWS, COLUMNS // 4, 2, 2).permute(0, 1, 3, 2)
        x = swapped(pairs, (in_tile // 2 % 2 == 1)[:, :, None]).permute(0, 1, 3, 2)
    return x.reshape(ROWS, COLUMNS)


@triton.jit
def swapped(pairs, where):
    """Return pairs, along the last axis, in reversed order where `where` is set."""
    first, second = pairs.split()
    return tl.join(tl.where(where, second, first), tl.where(where, first, second))
