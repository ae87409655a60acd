"""Float64 and integer arithmetic on the device, operation by operation as in lloydia.exact.

Kernels that use it are launched with :data:`~lloydia.backends.cuda.runtime.launching.EXACT`.
"""

from __future__ import annotations

import triton
import triton.language as tl

__all__ = [
    "ROUNDING_CONSTANT",
    "divide",
    "ldexp",
    "power_of_two",
    "product_error",
    "rint",
    "two_sum",
]

# A float64 that is added to this is rounded to an integer: the last bit of the sum is worth 1.
ROUNDING_CONSTANT = tl.constexpr(6755399441055744.0)
DEKKER = tl.constexpr(134217729.0)


@triton.jit
def rint(y):
    """Return rint(y) for ``|y| <= 2**51``."""
    return (y + ROUNDING_CONSTANT) - ROUNDING_CONSTANT


@triton.jit
def two_sum(a, b):
    """Return ``fl(a + b)`` and its rounding error."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


@triton.jit
def product_error(a, b, p):
    """Return ``a * b - p`` exactly, where ``p`` is the float64 product."""
    a_high = a * DEKKER - (a * DEKKER - a)
    b_high = b * DEKKER - (b * DEKKER - b)
    a_low = a - a_high
    b_low = b - b_high
    return ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low


@triton.jit
def divide(a, a_low, b, b_low):
    """Return ``(a + a_low) / (b + b_low)`` to within ``2**-100``, then rounded."""
    q = a / b
    p = q * b
    remainder = ((a - p) - product_error(q, b, p)) + (a_low - q * b_low)
    return q + remainder / b


@triton.jit
def power_of_two(e):
    """Return ``2.0**e`` for int64 e in [-1022, 1023]."""
    return ((e + 1023) << 52).to(tl.float64, bitcast=True)


@triton.jit
def ldexp(x, e):
    """Return ``x * 2**e``, rounded once, for ``2**-90 < |x| < 2**90`` or 0, and int64 e."""
    first = tl.minimum(tl.maximum(e, -900), 900)
    second = tl.minimum(tl.maximum(e - first, -900), 900)
    third = tl.minimum(tl.maximum(e - first - second, -900), 900)
    return x * power_of_two(first) * power_of_two(second) * power_of_two(third)
