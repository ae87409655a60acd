"""The integers of :mod:`lloydia.exact.sums`, row by row.

A row that changes cluster is subtracted from the old one's sums and added to the new one's,
exactly.  Every thread has sums of its own; their total is what they would be in any other split.
One thread may subtract what another added, so a thread's sums wrap around modulo ``2**64``; the
total does not.
"""

from __future__ import annotations

import math

import numpy as np

from lloydia.backends.cpu.compiled import kernel
from lloydia.exact.sums import DEKKER

__all__ = ["accumulate", "extent", "finish", "total_terms"]


@kernel
def extent(X, start, stop, largest, smallest):
    """Fold dense rows into the largest and smallest non-zero magnitudes, shape (d,)."""
    # Threads' results share cache lines: they are written once.
    high, low = largest.copy(), smallest.copy()
    for i in range(start, stop):
        for f in range(X.shape[1]):
            magnitude = abs(np.float64(X[i, f]))
            high[f] = magnitude if magnitude > high[f] else high[f]
            low[f] = magnitude if 0.0 < magnitude < low[f] else low[f]
    for f in range(len(high)):
        largest[f] = high[f]
        smallest[f] = low[f]


@kernel
def sparse_extent(X, start, stop, largest, smallest):
    """Fold CSR rows into the same."""
    data, indices, indptr = X
    high, low = largest.copy(), smallest.copy()
    for at in range(indptr[start], indptr[stop]):
        f = indices[at]
        magnitude = abs(np.float64(data[at]))
        high[f] = magnitude if magnitude > high[f] else high[f]
        low[f] = magnitude if 0.0 < magnitude < low[f] else low[f]
    for f in range(len(high)):
        largest[f] = high[f]
        smallest[f] = low[f]


@kernel
def product_error(a, b, p):
    """Return ``a * b - p`` exactly (Dekker 1971)."""
    a_high = a * DEKKER - (a * DEKKER - a)
    b_high = b * DEKKER - (b * DEKKER - b)
    a_low = a - a_high
    b_low = b - b_high
    return ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low


@kernel
def rounded(y):
    """Return rint(y) for ``|y| <= 2**51``: the sum's last bit is worth 1."""
    return (y + 1.5 * 2.0**52) - 1.5 * 2.0**52


@kernel
def add_limbs(sums, limb, old, new, rest, quantum, inverse, step):
    """Move products from one cluster to another, from this limb on until nothing is left.

    `rest` (d + 1,) holds what the limbs before left, raised by ``2**bits`` each; it is overwritten.
    """
    left = True
    while left and limb < len(sums):
        left = False
        for f in range(len(rest)):
            v = rounded(rest[f] * inverse[f])
            sums[limb, new, f] += np.int64(v)
            if old >= 0:
                sums[limb, old, f] -= np.int64(v)
            rest[f] = (rest[f] - v * quantum[f]) * step
            left |= rest[f] != 0.0
        limb += 1


@kernel
def accumulate(X, rows, start, stop, weights, grid, fresh, labels, sums):
    """Move rows to their fresh clusters.

    Parameters
    ----------
    X : ndarray (n, d)
    rows, start, stop
        A list of rows (or EVERY) and a range of it; the label of entry p is ``fresh[p - start]``.
    weights : ndarray (n,), scaled by ``2**-weight_exponent``; empty: all 1
    grid : (scale, quantum, inverse, step, recover)
        Arrays of shape (d + 1,), and ``2**bits``.
    labels : ndarray (n,), int32
        The old clusters, -1 for none; overwritten.
    sums : ndarray (n_limbs, k or more, d + 1), int64

    Returns
    -------
    int
        Rows that changed.
    """
    scale, quantum, inverse, step, recover = grid
    d = X.shape[1]
    every = len(rows) == 0
    rest = np.empty(d + 1)
    changed = 0
    w = 1.0
    for at in range(start, stop):
        i = at if every else rows[at]
        old, new = labels[i], fresh[at - start]
        if old == new:
            continue
        changed += 1
        labels[i] = new
        if len(weights):
            w = weights[i]
        for f in range(d):
            rest[f] = np.float64(X[i, f]) * scale[f] * w
        rest[d] = scale[d] * w
        add_limbs(sums, 0, old, new, rest, quantum, inverse, step)
        if recover:
            # |error| <= 2**-53 |p| is less than half a step of limb 0.
            for f in range(d):
                a = np.float64(X[i, f]) * scale[f]
                rest[f] = product_error(a, w, a * w) * step
            rest[d] = 0.0
            add_limbs(sums, 1, old, new, rest, quantum, inverse, step)
    return changed


@kernel
def sparse_accumulate(X, rows, start, stop, weights, grid, fresh, labels, sums):
    """Move CSR rows to their fresh clusters, as :func:`accumulate` does dense ones."""
    data, indices, indptr = X
    scale, quantum, inverse, step, recover = grid
    d = len(scale) - 1
    every = len(rows) == 0
    changed = 0
    w = 1.0
    for at in range(start, stop):
        i = at if every else rows[at]
        old, new = labels[i], fresh[at - start]
        if old == new:
            continue
        changed += 1
        labels[i] = new
        if len(weights):
            w = weights[i]
        for e in range(indptr[i], indptr[i + 1] + 1):
            # The column after the last feature is the weight's.
            f = indices[e] if e < indptr[i + 1] else d
            a = np.float64(data[e]) * scale[f] if e < indptr[i + 1] else scale[d]
            p = a * w
            add_value(sums, 0, f, old, new, p, quantum[f], inverse[f], step)
            if recover:
                error = product_error(a, w, p) * step
                add_value(sums, 1, f, old, new, error, quantum[f], inverse[f], step)
    return changed


