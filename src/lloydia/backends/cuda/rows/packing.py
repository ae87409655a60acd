"""How centres are put in half precision: for :mod:`matmul.half_centers` and :mod:`update.means`."""

from __future__ import annotations

import triton
import triton.language as tl

from lloydia.backends.cuda.device_functions.half_scores import START_WIDTH
from lloydia.backends.cuda.rows.half_frame import RADIUS
from lloydia.backends.cuda.rows.half_rows import (
    GROW,
    LARGEST_REST,
    LOST,
    SHIFT,
    UNIT,
    bound,
    to_half,
)
from lloydia.exact import half_certificate

__all__ = [
    "WORDS",
    "add_halves",
    "begin_scores",
    "in_fixed_point",
    "of_frame",
    "start_of",
    "store_bounds",
    "store_starts",
    "usual_of",
]

LAST_STEP = tl.constexpr(half_certificate.LAST_STEP)
# Where centres begin to be far, and the score that stands for them: see there.
FAR = tl.constexpr(half_certificate.FAR_CENTER)
FAR_START = tl.constexpr(half_certificate.FAR_SCORE)
# Words of 64 bits that a start takes, the first of which has its three numbers.
WORDS = tl.constexpr(START_WIDTH.value // 4)
# Bounds are added up as integers, in any order the same, in a unit of one in so many.  None exceeds
# 2**15, as R is at most 2**13: sums of 2**28 fit, and what is cut off is less than scores are off.
ONE = tl.constexpr(2.0**20)


@triton.jit
def add_halves(c, m, scale, inside, high_at, reach, squares, errors):
    """Store some features of centres, and add their squares to three sums, which are returned.

    Of where the centres are in the frame, of what is stored, and of what rounding left out.
    """
    c = tl.where(inside, (c.to(tl.float64) - m[None, :]) * scale, 0.0)
    high = to_half(c)
    # Negated: a score is its start and products that are added.
    tl.store(high_at, -high)
    h = high.to(tl.float64)
    reach += tl.sum(c * c, 1)
    squares += tl.sum(h * h, 1)
    errors += tl.sum((c - h) * (c - h), 1)
    return reach, squares, errors


@triton.jit
def store_bounds(
    at, there, reach, squares, errors, radius, high_ptr, width, square_ptr, norm_ptr, rest_ptr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Store upper bounds of norms and rests; return which centres are near, and their bounds.

    Others, too far for the certificate or not `there` at all, are stored as zeros, and have the
    square -1 and the bounds 0.
    """
    near = there & (reach <= (FAR * radius) * (FAR * radius))
    if tl.sum((~near).to(tl.int32), 0) > 0:
        # What other threads have stored there is overwritten.
        tl.debug_barrier()
        for first in range(0, width, BLOCK):
            to = at[:, None] * width + (first + tl.arange(0, BLOCK))[None, :]
            none = tl.zeros((at.shape[0], BLOCK), tl.float16)
            tl.store(high_ptr + to, none, mask=~near[:, None])
    norm = tl.where(near, bound(squares), 0.0)
    # The difference to the origin was rounded relative to itself.
    lost = LOST * (tl.sqrt(squares) + 1.0)
    rest = tl.where(near, ((tl.sqrt(errors) + lost) * GROW).to(tl.float32), 0.0)
    tl.store(square_ptr + at, tl.where(near, squares, -1.0))
    tl.store(norm_ptr + at, norm)
    tl.store(rest_ptr + at, rest)
    return near, norm, rest


@triton.jit
def in_fixed_point(x):
    """Return bounds as integers that can be added up."""
    return (x.to(tl.float64) * ONE).to(tl.int64)


@triton.jit
def usual_of(total, count):
    """Return the mean of bounds, given their sum and how many there are."""
    return (total.to(tl.float64) / (tl.maximum(count, 1).to(tl.float64) * ONE)).to(tl.float32)


@triton.jit
def terms_of(norm, rest, usual_norm, usual_rest, lowered, shift):
    """Return what limits take of a centre and the usual one, in a word: upper bounds.

    The lower half is, in float32, all that depends on no row; of the upper half, each in as many
    bits as bfloat16 has, ``B_1 + B`` is the first and ``g_1 + g`` the last.
    """
    norms, rests = (norm + usual_norm) * GROW, (rest + usual_rest) * GROW
    squares = norm * norm + usual_norm * usual_norm
    fixed = lowered + LAST_STEP * (0.5 * squares + 2.0 * shift)
    # No more than eight roundings of positive numbers.
    fixed = (fixed + 0.5 * (rest * rest + usual_rest * usual_rest)) * GROW
    both = (norms.to(tl.int32, bitcast=True) + 0xFFFF) & -0x10000
    both |= (rests.to(tl.int32, bitcast=True) + 0xFFFF) >> 16
    word = fixed.to(tl.int32, bitcast=True).to(tl.int64) & 0xFFFFFFFF
    return (both.to(tl.int64) << 32) | word


@triton.jit
def of_frame(numbers):
    """Return what starts take of the numbers of a frame: R, the largest r, the shift, the unit."""
    largest_rest = tl.load(numbers + LARGEST_REST)
    return (
        tl.load(numbers + RADIUS),
        largest_rest,
        tl.load(numbers + SHIFT),
        tl.load(numbers + UNIT),
    )


@triton.jit
def start_of(square, norm, rest, usual_norm, usual_rest, frame, summed):
    """Return by how much scores are lowered, their starts, and :func:`terms_of` limits.

    The first as :func:`lloydia.exact.half_certificate.lowered` has it.
    """
    radius, largest_rest, shift, _ = frame
    B, g, usual_B, usual_g = (
        norm.to(tl.float64),
        rest.to(tl.float64),
        usual_norm.to(tl.float64),
        usual_rest.to(tl.float64),
    )
    more = tl.maximum(B - usual_B, 0.0)
    more_rest = tl.maximum(g - usual_g, 0.0)
    excess = more * (largest_rest + radius * (LAST_STEP + summed))
    excess += more_rest * (radius + B + largest_rest + g + usual_g)
    excess += 0.5 * LAST_STEP * more * (B + usual_B)
    lowered = 2.0 * GROW * excess
    start = tl.where(square >= 0.0, 0.5 * square - lowered, FAR_START * radius * radius)
    lowered = (lowered * GROW).to(tl.float32)
    terms = terms_of(norm, rest, usual_norm, usual_rest, lowered, shift.to(tl.float32))
    # Of what is no near centre none are asked for: its score is beyond all limits.
    return lowered, start + shift, tl.where(square >= 0.0, terms, 0)


@triton.jit
def store_starts(j, mask, lowered, start, terms, frame, lowered_ptr, single_ptr, terms_ptr):
    """Store what :func:`start_of` returns; return starts as three float16 numbers, in a word."""
    tl.store(lowered_ptr + j, lowered, mask=mask)
    tl.store(terms_ptr + j, terms, mask=mask)
    tl.store(single_ptr + j, start.to(tl.float32), mask=mask)
    _, _, _, unit = frame
    # A power of two.
    left = start * (1.0 / unit)
    word = tl.zeros(left.shape, tl.int64)
    for part in tl.static_range(3):
        half = to_half(left)
        word |= (half.to(tl.int16, bitcast=True).to(tl.int64) & 0xFFFF) << (16 * part)
        left -= half.to(tl.float64)
    return word


@triton.jit
def begin_scores(
    k, frame, square_ptr, norm_ptr, rest_ptr, usual, summed, lowered_ptr, start_ptr, single_ptr,
    terms_ptr, ALL: tl.constexpr,
):  # fmt: skip
    """Store what is left of packing, when all programs have stored their centres: at most ALL.

    What stands for no centre stays as the first packing of a run left it.
    """
    j = tl.arange(0, ALL)
    mask = j < k
    square = tl.load(square_ptr + j, mask=mask, other=-1.0, volatile=True)
    norm = tl.load(norm_ptr + j, mask=mask, other=0.0, volatile=True)
    rest = tl.load(rest_ptr + j, mask=mask, other=0.0, volatile=True)
    count = tl.sum((square >= 0.0).to(tl.int64), 0)
    usual_norm = usual_of(tl.sum(in_fixed_point(norm), 0), count)
    usual_rest = usual_of(tl.sum(in_fixed_point(rest), 0), count)
    tl.store(usual, usual_norm)
    tl.store(usual + 1, usual_rest)
    lowered, start, terms = start_of(square, norm, rest, usual_norm, usual_rest, frame, summed)
    word = store_starts(j, mask, lowered, start, terms, frame, lowered_ptr, single_ptr, terms_ptr)
    tl.store(start_ptr + j * WORDS, word, mask=mask)
