"""The least and the largest of three integers, and integers that carry a name in their lowest bits.

Each is one instruction, or two that the compiler must not split.
"""

from __future__ import annotations

import triton
import triton.language as tl

from lloydia.backends.cuda.runtime.launching import COMPILED

__all__ = ["NAMES", "max_of_three", "min_of_three", "nearest_above", "packed", "with_name"]

# The number of names.
NAMES = tl.constexpr(32)


@triton.jit
def min_of_three(a, b, c):
    """Return the minimum of three 32-bit integers, signed or not."""
    UNSIGNED: tl.constexpr = a.dtype == tl.uint32
    if COMPILED:
        return tl.inline_asm_elementwise(
            "min.u32 $0, $1, $2; min.u32 $0, $0, $3;" if UNSIGNED
            else "min.s32 $0, $1, $2; min.s32 $0, $0, $3;",
            "=&r,r,r,r", [a, b, c], dtype=a.dtype, is_pure=True, pack=1,
        )  # fmt: skip
    return tl.minimum(tl.minimum(a, b), c)


@triton.jit
def max_of_three(a, b, c):
    """Return the maximum of three signed 32-bit integers."""
    if COMPILED:
        return tl.inline_asm_elementwise(
            "max.s32 $0, $1, $2; max.s32 $0, $0, $3;", "=&r,r,r,r", [a, b, c],
            dtype=tl.int32, is_pure=True, pack=1,
        )  # fmt: skip
    return tl.maximum(tl.maximum(a, b), c)


@triton.jit
def nearest_above(value, bound, nearest):
    """Return the smaller of `nearest` and ``value - bound - 1``: one operation on Hopper.

    A value that equals the bound wraps around to the largest integer.
    """
    if COMPILED:
        return tl.inline_asm_elementwise(
            "{ .reg .u32 above; add.u32 above, $1, $2; min.u32 $0, above, $3; }", "=r,r,r,r",
            [value, ~bound, nearest], dtype=tl.uint32, is_pure=True, pack=1,
        )  # fmt: skip
    return tl.minimum(value + ~bound, nearest)


@triton.jit
def with_name(bound, name):
    """Return a bound whose lowest bits are those of the name."""
    if COMPILED:
        return tl.inline_asm_elementwise(
            "lop3.b32 $0, $1, $2, -32, 0xE4;", "=r,r,r", [bound, name],
            dtype=tl.uint32, is_pure=True, pack=1,
        )  # fmt: skip
    return bound // NAMES * NAMES + name % NAMES


@triton.jit
def packed(low, high):
    """Return two 32-bit numbers as one 64-bit number."""
    if COMPILED:
        return tl.inline_asm_elementwise(
            "mov.b64 $0, {$1, $2};", "=l,r,r", [low, high], dtype=tl.int64, is_pure=True, pack=1
        )
    return (high.to(tl.int64) << 32) | low.to(tl.int64)