@kernel
def add_value(sums, limb, f, old, new, rest, quantum, inverse, step):
    """Do for one product what :func:`add_limbs` does for a row's."""
    while rest != 0.0 and limb < len(sums):
        v = rounded(rest * inverse)
        sums[limb, new, f] += np.int64(v)
        if old >= 0:
            sums[limb, old, f] -= np.int64(v)
        rest = (rest - v * quantum) * step
        limb += 1


@kernel
def carried(parts, j, f, bits, digits):
    """Add the threads' limbs of one number and carry, as exact.sums.carry does.

    Returns whether any limb but the first is not 0.
    """
    n_limbs = parts.shape[1]
    half = np.int64(1) << np.int64(bits - 1)
    for limb in range(n_limbs):
        digit = np.int64(0)
        for part in range(len(parts)):
            digit += parts[part, limb, j, f]
        digits[limb] = digit
    rest = False
    for limb in range(n_limbs - 1, 0, -1):
        over = (digits[limb] + half) >> np.int64(bits)
        digits[limb] -= over << np.int64(bits)
        digits[limb - 1] += over
        rest |= digits[limb] != 0
    return rest


@kernel
def two_sum(a, b):
    """Return ``fl(a + b)`` and its rounding error."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


@kernel
def significand(digits, bits, small):
    """Return (high, low, place) of carried limbs, as exact.sums.significand does."""
    place = 0
    while place < len(digits) - 1 and digits[place] == 0:
        place += 1
    if digits[place] == 0:
        return 0.0, 0.0, 0
    high, low = 0.0, 0.0
    ahead = -(-120 // bits)
    for limb in range(min(place + ahead, len(digits) - 1), place - 1, -1):
        top = np.float64(digits[limb])
        rest = np.float64(digits[limb] - np.int64(top))
        high, error = two_sum(top, high * small)
        high, low = two_sum(high, error + (rest + low * small))
    return high, low, place


@kernel
def finish(parts, start, stop, bits, exponents, powers, double, old, new, empty, square, move):
    """Turn sums into centres ``start`` to ``stop``; those of weight 0 stay.

    Parameters
    ----------
    parts : ndarray (n_threads, n_limbs, k or more, d + 1), int64
    exponents : ndarray (d + 1,), int64; powers : ``2.0**exponents``
    double : bool
        Whether the centres are float64.
    old, new : ndarray (k, d)
    empty : ndarray (k,), bool
    square, move : ndarray (k,), float64
        D between a centre's old and new place, and its largest coordinate's change.
    """
    d = old.shape[1]
    digits = np.empty(parts.shape[1], np.int64)
    small = 2.0 ** -np.float64(bits)
    for j in range(start, stop):
        carried(parts, j, d, bits, digits)
        b, b_low, b_place = significand(digits, bits, small)
        empty[j] = b == 0.0
        square[j] = 0.0
        move[j] = 0.0
        for f in range(d):
            if empty[j]:
                new[j, f] = old[j, f]
                continue
            rest = carried(parts, j, f, bits, digits)
            if rest or double:
                a, a_low, a_place = significand(digits, bits, small)
            else:
                a, a_low, a_place = np.float64(digits[0]), 0.0, 0
            quotient = a / b
            if double:
                p = quotient * b
                error = ((a - p) - product_error(quotient, b, p)) + (a_low - quotient * b_low)
                quotient = quotient + error / b
            if a_place == b_place:
                new[j, f] = quotient * powers[f]
            else:
                new[j, f] = ldexp(quotient, exponents[f] - bits * (a_place - b_place))
            difference = np.float64(new[j, f]) - np.float64(old[j, f])
            square[j] += difference * difference
            move[j] = max(move[j], abs(difference))


@kernel
def ldexp(x, exponent):
    """Return ``x * 2**exponent``, rounded once, for |x| < 2**64 and exponents beyond float64's."""
    while exponent > 900:
        x *= 2.0**900
        exponent -= 900
    if exponent >= -900:
        return x * 2.0 ** np.float64(exponent)
    return math.ldexp(x, max(exponent, -5000))


@kernel
def total_terms(D, weights, start, stop, low, high, step, limbs):
    """Add the limbs of ``weights * D`` to `limbs` (TOTAL_LIMBS,); see exact.sums.total.

    ``low * high`` is the scale ``2**-exponent``, in two factors that do not overflow.
    """
    for i in range(start, stop):
        rest = weights[i] * D[i] if len(weights) else D[i]
        rest = rest * low * high
        for limb in range(len(limbs)):
            rest = rest * step
            v = np.rint(rest)
            limbs[limb] += np.int64(v)
            rest = rest - v
