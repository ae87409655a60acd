"""Bounds of a row's distances, by which it keeps its label without being scored.

These are Hamerly's two bounds (Making k-means even faster, SIAM SDM 2010): `upper` is at least the
distance to the centre of the row's label, `lower` at most the distance to any other centre.  The
row keeps its label if ``upper < lower``.  They are in the frame of
:mod:`lloydia.exact.half_certificate`, and in float32, rounded up and down.
"""

from __future__ import annotations

import triton
import triton.language as tl

from lloydia.exact import half_certificate

__all__ = [
    "above",
    "below",
    "keeps",
    "lower_bound_shrunk",
    "moved",
    "shortfall",
    "upper_bound_grown",
]

LAST_STEP = tl.constexpr(half_certificate.LAST_STEP)
UNIT = tl.constexpr(2.0**-24)
# What a root (error 2**-22) and a few roundings of float32 may cost; one or two roundings.
ROOT, STEP = tl.constexpr(2.0**-20), tl.constexpr(2.0**-22)
# Distances that differ by more than this, relative and absolute, stay in the same order when D is
# rounded: its error is less than 2**-38 (d <= 8192), or 2**-60 where it underflows.
SEPARATION, MIN_SEPARATION = tl.constexpr(1.0 + 2.0**-15), tl.constexpr(2.0**-26)
# What a square that underflows may take from a root, for each feature.
UNDERFLOW = tl.constexpr(2.0**-537)


def shortfall(width: int) -> float:
    """Return by which part the stored bound of a norm may exceed the norm, at most.

    This is a third more than :func:`lloydia.backends.cuda.rows.fp16_rows.rows_kernel` needs.
    """
    return (width + 64) * 2.0**-23 + 2.0**-19


@triton.jit
def above(score, norm, residual, own_norm, own_residual, own_bias, shift, summed):
    """Return :func:`lloydia.exact.half_certificate.distance_above` in float32, rounded up."""
    half_norm = 0.5 * own_norm * own_norm + shift
    error = (summed + LAST_STEP) * norm * own_norm + LAST_STEP * half_norm
    square = norm * norm
    rounded = (square + score + shift + own_bias) * (8 * UNIT)
    square = tl.maximum(square + 2.0 * (score - shift + own_bias + error), 0.0) + rounded
    return (tl.sqrt(square) + residual + own_residual) * (1.0 + ROOT)


@triton.jit
def below(score, norm, short, residual, shift, typical_norm, typical_residual, summed):
    """Return :func:`lloydia.exact.half_certificate.distance_below` in float32, rounded down.

    `short` is the :func:`shortfall` of norms.
    """
    half_norm = 0.5 * typical_norm * typical_norm + shift
    error = ((summed + LAST_STEP) * norm * typical_norm + LAST_STEP * half_norm) * (1.0 + ROOT)
    square = norm * norm
    rounded = (square + tl.abs(score) + shift) * (8 * UNIT)
    square = square * (1.0 - 2.0 * short) + 2.0 * (score - shift - error) - rounded
    return tl.sqrt(tl.maximum(square, 0.0)) * (1.0 - ROOT) - (residual + typical_residual) * (
        1.0 + ROOT
    )


@triton.jit
def moved(square, scale, d):
    """Return how far a centre moved in the frame, rounded up; `square` is D of its two places.

    What float32 may lose near 0 is far less than MIN_SEPARATION.
    """
    far = tl.sqrt(square) * (1.0 + 2.0**-20) + d.to(tl.float64) * UNDERFLOW
    return (far * scale * (1.0 + 2.0**-20)).to(tl.float32)


@triton.jit
def upper_bound_grown(upper, move):
    """Return `upper` after the row's centre moved: ``upper + move``, rounded up."""
    return (upper + move) * (1.0 + STEP)


@triton.jit
def lower_bound_shrunk(lower, move):
    """Return `lower` after other centres moved: ``lower - move``, rounded down."""
    return (lower - move) - (tl.abs(lower) + move) * STEP


@triton.jit
def keeps(upper, lower):
    """Return whether ``upper < lower`` holds for exact distances, so that the label stays."""
    return lower > upper * SEPARATION + MIN_SEPARATION
