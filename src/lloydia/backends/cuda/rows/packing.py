"""Packing of centres in half precision, for :mod:`matmul.fp16_centers` and :mod:`update.means`."""

from __future__ import annotations

import triton
import triton.language as tl

from lloydia.backends.cuda.device_functions.fp16_scores import HALF_NORM_WIDTH
from lloydia.backends.cuda.rows.fp16_frame import RADIUS
from lloydia.backends.cuda.rows.fp16_rows import (
    GROW,
    LARGEST_RESIDUAL,
    LOST,
    SCORE_SHIFT,
    UNIT,
    bound,
    to_fp16,
)
from lloydia.exact import half_certificate

__all__ = [
    "HALF_NORM_WORDS",
    "begin_scores",
    "half_norm_of",
    "in_fixed_point",
    "of_frame",
    "store_bounds",
    "store_fp16",
    "store_half_norms",
    "typical_of",
]

LAST_STEP = tl.constexpr(half_certificate.LAST_STEP)
# The distance from which on centres are far, and their score
# (:mod:`lloydia.exact.half_certificate`).
FAR = tl.constexpr(half_certificate.FAR_CENTER)
FAR_HALF_NORM = tl.constexpr(half_certificate.FAR_SCORE)
# 64-bit words of a half norm; the first holds its three numbers.
HALF_NORM_WORDS = tl.constexpr(HALF_NORM_WIDTH.value // 4)
# Bounds are added as integers, so that the order does not matter, in units of 1 / ONE.  No bound
# exceeds 2**15, since R is at most 2**13: sums of 2**28 fit; the truncation is below the error of
# scores.
ONE = tl.constexpr(2.0**20)


@triton.jit
def store_fp16(c, m, scale, inside, high_at, reach, squares, errors):
    """Store some features of centres in half precision; return three updated sums of squares.

    These are of the centres' place in the frame, of what is stored, and of the rounding errors.
    """
    c = tl.where(inside, (c.to(tl.float64) - m[None, :]) * scale, 0.0)
    high = to_fp16(c)
    # Negated, because a score is the half norm plus products.
    tl.store(high_at, -high)
    h = high.to(tl.float64)
    reach += tl.sum(c * c, 1)
    squares += tl.sum(h * h, 1)
    errors += tl.sum((c - h) * (c - h), 1)
    return reach, squares, errors


@triton.jit
def store_bounds(
    at, there, reach, squares, errors, radius, high_ptr, width, square_ptr, norm_ptr, residual_ptr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Store upper bounds of norms and rounding errors; return which centres are near, and bounds.

    Centres that are too far for the certificate, or not `there`, are stored as zeros, with the
    square -1 and the bounds 0.
    """
    near = there & (reach <= (FAR * radius) * (FAR * radius))
    if tl.sum((~near).to(tl.int32), 0) > 0:
        # This overwrites what other threads have stored.
        tl.debug_barrier()
        for first in range(0, width, BLOCK):
            to = at[:, None] * width + (first + tl.arange(0, BLOCK))[None, :]
            none = tl.zeros((at.shape[0], BLOCK), tl.float16)
            tl.store(high_ptr + to, none, mask=~near[:, None])
    norm = tl.where(near, bound(squares), 0.0)
    # The difference to the origin was rounded, relative to itself.
    lost = LOST * (tl.sqrt(squares) + 1.0)
    residual = tl.where(near, ((tl.sqrt(errors) + lost) * GROW).to(tl.float32), 0.0)
    tl.store(square_ptr + at, tl.where(near, squares, -1.0))
    tl.store(norm_ptr + at, norm)
    tl.store(residual_ptr + at, residual)
    return near, norm, residual


@triton.jit
def in_fixed_point(x):
    """Return bounds as integers, which can be added in any order."""
    return (x.to(tl.float64) * ONE).to(tl.int64)


@triton.jit
def typical_of(total, count):
    """Return the mean of bounds, given their sum and their number."""
    return (total.to(tl.float64) / (tl.maximum(count, 1).to(tl.float64) * ONE)).to(tl.float32)


@triton.jit
def coefficients_of(norm, residual, typical_norm, typical_residual, score_bias, shift):
    """Return upper bounds of what limits need of a centre and the typical one, in a 64-bit word.

    The lower half is, in float32, the part that depends on no row.  The upper half is ``B_1 + B``
    and ``g_1 + g``, each with as many bits as bfloat16 has.
    """
    norms, residuals = (norm + typical_norm) * GROW, (residual + typical_residual) * GROW
    squares = norm * norm + typical_norm * typical_norm
    fixed = score_bias + LAST_STEP * (0.5 * squares + 2.0 * shift)
    # At most eight roundings of positive numbers.
    fixed = (fixed + 0.5 * (residual * residual + typical_residual * typical_residual)) * GROW
    both = (norms.to(tl.int32, bitcast=True) + 0xFFFF) & -0x10000
    both |= (residuals.to(tl.int32, bitcast=True) + 0xFFFF) >> 16
    word = fixed.to(tl.int32, bitcast=True).to(tl.int64) & 0xFFFFFFFF
    return (both.to(tl.int64) << 32) | word


@triton.jit
def of_frame(numbers):
    """Return what half norms need of a frame's numbers: R, the largest residual, shift, unit."""
    largest_residual = tl.load(numbers + LARGEST_RESIDUAL)
    return (
        tl.load(numbers + RADIUS),
        largest_residual,
        tl.load(numbers + SCORE_SHIFT),
        tl.load(numbers + UNIT),
    )


@triton.jit
def half_norm_of(square, norm, residual, typical_norm, typical_residual, frame, summed):
    """Return the score bias, the half norm and the bound coefficients of centres.

    The score bias is that of :func:`lloydia.exact.half_certificate.score_bias`.
    """
    radius, largest_residual, shift, _ = frame
    B, g, typical_B, typical_g = (
        norm.to(tl.float64),
        residual.to(tl.float64),
        typical_norm.to(tl.float64),
        typical_residual.to(tl.float64),
    )
    more = tl.maximum(B - typical_B, 0.0)
    more_residual = tl.maximum(g - typical_g, 0.0)
    excess = more * (largest_residual + radius * (LAST_STEP + summed))
    excess += more_residual * (radius + B + largest_residual + g + typical_g)
    excess += 0.5 * LAST_STEP * more * (B + typical_B)
    score_bias = 2.0 * GROW * excess
    half_norm = tl.where(square >= 0.0, 0.5 * square - score_bias, FAR_HALF_NORM * radius * radius)
    score_bias = (score_bias * GROW).to(tl.float32)
    coefficients = coefficients_of(
        norm, residual, typical_norm, typical_residual, score_bias, shift.to(tl.float32)
    )
    # The score of a far centre is beyond all limits, so its coefficients are never used.
    return score_bias, half_norm + shift, tl.where(square >= 0.0, coefficients, 0)


@triton.jit
def store_half_norms(
    j,
    mask,
    score_bias,
    half_norm,
    coefficients,
    frame,
    bias_ptr,
    half_norm_f32_ptr,
    coefficients_ptr,
):
    """Store what :func:`half_norm_of` returns; return each half norm as three float16 in a word."""
    tl.store(bias_ptr + j, score_bias, mask=mask)
    tl.store(coefficients_ptr + j, coefficients, mask=mask)
    tl.store(half_norm_f32_ptr + j, half_norm.to(tl.float32), mask=mask)
    _, _, _, unit = frame
    # The unit is a power of two, so this is exact.
    left = half_norm * (1.0 / unit)
    word = tl.zeros(left.shape, tl.int64)
    for part in tl.static_range(3):
        half = to_fp16(left)
        word |= (half.to(tl.int16, bitcast=True).to(tl.int64) & 0xFFFF) << (16 * part)
        left -= half.to(tl.float64)
    return word


@triton.jit
def begin_scores(
    k, frame, square_ptr, norm_ptr, residual_ptr, typical, summed, bias_ptr, half_norm_ptr,
    half_norm_f32_ptr, coefficients_ptr, ALL: tl.constexpr,
):  # fmt: skip
    """Store half norms and typical bounds once all programs have stored their at most ALL centres.

    Padding stays as the first packing of a run left it.
    """
    j = tl.arange(0, ALL)
    mask = j < k
    square = tl.load(square_ptr + j, mask=mask, other=-1.0, volatile=True)
    norm = tl.load(norm_ptr + j, mask=mask, other=0.0, volatile=True)
    residual = tl.load(residual_ptr + j, mask=mask, other=0.0, volatile=True)
    count = tl.sum((square >= 0.0).to(tl.int64), 0)
    typical_norm = typical_of(tl.sum(in_fixed_point(norm), 0), count)
    typical_residual = typical_of(tl.sum(in_fixed_point(residual), 0), count)
    tl.store(typical, typical_norm)
    tl.store(typical + 1, typical_residual)
    score_bias, half_norm, coefficients = half_norm_of(
        square, norm, residual, typical_norm, typical_residual, frame, summed
    )
    word = store_half_norms(
        j, mask, score_bias, half_norm, coefficients, frame, bias_ptr, half_norm_f32_ptr,
        coefficients_ptr,
    )  # fmt: skip
    tl.store(half_norm_ptr + j * HALF_NORM_WORDS, word, mask=mask)
