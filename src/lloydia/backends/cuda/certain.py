"""The verdict on a row: :func:`lloydia.exact.half_certificate.certified`, in float32."""

from __future__ import annotations

import triton
import triton.language as tl

__all__ = ["certain"]

# float32 rounding of the bound itself.
GROW = tl.constexpr(1.0 + 2.0**-16)
UNIT = tl.constexpr(2.0**-24)


@triton.jit
def certain(
    least, second, norm, rest, shift, radius, largest, residual, start,
    summed, added, canonical, dropped,
):  # fmt: skip
    """As :func:`lloydia.exact.half_certificate.certified`, rounded up; false for NaN."""
    nu = (summed + added) * norm * largest + added * start + dropped
    square = norm * norm
    # The subtraction of shift is rounded relative to `second`, and so is the square.
    delta = tl.sqrt(tl.maximum(square + 2.0 * (second - shift + nu), 0.0)
                    + (square + second + shift) * (8 * UNIT))  # fmt: skip
    both = rest + residual
    away = delta + both
    bound = 2.0 * (tl.minimum(rest * largest, rest * delta) + residual * delta + nu)
    bound = (bound + both * both + canonical * away * away + 2.0**-60) * GROW
    inside = ((norm + rest) * GROW <= radius) & (least >= 0.0)
    return inside & (second - least > bound) & ((least - shift + bound) * GROW <= radius * radius)
