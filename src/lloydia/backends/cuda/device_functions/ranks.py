"""Order statistics of few values: each is compared with all others."""

from __future__ import annotations

import triton
import triton.language as tl

__all__ = ["ranked", "ranked_of"]


@triton.jit
def ranked(values, rank):
    """Return the value of a rank, from 0, in each column of a tile; equal values have own ranks."""
    i = tl.arange(0, values.shape[0])
    own, other = values[:, None, :], values[None, :, :]
    before = (other < own) | ((other == own) & (i[None, :, None] < i[:, None, None]))
    place = tl.sum(before.to(tl.int32), 1)
    return tl.sum(tl.where(place == rank, values, 0.0), 0)


@triton.jit
def ranked_of(values, rank):
    """Return the value of a rank, from 0, in a vector."""
    return tl.sum(ranked(values[:, None], rank), 0)
