"""Rows of few features that are in doubt: the canonical D to all centres says which is nearest.

As :mod:`lloydia.exact.distance` has it; launches take no fused products (launching.EXACT).
"""

from __future__ import annotations

import triton
import triton.language as tl

from lloydia.backends.cuda.device_functions.barrier import THREADS
from lloydia.backends.cuda.device_functions.feature_loads import features

__all__ = ["canonical", "canonical_distance", "nearest"]

LANES = tl.constexpr(THREADS)
# Centres under way at a time.
UNROLL = tl.constexpr(4)
# Up to FEW_DOUBTS rows are settled AT_ONCE at a time by all threads; of more, each is on a thread.
AT_ONCE, FEW_DOUBTS = tl.constexpr(16), tl.constexpr(32)


@triton.jit
def canonical_distance(x, c, d: tl.constexpr):
    """Return D of rows to centres, given the d features of each."""
    D = tl.zeros(x[0].shape, tl.float64)
    for f in tl.static_range(d):
        difference = x[f].to(tl.float64) - c[f].to(tl.float64)
        D += difference * difference
    return D


@triton.jit
def canonical(x, centers, k, d: tl.constexpr, BLOCK: tl.constexpr):
    """Return the labels of a block of rows by canonical D."""
    least = tl.full((BLOCK,), float("inf"), tl.float64)
    label = tl.zeros((BLOCK,), tl.int32)
    for j in tl.range(0, k, loop_unroll_factor=UNROLL):
        c = features(centers, j * d, j < k, d)
        D = canonical_distance(x, c, d)
        label = tl.where(D < least, j, label)
        least = tl.minimum(least, D)
    return label


@triton.jit
def canonical_few(x, centers, k, d: tl.constexpr, ROWS: tl.constexpr, ACROSS: tl.constexpr):
    """Return what :func:`canonical` does of ROWS rows; ACROSS threads look at each."""
    least = tl.full((ROWS, ACROSS), float("inf"), tl.float64)
    label = tl.zeros((ROWS, ACROSS), tl.int32)
    for first in tl.range(0, k, ACROSS, loop_unroll_factor=UNROLL):
        j = first + tl.arange(0, ACROSS)
        c = features(centers, j * d, j < k, d)
        D = tl.zeros((ROWS, ACROSS), tl.float64)
        for f in tl.static_range(d):
            difference = x[f].to(tl.float64)[:, None] - c[f].to(tl.float64)[None, :]
            D += difference * difference
        better = (D < least) & (j < k)[None, :]
        label = tl.where(better, j[None, :], label)
        least = tl.where(better, D, least)
    # Of equals the first.
    nearest = tl.min(least, 1)[:, None]
    return tl.min(tl.where(least == nearest, label, k), 1)


@triton.jit
def nearest_of_few(X, rows, mask, listed, centers, k, d: tl.constexpr):
    """Return what canonical does of the rows in `mask`, some at a time on all threads.

    `listed`, with room for a number a thread, is written over.
    """
    some = mask.to(tl.int32)
    rank = tl.cumsum(some, 0) - some
    count = tl.sum(some, 0)
    # All have read what was listed.
    tl.debug_barrier()
    tl.store(listed + rank, rows, mask=mask)
    tl.debug_barrier()
    for first in range(0, count, AT_ONCE):
        place = first + tl.arange(0, AT_ONCE)
        row = tl.load(listed + place, mask=place < count, other=0)
        x = features(X, row.to(tl.int64) * d, place < count, d)
        label = canonical_few(x, centers, k, d, AT_ONCE, LANES // AT_ONCE)
        tl.debug_barrier()
        tl.store(listed + place, label, mask=place < count)
    tl.debug_barrier()
    return tl.load(listed + rank, mask=mask, other=0)


@triton.jit
def nearest(X, rows, mask, listed, centers, k, d: tl.constexpr):
    """Return the labels of rows in doubt, one a thread; `listed` is where they are listed."""
    new = tl.zeros((LANES,), tl.int32)
    if tl.sum(mask.to(tl.int32), 0) > FEW_DOUBTS:
        new = canonical(features(X, rows.to(tl.int64) * d, mask, d), centers, k, d, LANES)
    else:
        new = nearest_of_few(X, rows, mask, listed, centers, k, d)
    return new
