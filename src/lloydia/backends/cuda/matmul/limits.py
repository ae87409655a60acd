"""The limit that a nearest centre's score cannot exceed, as in lloydia.exact.half_certificate."""

from __future__ import annotations

import triton
import triton.language as tl

from lloydia.exact import half_certificate

__all__ = ["limit", "limit_of"]

# The relative increase that covers the float32 rounding of what is added to the best score: half of
# it for the addend (u >= 2 b), the other half for its own rounding.  Then that of the sum.
GROW, GROW_SUM = tl.constexpr(1.0 + 2.0**-16), tl.constexpr(1.0 + 2.0**-22)
# One rounding of float32.
ROUNDING = tl.constexpr(2.0**-24)
LAST_STEP = tl.constexpr(half_certificate.LAST_STEP)


@triton.jit
def limit(best_score, norm, residual, norms, residuals, fixed, shift, radius, summed, canonical):
    """Return :func:`lloydia.exact.half_certificate.limit` in float32, rounded up.

    `norms` is ``B_1 + B`` and `residuals` is ``g_1 + g``, of the row's centre and the typical one;
    `fixed` is the part that depends on no row (:func:`rows.packing.coefficients_of`).
    """
    fixed += (summed + LAST_STEP) * norm * norms + residual * (residual + residuals)
    square = norm * norm
    # The subtraction of shift is rounded relative to its operands, as the square is.
    square = tl.maximum(square + 2.0 * (best_score - shift + fixed), 0.0) + (
        square + best_score + shift
    ) * (8 * ROUNDING)
    most = 2.0 * residual + residuals
    delta = most + tl.sqrt(most * most + square + 2.0 * (fixed + residual * norms))
    away = delta + residual + residuals
    rounded = canonical * away * away + 2.0**-60
    above = (
        fixed + residuals * delta + residual * tl.minimum(norms, 2.0 * delta) + 2.0 * rounded
    ) * GROW
    known = ((norm + residual) * GROW <= radius) & (best_score >= 0.0)
    known = known & ((best_score - shift + above) * GROW <= radius * radius)
    return tl.where(known, (best_score + above) * GROW_SUM, float("inf"))


@triton.jit
def limit_of(
    found, wanted, score, norm, residual, coefficients_ptr, shift, radius, summed, canonical
):  # fmt: skip
    """Return the limits of rows, given one score of each and the column it belongs to (or -1).

    The bound coefficients of the columns are loaded only where `wanted` is set.
    """
    coefficients = tl.load(coefficients_ptr + tl.maximum(found, 0), mask=wanted, other=0)
    both = (coefficients >> 32).to(tl.int32)
    norms, residuals = (both & -65536).to(tl.float32, bitcast=True), both << 16
    fixed = coefficients.to(tl.int32).to(tl.float32, bitcast=True)
    top = limit(
        score, norm, residual, norms, residuals.to(tl.float32, bitcast=True), fixed,
        shift, radius, summed, canonical,
    )  # fmt: skip
    return tl.where(found >= 0, top, float("inf"))
