"""What a warp adds to a table at a time, spread over the banks of shared memory.

A warp adds 32 numbers at a time: four threads, each with four columns of float32, have those of a
row, and eight rows are in a warp. That takes as many cycles as the busiest of the 32 banks of
shared memory has numbers to add. So each four rows add different columns at a time
(:func:`bank_swizzled`), and with two copies of all sums, of 16 columns each, the other four rows
add to the second: whatever the clusters are, 32 numbers are in 32 banks. Where there is room for
one copy only, two rows meet if both clusters have the same half of the banks. Of float64, a thread
has two columns, a cluster eight, and four copies keep all rows apart.
"""

from __future__ import annotations

import triton
import triton.language as tl

__all__ = ["bank_swizzled", "places_of"]


@triton.jit
def places_of(in_tile, COLUMNS: tl.constexpr, EACH: tl.constexpr, COPIES: tl.constexpr):
    """Return the columns that rows have where :func:`bank_swizzled` is done, and where those are.

    Rows, by their numbers in the tile, that add the same columns at a time add to different copies.
    """
    column = tl.arange(0, COLUMNS)[None, :] ^ (in_tile % EACH)
    return column, column + in_tile // EACH % COPIES * COLUMNS


@triton.jit
def bank_swizzled(x, in_tile, EACH: tl.constexpr):
    """Return rows, by their numbers in the tile, with what was in c in column c ^ (in_tile % EACH).

    All threads of a warp add the first of their EACH columns, then the second, and so on.  EACH
    rows, one after the other, then add different ones at a time, to different banks.  The columns
    of a row's first thread where that has four, in the order in which they are added::

        row 0    0 1 2 3
        row 1    1 0 3 2
        row 2    2 3 0 1
        row 3    3 2 1 0

    No number moves between threads, if a thread has EACH columns side by side, as where rows begin
    at multiples of 16 bytes; else EACH is 1, and nothing is exchanged.
    """
    ROWS: tl.constexpr = x.shape[0]
    COLUMNS: tl.constexpr = x.shape[1]
    if EACH > 1:
        x = swapped(x.reshape(ROWS, COLUMNS // 2, 2), in_tile % 2 == 1)
    if EACH > 2:
        tl.static_assert(EACH == 4)
        halves = x.reshape(ROWS, COLUMNS // 4, 2, 2).permute(0, 1, 3, 2)
        x = swapped(halves, (in_tile // 2 % 2 == 1)[:, :, None]).permute(0, 1, 3, 2)
    return x.reshape(ROWS, COLUMNS)


@triton.jit
def swapped(pairs, where):
    """Return pairs, along the last axis, the other way round where it is so."""
    first, second = pairs.split()
    return tl.join(tl.where(where, second, first), tl.where(where, first, second))
