"""The score that no nearest centre can pass: :func:`lloydia.exact.half_certificate.limit`."""

from __future__ import annotations

import triton
import triton.language as tl

from lloydia.exact import half_certificate

__all__ = ["limit", "limit_of"]

# float32 rounding of what is added to the least score: raised by a part, it needs half of that more
# (u >= 2 b), and the other half covers its rounding.  Then that of the sum.
GROW, GROW_SUM = tl.constexpr(1.0 + 2.0**-16), tl.constexpr(1.0 + 2.0**-22)
# A rounding of float32.
ROUNDING = tl.constexpr(2.0**-24)
LAST_STEP = tl.constexpr(half_certificate.LAST_STEP)


@triton.jit
def limit(least, norm, rest, norms, rests, fixed, shift, radius, summed, canonical):
    """As :func:`lloydia.exact.half_certificate.limit`, in float32, rounded up.

    Of the centre and the usual one together: `norms` are ``B_1 + B``, `rests` ``g_1 + g``, `fixed`
    all that depends on no row (:func:`rows.packing.terms_of`).
    """
    fixed += (summed + LAST_STEP) * norm * norms + rest * (rest + rests)
    square = norm * norm
    # The subtraction of shift is rounded relative to its operands, and so is the square.
    square = tl.maximum(square + 2.0 * (least - shift + fixed), 0.0) + (square + least + shift) * (
        8 * ROUNDING
    )
    most = 2.0 * rest + rests
    delta = most + tl.sqrt(most * most + square + 2.0 * (fixed + rest * norms))
    away = delta + rest + rests
    rounded = canonical * away * away + 2.0**-60
    above = (fixed + rests * delta + rest * tl.minimum(norms, 2.0 * delta) + 2.0 * rounded) * GROW
    known = ((norm + rest) * GROW <= radius) & (least >= 0.0)
    known = known & ((least - shift + above) * GROW <= radius * radius)
    return tl.where(known, (least + above) * GROW_SUM, float("inf"))


@triton.jit
def limit_of(
    found, wanted, score, norm, rest, terms_ptr, shift, radius, summed, canonical
):  # fmt: skip
    """Return the limits of some rows, given a score of each and whose it is (or -1).

    The terms (:func:`rows.packing.terms_of`) of their centres are loaded for those in `wanted`
    only, whose limits are meant.
    """
    terms = tl.load(terms_ptr + tl.maximum(found, 0), mask=wanted, other=0)
    both = (terms >> 32).to(tl.int32)
    norms, rests = (both & -65536).to(tl.float32, bitcast=True), both << 16
    fixed = terms.to(tl.int32).to(tl.float32, bitcast=True)
    top = limit(
        score, norm, rest, norms, rests.to(tl.float32, bitcast=True), fixed,
        shift, radius, summed, canonical,
    )  # fmt: skip
    return tl.where(found >= 0, top, float("inf"))
