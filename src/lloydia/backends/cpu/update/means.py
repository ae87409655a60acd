"""Centres from the integers of :mod:`sums`, as :mod:`lloydia.exact.means` defines them."""

from __future__ import annotations

import numpy as np

from lloydia.backends.cpu.runtime.compiled import LEAN, kernel, maximum, subroutine
from lloydia.backends.cpu.runtime.counting import upto
from lloydia.backends.cpu.simd.digits import add_limbs
from lloydia.backends.cpu.update.sums import product_error

__all__ = ["finish", "summarise"]


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
    numbers,
):  # fmt: skip
    """Compute centres ``start`` to ``stop`` from their sums; those of weight 0 keep the old ones.

    Parameters
    ----------
    parts : IN, ndarray (n_threads, n_limbs, k or more, d + 1 or more), int64
    touched : IN/OUT, ndarray (n_threads, k or more), bool
        Whether a thread changed a cluster's sums since its centre was computed; False afterwards.
    bits : int
        Bits per limb.
    powers : IN, ndarray (d + 1,), float64
        ``2.0**exponents`` of the grid.
    double : bool
        Whether the centres are float64.
    old : IN; new : OUT, ndarray (k, d)
    empty : IN/OUT, ndarray (k,), bool
    square, move : OUT, ndarray (k,), float64
        D between a centre's old and new place, and its largest coordinate's change.  A square of
        NaN marks a centre that is left to exact.means.
    numbers : scratch, ndarray (2, d + 1 or more), float64
        For :func:`lloydia.backends.cpu.simd.digits.add_limbs`.
    """
    d = old.shape[1]
    weight = low_weight = 0.0
    for j in upto(start, stop):
        square[j] = 0.0
        move[j] = 0.0
        changed = False
        for part in upto(len(touched)):
            changed |= touched[part, j]
            touched[part, j] = False
        if changed:
            hidden = add_limbs(parts, j, bits, numbers)
            weight, low_weight = numbers[0, d], numbers[1, d]
            square[j] = np.nan if hidden else 0.0
            empty[j] = (weight == 0.0) & (not hidden)
        if empty[j] or not changed:
            for f in upto(d):
                new[j, f] = old[j, f]
            continue
        for f in upto(d):
            q = quotient(numbers[0, f], numbers[1, f], weight, low_weight, double)
            new[j, f] = q * powers[f]
        for f in upto(d):
            difference = np.float64(new[j, f]) - np.float64(old[j, f])
            square[j] += difference * difference
            move[j] = maximum(move[j], abs(difference))


@kernel(**LEAN)
def summarise(empty, square, move):
    """Return the empty clusters, the squares added in order, and the largest move."""
    n_empty = 0
    shift = largest = 0.0
    for j in upto(len(empty)):
        n_empty += empty[j]
        shift += square[j]
        largest = maximum(largest, move[j])
    return n_empty, shift, largest
