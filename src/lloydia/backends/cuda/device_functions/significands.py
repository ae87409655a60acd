"""The numbers that integer sums of limbs represent: carry, then leading digits.

The results equal those of :func:`lloydia.exact.means.significand` bit for bit.
"""

from __future__ import annotations

import triton
import triton.language as tl

from lloydia.backends.cuda.device_functions.exact_numbers import two_sum

__all__ = ["UNROLLED_LIMBS", "significand"]

# Sums of ordinary rows have no more limbs than this.
UNROLLED_LIMBS = tl.constexpr(2)
# Replicas whose loads are in flight at once.
UNROLL = tl.constexpr(4)


@triton.jit
def limb_sum(sums, offset, mask, limb, limb_size, replica_size, n_replicas):
    """Return one limb of sums, added over the replicas."""
    at = sums + offset + limb * limb_size
    total = tl.zeros(offset.shape, tl.int64)
    for _ in range(n_replicas):
        total += tl.load(at, mask=mask, other=0)
        at += replica_size
    return total


@triton.jit
def carried(total, passes, bits):
    """Return the digit of a limb, and the carry to the limb before it, if `passes`."""
    over = (total + (tl.full((), 1, tl.int64) << (bits - 1))) >> bits
    return tl.where(passes, total - (over << bits), total), over


@triton.jit
def with_digit(high, low, digit, used, bits):
    """Return numbers in two parts, extended by the next digit where `used`."""
    small = ((1023 - bits.to(tl.int64)) << 52).to(tl.float64, bitcast=True)
    top = digit.to(tl.float64)
    rest = (digit - top.to(tl.int64)).to(tl.float64)
    sum_high, error = two_sum(top, high * small)
    sum_high, sum_low = two_sum(sum_high, error + (rest + low * small))
    return tl.where(used, sum_high, high), tl.where(used, sum_low, low)


@triton.jit
def significand_in_loop(
    sums, offset, mask, n_limbs, bits, limb_size, replica_size, n_replicas
):  # fmt: skip
    """Return what :func:`significand` does, for any number of limbs."""
    none = tl.zeros_like(offset).to(tl.int64)
    place = none
    over = none
    for i in range(n_limbs):
        limb = n_limbs - 1 - i
        total = limb_sum(sums, offset, mask, limb, limb_size, replica_size, n_replicas) + over
        digit, over = carried(total, limb > 0, bits)
        place = tl.where(digit != 0, none + limb, place)
    last = place + (119 + bits) // bits
    high = none.to(tl.float64)
    low = high
    over = none
    for i in range(n_limbs):
        limb = n_limbs - 1 - i
        total = limb_sum(sums, offset, mask, limb, limb_size, replica_size, n_replicas) + over
        digit, over = carried(total, limb > 0, bits)
        used = (limb >= place) & (limb <= last)
        high, low = with_digit(high, low, digit, used, bits)
    return high, low, place


@triton.jit
def significand_unrolled(
    sums, offset, mask, n_limbs, bits, limb_size, replica_size, n_replicas
):  # fmt: skip
    """Return what :func:`significand` does, for at most UNROLLED_LIMBS, all loaded at once."""
    none = tl.zeros_like(offset).to(tl.int64)
    # Missing limbs are 0, which changes nothing.
    totals = (none,) * UNROLLED_LIMBS
    at = sums + offset
    for _ in tl.range(0, n_replicas, loop_unroll_factor=UNROLL):
        added = ()
        for limb in tl.static_range(UNROLLED_LIMBS):
            there = mask & (tl.full(offset.shape, limb, tl.int32) < n_limbs)
            value = tl.load(at + limb * limb_size, mask=there, other=0)
            added = added + (totals[limb] + value,)
        totals = added
        at += replica_size
    place = none
    over = none
    digits = ()
    for i in tl.static_range(UNROLLED_LIMBS):
        digit, over = carried(totals[UNROLLED_LIMBS - 1 - i] + over, i < UNROLLED_LIMBS - 1, bits)
        place = tl.where(digit != 0, none + (UNROLLED_LIMBS - 1 - i), place)
        digits = digits + (digit,)
    last = place + (119 + bits) // bits
    high = none.to(tl.float64)
    low = high
    for i in tl.static_range(UNROLLED_LIMBS):
        used = (place <= UNROLLED_LIMBS - 1 - i) & (last >= UNROLLED_LIMBS - 1 - i)
        high, low = with_digit(high, low, digits[i], used, bits)
    return high, low, place


@triton.jit
def significand(
    sums, offset, mask, n_limbs, few, bits, limb_size, replica_size, n_replicas
):  # fmt: skip
    """Return (high, low, place) of sums after the carry.

    Parameters
    ----------
    sums : int64, IN
        `offset` gives the first limb of each sum.
    n_limbs, bits, limb_size : int
        The number of limbs, the bits of each, and the stride from limb to limb.
    few : bool
        Whether there are at most UNROLLED_LIMBS; a constant leaves out the code for the other case.
    replica_size : int
        The stride between the `n_replicas` copies of the sums, which are added.
    """
    if few:
        high, low, place = significand_unrolled(
            sums, offset, mask, n_limbs, bits, limb_size, replica_size, n_replicas
        )
    else:
        high, low, place = significand_in_loop(
            sums, offset, mask, n_limbs, bits, limb_size, replica_size, n_replicas
        )
    return high, low, place
