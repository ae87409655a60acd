"""Centres from the integers of :mod:`sums`: exact.means, a whole centre at a time."""

from __future__ import annotations

import numpy as np

from lloydia.backends.cpu.compiled import LEAN, kernel, maximum, minimum, subroutine
from lloydia.backends.cpu.sums import product_error

__all__ = ["finish", "summarise"]


@subroutine
def two_sum(a, b):
    """Return ``fl(a + b)`` and its rounding error."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


@subroutine(inline="always")
def add_limbs(parts, j, bits, digits, seen, high, low):
    """Add the threads' limbs of a cluster, carry, and add those up as two floats a number.

    It does what `carry` and `significand` of exact.means do, for numbers that begin with the first
    limb or are 0; it returns whether there are others.  `digits` and `seen` are scratch.
    """
    half, shift = np.int64(1) << np.int64(bits - 1), np.int64(bits)
    small = 2.0 ** -np.float64(bits)
    n_limbs, hidden = parts.shape[1], False
    begin = minimum(-(-120 // bits), n_limbs - 1)
    for f in range(len(high)):
        digits[f] = seen[f] = 0
    for limb in range(n_limbs - 1, -1, -1):
        # On what the limb after this one carried.
        for part in range(len(parts)):
            own = parts[part, limb, j]
            for f in range(len(high)):
                digits[f] += own[f]
        if limb == begin:
            for f in range(len(high)):
                high[f] = low[f] = 0.0
        carries = -np.int64(limb > 0)
        for f in range(len(high)):
            over = ((digits[f] + half) >> shift) & carries
            digit = digits[f] - (over << shift)
            digits[f] = over
            hidden |= (limb == 0) & (digit == 0) & (seen[f] != 0)
            seen[f] |= digit
            top = np.float64(digit)
            rest = np.float64(digit - np.int64(top))
            h, error = two_sum(top, high[f] * small)
            high[f], low[f] = two_sum(h, error + (rest + low[f] * small))
    return hidden


@subroutine(inline="always")
def quotient(a, a_low, b, b_low, double):
    """Return ``(a + a_low) / (b + b_low)`` as exact.means does."""
    q = a / b
    if double:
        p = q * b
        q = q + (((a - p) - product_error(q, b, p)) + (a_low - q * b_low)) / b
    return q


@kernel(**LEAN)
def finish(
    parts, start, stop, touched, bits, powers, double, old, new, empty, square, move,
    digits, numbers,
):  # fmt: skip
    """Turn sums into centres ``start`` to ``stop``; those of weight 0 stay.

    Parameters
    ----------
    parts : ndarray (n_threads, n_limbs, k or more, d + 1 or more), int64
    touched : ndarray (n_threads, k or more), bool
        Whether a thread changed a cluster's sums since its centre was computed; False afterwards.
    powers : ndarray (d + 1,)
        ``2.0**exponents`` of the grid.
    double : bool
        Whether the centres are float64.
    old, new : ndarray (k, d)
    empty : ndarray (k,), bool
    square, move : ndarray (k,), float64
        D between a centre's old and new place, and its largest coordinate's change.  A square of
        NaN says that the limbs hide a number: such a centre is left to exact.means.
    digits, numbers : ndarray (2, d + 1), int64 and float64
        Scratch.
    """
    d = old.shape[1]
    high, low = numbers[0], numbers[1]
    for j in range(start, stop):
        square[j] = 0.0
        move[j] = 0.0
        changed = False
        for part in range(len(touched)):
            changed |= touched[part, j]
            touched[part, j] = False
        if changed:
            hidden = add_limbs(parts, j, bits, digits[0], digits[1], high, low)
            square[j] = np.nan if hidden else 0.0
            empty[j] = high[d] == 0.0 and square[j] == 0.0
        if empty[j] or not changed:
            for f in range(d):
                new[j, f] = old[j, f]
            continue
        for f in range(d):
            new[j, f] = quotient(high[f], low[f], high[d], low[d], double) * powers[f]
        for f in range(d):
            difference = np.float64(new[j, f]) - np.float64(old[j, f])
            square[j] += difference * difference
            move[j] = maximum(move[j], abs(difference))


@kernel(**LEAN)
def summarise(empty, square, move):
    """Return the empty clusters, the squares added in order, and the largest move."""
    n_empty = 0
    shift = largest = 0.0
    for j in range(len(empty)):
        n_empty += empty[j]
        shift += square[j]
        largest = maximum(largest, move[j])
    return n_empty, shift, largest
