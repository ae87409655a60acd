"""Scores of rows to a tile of centres by matrix units; half squared norms are one more product."""

from __future__ import annotations

import triton
import triton.language as tl

from lloydia.exact.half_certificate import summation

__all__ = [
    "CHUNK",
    "GROUP",
    "HALF_NORM_WIDTH",
    "WIDEST_IN_REGISTERS",
    "error_of_sums",
    "fp16_scores",
    "group_of",
    "half_norm_units",
]

# Features of one step, and the widest rows that programs keep in registers (in one step).
CHUNK, WIDEST_IN_REGISTERS = 64, 256
# Rows wider than UNGROUPED are summed in groups of GROUP features, and the groups are added in
# float32: that takes twice the registers and loses less precision.
UNGROUPED, GROUP = 2048, 512
# The smallest depth of a matrix unit's product.
HALF_NORM_WIDTH = tl.constexpr(16)


def group_of(width: int) -> int:
    """Return the number of features in a group of the sum; 0 means all."""
    return GROUP if width > UNGROUPED else 0


def error_of_sums(width: int) -> float:
    """Return the error bound of a sum of products, relative to the sum of their magnitudes."""
    return summation(width, group_of(width) or None)


@triton.jit
def half_norm_units(unit, ROWS: tl.constexpr):
    """Return what the parts of half norms are multiplied by: the unit, for the first three."""
    part = tl.arange(0, HALF_NORM_WIDTH)
    units = tl.where(part < 3, unit, 0.0).to(tl.float16)
    return tl.broadcast_to(units[None, :], (ROWS, HALF_NORM_WIDTH))


@triton.jit
def add_chunks(
    scores, y_block, mask, b_block, begin, end, CHUNK: tl.constexpr, STAGES: tl.constexpr
):  # fmt: skip
    """Add the products of the features from `begin` to `end`, chunk by chunk."""
    for skip in tl.range(begin, end, CHUNK, num_stages=STAGES):
        y = tl.load(y_block + skip, mask=mask[:, None], other=0.0)
        scores = tl.dot(y, tl.load(b_block + skip), scores)
    return scores


@triton.jit
def fp16_scores(
    y, y_block, mask, b_block, half_norm_block, units, width,
    COLUMNS: tl.constexpr, WIDE: tl.constexpr, CHUNK: tl.constexpr, GROUP: tl.constexpr,
    STAGES: tl.constexpr,
):  # fmt: skip
    """Return the scores of a tile: shape (ROWS, COLUMNS).

    Rows are in `y`; with WIDE they are loaded from `y_block`, chunk by chunk, where `mask` is set.
    """
    ROWS: tl.constexpr = mask.shape[0]
    if WIDE:
        scores = tl.zeros((ROWS, COLUMNS), tl.float32)
        if GROUP > 0:
            for begin in range(0, width, GROUP):
                end = tl.minimum(begin + GROUP, width)
                none = tl.zeros((ROWS, COLUMNS), tl.float32)
                scores += add_chunks(none, y_block, mask, b_block, begin, end, CHUNK, STAGES)
        else:
            scores = add_chunks(scores, y_block, mask, b_block, 0, width, CHUNK, STAGES)
    else:
        scores = tl.dot(y, tl.load(b_block))
    return tl.dot(units, tl.load(half_norm_block), scores)
