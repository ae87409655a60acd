"""Float64 rows of few features as scores see them, stored once; and how such rows are listed.

Scores take but what float32 keeps of rows, in the frame (:mod:`rows.frame`).  So that is *stored*
when rows get their first labels, block by block and in each feature by feature, and read from then
on: half as much, and no conversion.  Rows that change are then listed by their numbers, and looked
up; where `stored` is None, they are listed with their features (:mod:`lists`).
"""

from __future__ import annotations

import triton
import triton.language as tl

from lloydia.backends.cuda.device_functions.barrier import THREADS
from lloydia.backends.cuda.device_functions.feature_loads import features
from lloydia.backends.cuda.device_functions.prefetch import prefetch
from lloydia.backends.cuda.low_dim.lists import entry_size, get, put

__all__ = [
    "LISTED",
    "first_of",
    "list_rows",
    "listed_at",
    "listed_row",
    "lists_of",
    "prefetch_stored",
    "rows_of",
    "rows_to_score",
    "store",
]

LANES = tl.constexpr(THREADS)
# Entries of a list for each thread, at most.
LISTED = tl.constexpr(128)


@triton.jit
def first_of(block, n, EACH: tl.constexpr):
    """Return the row that a block begins with.

    The last block is as large as the others, and overlaps the one before it.
    """
    # Blocks up to two rounds past the last are within 32 bits: dataset.MOST_ROWS leaves room.
    return tl.minimum(block * (LANES * EACH), n - LANES * EACH)


@triton.jit
def rows_of(X, block, n, d: tl.constexpr, EACH: tl.constexpr):
    """Return the features of a block's rows, EACH a thread."""
    at = X + first_of(block, n, EACH).to(tl.int64) * d
    x = ()
    for e in tl.static_range(EACH):
        x = x + (features(at, (e * LANES + tl.arange(0, LANES)) * d, None, d),)
    return x


@triton.jit
def last_or(block, n, EACH: tl.constexpr):
    """Return the number of a block, or that of the last: those past it are stored nowhere."""
    return tl.minimum(block, tl.cdiv(n, LANES * EACH) - 1)


@triton.jit
def stored_at(stored, block, d: tl.constexpr, EACH: tl.constexpr):
    """Return where a block's rows are stored: feature by feature."""
    return stored + tl.full((), LANES * EACH * d, tl.int64) * block


@triton.jit
def store(stored, block, y, d: tl.constexpr, EACH: tl.constexpr):
    """Store a block's rows in the frame, EACH a thread."""
    at = stored_at(stored, block, d, EACH) + tl.arange(0, LANES)
    for e in tl.static_range(EACH):
        for f in tl.static_range(d):
            tl.store(at + (f * EACH + e) * LANES, y[e][f])


@triton.jit
def rows_to_score(X, stored, block, n, d: tl.constexpr, EACH: tl.constexpr):
    """Return a block's rows, EACH a thread: their features, or what is stored of them."""
    if stored is None:
        return rows_of(X, block, n, d, EACH)
    else:
        at = stored_at(stored, last_or(block, n, EACH), d, EACH) + tl.arange(0, LANES)
        y = ()
        for e in tl.static_range(EACH):
            own = ()
            for f in tl.static_range(d):
                own = own + (tl.load(at + (f * EACH + e) * LANES),)
            y = y + (own,)
        return y


@triton.jit
def prefetch_stored(stored, block, n, d: tl.constexpr, EACH: tl.constexpr):
    """Ask for a block's rows, which are stored."""
    first = last_or(block, n, EACH).to(tl.int64) * (LANES * EACH * d)
    prefetch(stored, first, None, LANES * EACH * d)


@triton.jit
def lists_of(listed, room, stored, kind: tl.constexpr, d: tl.constexpr):
    """Return this program's lists, as :mod:`lists` takes them, in the memory of all programs.

    `room` are the rows of a program; `kind` is the type of their features where these are listed.
    """
    room = tl.minimum(room // LANES, LISTED)
    if stored is None:
        listed = listed.to(tl.pointer_type(kind))
        size: tl.constexpr = LANES * entry_size(d, kind.primitive_bitwidth // 8)
        return listed + tl.program_id(0) * room.to(tl.int64) * size, room
    else:
        return listed + tl.program_id(0) * room.to(tl.int64) * (LANES * entry_size(1, 4)), room


@triton.jit
def list_rows(lists, at, x, rows, stored, old, new, mask, d: tl.constexpr):
    """List rows, one a thread: with their features, or, if rows are stored, by their numbers."""
    if stored is None:
        put(lists, at, x, old, new, mask, d)
    else:
        put(lists, at, (rows,), old, new, mask, 1)


@triton.jit
def listed_at(lists, i, n_listed, stored, d: tl.constexpr):
    """Return what the lists have of the i-th row of each thread, and which are there."""
    return get(lists, i, n_listed, d if stored is None else 1)


@triton.jit
def listed_row(X, found, stored, d: tl.constexpr):
    """Return what is needed of listed rows: features, number, old and new cluster, which are there.

    Rows that are listed with their features are all number 0.
    """
    x, old, new, there = found
    if stored is None:
        return x, tl.zeros((LANES,), tl.int32), old, new, there
    else:
        rows = x[0]
        return features(X, rows.to(tl.int64) * d, there, d), rows, old, new, there
