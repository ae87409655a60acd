"""The score that no nearest centre can pass: :func:`lloydia.exact.half_certificate.limit`."""

from __future__ import annotations

import triton
import triton.language as tl

from lloydia.exact import half_certificate

__all__ = ["limit", "limit_of"]

# float32 rounding of what is added to the least score: raised by a part, it needs half of that more
# (u >= 2 b), and the other half covers its rounding.  Then that of the sum.
GROW, GROW_SUM = tl.constexpr(1.0 + 2.0**-16), tl.constexpr(1.0 + 2.0**-22)
UNIT = tl.constexpr(2.0**-24)
LAST_STEP = tl.constexpr(half_certificate.LAST_STEP)


@triton.jit
def limit(
    least, norm, rest, own_norm, own_rest, own_lowered,
    shift, radius, usual_norm, usual_rest, summed, canonical,
):  # fmt: skip
    """As :func:`lloydia.exact.half_certificate.limit`, in float32, rounded up."""
    both_norms = own_norm + usual_norm
    both_rests = own_rest + usual_rest
    starts = 0.5 * (own_norm * own_norm + usual_norm * usual_norm) + 2.0 * shift
    errors = (summed + LAST_STEP) * norm * both_norms + LAST_STEP * starts
    square = norm * norm
    # The subtraction of shift is rounded relative to its operands, and so is the square.
    square = tl.maximum(square + 2.0 * (least - shift + errors), 0.0) + (square + least + shift) * (
        8 * UNIT
    )
    quadratic = 0.5 * (
        (rest + own_rest) * (rest + own_rest) + (rest + usual_rest) * (rest + usual_rest)
    )
    above = tl.full(least.shape, float("inf"), tl.float32)
    for option in tl.static_range(2):
        alpha = rest * both_norms if option == 0 else tl.zeros_like(rest)
        beta = both_rests if option == 0 else 2.0 * rest + both_rests
        fixed = own_lowered + errors + alpha + quadratic
        delta = beta + tl.sqrt(beta * beta + square + 2.0 * fixed)
        away = delta + rest + both_rests
        rounded = canonical * away * away + 2.0**-60
        above = tl.minimum(above, (fixed + beta * delta + 2.0 * rounded) * GROW)
    known = ((norm + rest) * GROW <= radius) & (least >= 0.0)
    known = known & ((least - shift + above) * GROW <= radius * radius)
    return tl.where(known, (least + above) * GROW_SUM, float("inf"))


@triton.jit
def limit_of(
    rows, mask, wanted, score, found, norm_ptr, rest_ptr, center_norm, center_rest,
    center_lowered, usual, shift, radius, summed, canonical,
):  # fmt: skip
    """Return the limits of some rows, given a score of each and whose it is (or -1).

    All that is of rows in `mask` is loaded; what is of their centres, of those in `wanted` only,
    whose limits are meant.
    """
    at = tl.maximum(found, 0)
    top = limit(
        score,
        tl.load(norm_ptr + rows, mask=mask, other=0.0),
        tl.load(rest_ptr + rows, mask=mask, other=0.0),
        tl.load(center_norm + at, mask=wanted, other=0.0),
        tl.load(center_rest + at, mask=wanted, other=0.0),
        tl.load(center_lowered + at, mask=wanted, other=0.0),
        shift, radius, tl.load(usual), tl.load(usual + 1), summed, canonical,
    )  # fmt: skip
    return tl.where(found >= 0, top, float("inf"))
