"""Sums of products as integers, in the registers of a lane: a tuple of limbs.

The integers are those of :func:`lloydia.exact.sums.limbs`.  A limb's *shift* is ``1.5 * 2**52``
quanta.  A product plus the shift is rounded to the quantum, because the last bit of such a float64
is worth one quantum.  The bits of that sum are the limb's integer plus the bits of the shift; the
rounding error of the sum goes to the next limb.
"""

from __future__ import annotations

import triton
import triton.language as tl

from lloydia.backends.cuda.device_functions.exact_numbers import (
    ROUNDING_CONSTANT,
    power_of_two,
    product_error,
)

__all__ = [
    "add_first_limbs",
    "add_limbs",
    "add_products",
    "at_limb",
    "flush",
    "flush_weights",
    "in_first",
    "shifts_of",
    "with_totals",
    "zeros",
]


@triton.jit
def at_limb(quantum, bits, limb):
    """Return the quantum of a limb, given that of limb 0."""
    finer = power_of_two(-bits.to(tl.int64))
    for _ in range(limb):
        quantum = quantum * finer
    return quantum


@triton.jit
def shifts_of(quantum, bits, LIMBS: tl.constexpr):
    """Return the shifts of LIMBS limbs; `quantum` is that of the first."""
    finer = power_of_two(-bits.to(tl.int64))
    shift = ROUNDING_CONSTANT * quantum
    out = ()
    for _ in tl.static_range(LIMBS):
        out = out + (shift,)
        shift = shift * finer
    return out


@triton.jit
def reduced(p, quantum, bits, skip):
    """Return the parts of products that remain after the limbs before limb `skip`."""
    finer = power_of_two(-bits.to(tl.int64))
    shift = ROUNDING_CONSTANT * quantum
    for _ in range(skip):
        p -= (p + shift) - shift
        shift = shift * finer
    return p


@triton.jit
def add_limbs(sums, p, shifts, LIMBS: tl.constexpr):
    """Add LIMBS limbs of products to a tuple of sums.

    Each addition adds the bits of a shifted number, shift included; :func:`flush` subtracts the
    shifts again.
    """
    out = ()
    for limb in tl.static_range(LIMBS):
        shifted = p + shifts[limb]
        out = out + (sums[limb] + shifted.to(tl.int64, bitcast=True),)
        p = p - (shifted - shifts[limb])
    return out


@triton.jit
def add_products(
    sums, x, w, scale, quantum, shifts, bits, skip,
    LIMBS: tl.constexpr, SKIPS: tl.constexpr, WEIGHTED: tl.constexpr, RECOVER: tl.constexpr,
):  # fmt: skip
    """Add sign times weight times value to a tuple of sums."""
    a = x.to(tl.float64) * scale
    p = a * w if WEIGHTED else a
    rest = reduced(p, quantum, bits, skip) if SKIPS else p
    sums = add_limbs(sums, rest, shifts, LIMBS)
    if RECOVER:
        error = product_error(a, w + tl.zeros_like(a), p)
        error = reduced(error, quantum, bits, skip) if SKIPS else error
        sums = add_limbs(sums, error, shifts, LIMBS)
    return sums


@triton.jit
def add_first_limbs(sums, x, shifts, LIMBS: tl.constexpr):
    """Add numbers that are multiples of limb 0's quantum, as :func:`add_limbs` does.

    The numbers have one more dimension than the sums, the second, over which they are added up.
    """
    terms = (x.to(tl.float64) + shifts[0]).to(tl.int64, bitcast=True)
    out = (sums[0] + tl.sum(terms, 1),)
    for limb in tl.static_range(1, LIMBS):
        out = out + (sums[limb] + shifts[limb].to(tl.int64, bitcast=True) * x.shape[1],)
    return out


@triton.jit
def with_totals(sums, terms, LIMBS: tl.constexpr):
    """Add the totals of terms over their second dimension to a tuple of sums."""
    out = ()
    for limb in tl.static_range(LIMBS):
        out = out + (sums[limb] + tl.sum(terms[limb], 1),)
    return out


@triton.jit
def zeros(shape: tl.constexpr, LIMBS: tl.constexpr):
    """Return a tuple of LIMBS sums that are zero."""
    out = ()
    for _ in tl.static_range(LIMBS):
        out = out + (tl.zeros(shape, tl.int64),)
    return out


@triton.jit
def flush(sums, added, shifts, at, limb_size, there, mask, LIMBS: tl.constexpr):
    """Add sums to memory where `mask` is set and return them as zeros; return the others unchanged.

    `added` counts the additions in each sum.  Only the first `there` limbs have memory.
    """
    out = ()
    for limb in tl.static_range(LIMBS):
        total = sums[limb] - added.to(tl.int64) * shifts[limb].to(tl.int64, bitcast=True)
        some = mask & (total != 0) & (tl.zeros_like(total) + limb < there)
        tl.atomic_add(at + limb * limb_size, total, mask=some, sem="relaxed")
        out = out + (tl.where(mask, 0, sums[limb]),)
    return out


@triton.jit
def flush_weights(
    sums, ones, added, shifts, at, limb_size, there, mask, bits, skip,
    LIMBS: tl.constexpr, WEIGHTED: tl.constexpr,
):  # fmt: skip
    """Add weights to memory where `mask` is set, as :func:`flush` does, and return the others.

    Without weights the sums are signed counts in `ones`, whose only limb is the first: ``2**bits``.
    """
    if WEIGHTED:
        return flush(sums, added, shifts, at, limb_size, there, mask, LIMBS), ones
    else:
        total = tl.where(skip == 0, ones.to(tl.int64) << bits, 0)
        tl.atomic_add(at, total, mask=mask & (total != 0), sem="relaxed")
        return sums, tl.where(mask, 0, ones)


@triton.jit
def in_first(sums, first, LIMBS: tl.constexpr):
    """Return a tuple of sums with the totals of all lanes where `first` is set, and 0 elsewhere."""
    out = ()
    for limb in tl.static_range(LIMBS):
        out = out + (tl.where(first, tl.sum(sums[limb], 0)[None], 0),)
    return out
