"""Centres from the integers of :mod:`sums`: exact.sums.means, a whole centre at a time."""

from __future__ import annotations

import math

import numpy as np

from lloydia.backends.cpu.compiled import kernel
from lloydia.backends.cpu.sums import product_error

__all__ = ["finish", "summarise"]


@kernel
def carried(parts, j, bits, digits):
    """Add the threads' limbs of one cluster and carry, as exact.sums.carry does: (n_limbs, m)."""
    n_limbs, m = digits.shape
    half, shift = np.int64(1) << np.int64(bits - 1), np.int64(bits)
    for limb in range(n_limbs):
        for f in range(m):
            digits[limb, f] = parts[0, limb, j, f]
        for part in range(1, len(parts)):
            for f in range(m):
                digits[limb, f] += parts[part, limb, j, f]
    for limb in range(n_limbs - 1, 0, -1):
        for f in range(m):
            over = (digits[limb, f] + half) >> shift
            digits[limb, f] -= over << shift
            digits[limb - 1, f] += over


@kernel
def two_sum(a, b):
    """Return ``fl(a + b)`` and its rounding error."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


@kernel
def significand(digits, f, bits, small):
    """Return (high, low, place) of carried limbs, as exact.sums.significand does."""
    place = 0
    while place < len(digits) - 1 and digits[place, f] == 0:
        place += 1
    if digits[place, f] == 0:
        return 0.0, 0.0, 0
    high, low = 0.0, 0.0
    ahead = -(-120 // bits)
    for limb in range(min(place + ahead, len(digits) - 1), place - 1, -1):
        top = np.float64(digits[limb, f])
        rest = np.float64(digits[limb, f] - np.int64(top))
        high, error = two_sum(top, high * small)
        high, low = two_sum(high, error + (rest + low * small))
    return high, low, place


@kernel
def fold(digits, bits, small, high, low):
    """Do the same for all numbers whose first limb is not 0."""
    for f in range(len(high)):
        high[f] = 0.0
        low[f] = 0.0
    for limb in range(min(-(-120 // bits), len(digits) - 1), -1, -1):
        for f in range(len(high)):
            top = np.float64(digits[limb, f])
            rest = np.float64(digits[limb, f] - np.int64(top))
            h, error = two_sum(top, high[f] * small)
            high[f], low[f] = two_sum(h, error + (rest + low[f] * small))


@kernel
def quotient(a, a_low, b, b_low, double):
    """Return ``(a + a_low) / (b + b_low)`` as exact.sums.means does."""
    q = a / b
    if double:
        p = q * b
        q = q + (((a - p) - product_error(q, b, p)) + (a_low - q * b_low)) / b
    return q


@kernel
def finish(
    parts, start, stop, touched, bits, exponents, powers, double, old, new, empty, square, move
):
    """Turn sums into centres ``start`` to ``stop``; those of weight 0 stay.

    Parameters
    ----------
    parts : ndarray (n_threads, n_limbs, k or more, d + 1 or more), int64
    touched : ndarray (n_threads, k or more), bool
        Whether a thread changed a cluster's sums since its centre was computed.
    exponents : ndarray (d + 1,), int64; powers : ``2.0**exponents``
    double : bool
        Whether the centres are float64.
    old, new : ndarray (k, d)
    empty : ndarray (k,), bool
    square, move : ndarray (k,), float64
        D between a centre's old and new place, and its largest coordinate's change.
    """
    d = old.shape[1]
    digits = np.empty((parts.shape[1], d + 1), np.int64)
    high, low = np.empty(d + 1), np.empty(d + 1)
    small = 2.0 ** -np.float64(bits)
    for j in range(start, stop):
        square[j] = 0.0
        move[j] = 0.0
        changed = False
        for part in range(len(touched)):
            changed |= touched[part, j]
        if changed:
            carried(parts, j, bits, digits)
            b, b_low, b_place = significand(digits, d, bits, small)
            empty[j] = b == 0.0
        if empty[j] or not changed:
            for f in range(d):
                new[j, f] = old[j, f]
            continue
        fold(digits, bits, small, high, low)
        if b_place == 0:
            for f in range(d):
                new[j, f] = quotient(high[f], low[f], b, b_low, double) * powers[f]
        for f in range(d):
            if b_place > 0 or digits[0, f] == 0:
                a, a_low, a_place = significand(digits, f, bits, small)
                q = quotient(a, a_low, b, b_low, double)
                if a_place == b_place:
                    new[j, f] = q * powers[f]
                else:
                    new[j, f] = ldexp(q, exponents[f] - bits * (a_place - b_place))
            difference = np.float64(new[j, f]) - np.float64(old[j, f])
            square[j] += difference * difference
            move[j] = max(move[j], abs(difference))


@kernel
def summarise(empty, square, move):
    """Return the empty clusters, the squares added in order, and the largest move."""
    n_empty = 0
    shift = largest = 0.0
    for j in range(len(empty)):
        n_empty += empty[j]
        shift += square[j]
        largest = max(largest, move[j])
    return n_empty, shift, largest


@kernel
def ldexp(x, exponent):
    """Return ``x * 2**exponent``, rounded once, for |x| < 2**64 and exponents beyond float64's."""
    while exponent > 900:
        x *= 2.0**900
        exponent -= 900
    if exponent >= -900:
        return x * 2.0 ** np.float64(exponent)
    return math.ldexp(x, max(exponent, -5000))
