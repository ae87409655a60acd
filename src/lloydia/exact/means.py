"""Means from integer sums: ``(sum / weight) * 2**E_f``, rounded once to the type of X.

Limbs are brought to digits, of which the first that is not 0 dominates the rest (:func:`carry`),
then added from there on as an unevaluated sum of two floats, some 106 bits; a float32 mean is the
quotient of the high parts, a float64 mean one of both, with its remainder (Dekker 1971).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lloydia.exact.sums import Grid, product_error

__all__ = ["carry", "center_magnitudes", "divide", "means", "significand", "two_sum"]


def carry(sums: NDArray[np.int64], bits: int) -> NDArray[np.int64]:
    """Return the same numbers with every limb but the first in ``[-2**(bits-1), 2**(bits-1))``.

    After it the first non-zero limb dominates the rest, so limbs can be added as floats.
    """
    out = sums.copy()
    half = np.int64(1) << np.int64(bits - 1)
    for limb in range(len(out) - 1, 0, -1):
        over = (out[limb] + half) >> np.int64(bits)
        out[limb] -= over << np.int64(bits)
        out[limb - 1] += over
    return out


def means(sums: NDArray[np.int64], grid: Grid, dtype: np.dtype) -> NDArray:
    """Return sum / weight of each cluster, rounded once to `dtype`.

    Parameters
    ----------
    sums : ndarray of shape (n_limbs, k, d + 1), int64
    grid : Grid
    dtype : float32 or float64

    Returns
    -------
    ndarray of shape (k, d)
        NaN where the weight is 0.
    """
    high, low, place = significand(carry(sums, grid.bits), grid.bits)
    a, b = (high[:, :-1], low[:, :-1]), (high[:, -1:], low[:, -1:])
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        # A float32 mean needs no more than a float64 quotient.
        quotient = divide(*a, *b) if np.dtype(dtype) == np.float64 else a[0] / b[0]
        exponent = grid.exponents[:-1] - grid.bits * (place[:, :-1] - place[:, -1:])
        return np.ldexp(quotient, exponent).astype(dtype)


def center_magnitudes(rows: NDArray, initial: NDArray) -> NDArray:
    """Return what no coordinate of any centre of a run exceeds, feature by feature: shape (d,).

    A mean lies within the range of the rows, and rounding keeps order; an empty cluster keeps its
    initial centre.  Bounds of distances rely on it.

    Parameters
    ----------
    rows : ndarray of shape (d,)
        The largest magnitude of each feature of the rows.
    initial : ndarray of shape (k, d)
    """
    return np.maximum(rows, np.abs(initial).max(axis=0))


def significand(digits: NDArray[np.int64], bits: int) -> tuple[NDArray, NDArray, NDArray]:
    """Add carried limbs as an unevaluated sum of two floats, from the first non-zero limb on.

    Returns
    -------
    high, low : ndarray of shape (k, d + 1), float64
    place : ndarray of shape (k, d + 1)
        Number of leading zero limbs: the value is ``(high + low) * 2**(-bits * place)``.
    """
    place = (digits != 0).argmax(axis=0)
    high = np.zeros(digits.shape[1:])
    low = np.zeros_like(high)
    for offset in range(-(-120 // bits), -1, -1):
        limb = np.minimum(place + offset, len(digits) - 1)
        digit = np.take_along_axis(digits, limb[None], axis=0)[0]
        digit = np.where(place + offset < len(digits), digit, 0)
        top = digit.astype(np.float64)
        rest = (digit - top.astype(np.int64)).astype(np.float64)
        high, error = two_sum(top, high * 2.0**-bits)
        high, low = two_sum(high, error + (rest + low * 2.0**-bits))
    return high, low, place


def two_sum(a: NDArray, b: NDArray) -> tuple[NDArray, NDArray]:
    """Return ``fl(a + b)`` and its rounding error (Knuth, TAOCP 2, section 4.2.2)."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def divide(a: NDArray, a_low: NDArray, b: NDArray, b_low: NDArray) -> NDArray:
    """Return ``(a + a_low) / (b + b_low)`` to within 2**-100, then rounded to float64."""
    q = a / b
    p = q * b
    remainder = ((a - p) - product_error(q, b, p)) + (a_low - q * b_low)
    return q + remainder / b
