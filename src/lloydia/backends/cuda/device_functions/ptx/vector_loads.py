"""Loads of neighbouring numbers that all threads need, four at a time."""

from __future__ import annotations

import triton
import triton.language as tl

from lloydia.backends.cuda.runtime.launching import COMPILED

__all__ = ["load_floats"]


@triton.constexpr_function
def load_ptx(count):
    """Return the PTX that loads so many float32 numbers, a multiple of four."""
    loads = [
        f"ld.global.v4.f32 {{${i}, ${i + 1}, ${i + 2}, ${i + 3}}}, [${count}+{4 * i}];"
        for i in range(0, count, 4)
    ]
    return "\n".join(loads)


@triton.constexpr_function
def load_operands(count):
    """Return the constraints of the operands of :func:`load_ptx`."""
    return ",".join(["=f"] * count + ["l"])


@triton.jit
def load_floats(at, COUNT: tl.constexpr):
    """Return COUNT float32 numbers, a multiple of four, from a multiple of 16 bytes on."""
    if COMPILED:
        return tl.inline_asm_elementwise(
            load_ptx(COUNT), load_operands(COUNT), [at], dtype=(tl.float32,) * COUNT,
            is_pure=False, pack=1,
        )  # fmt: skip
    else:
        found = ()
        for i in tl.static_range(COUNT):
            found = found + (tl.load(at + i),)
        return found
