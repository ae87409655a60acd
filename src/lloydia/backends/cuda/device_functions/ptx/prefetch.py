"""Prefetching into the L2 cache, which takes no registers."""

from __future__ import annotations

import triton
import triton.language as tl

from lloydia.backends.cuda.device_functions.ptx.barrier import THREADS
from lloydia.backends.cuda.runtime.launching import COMPILED

__all__ = ["prefetch"]

LANES = tl.constexpr(THREADS)
# Bytes of a cache line.
LINE = tl.constexpr(128)


@triton.jit
def prefetch(source, first, n, COUNT: tl.constexpr):
    """Prefetch COUNT of n numbers from `first` on, by all threads, without waiting.

    `first` and `n` are 64-bit integers.  Addresses past the end are clamped.
    """
    if COMPILED:
        EACH: tl.constexpr = LINE // (source.dtype.element_ty.primitive_bitwidth // 8)
        for step in tl.static_range(0, COUNT, LANES * EACH):
            at = first + tl.minimum(step + tl.arange(0, LANES) * EACH, COUNT - 1)
            at = tl.minimum(at, n - 1)
            tl.inline_asm_elementwise(
                "prefetch.global.L2 [$1]; mov.b32 $0, 0;", "=r,l",
                [(source + at).to(tl.int64)],
                dtype=tl.int32, is_pure=False, pack=1,
            )  # fmt: skip
