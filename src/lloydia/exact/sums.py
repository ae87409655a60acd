r"""Reproducible sums: every cluster's sum is an integer, so no order of addition can change it.

A product ``p = w_i * x_if`` is rounded to a fixed-point grid and added in 64-bit integers.  The
grid is a power of two a feature, chosen from numbers that do not depend on any order either: the
number of rows, and the largest and smallest non-zero magnitudes (:class:`Magnitudes`).

**Limbs.**  With ``|x_if| < 2**E_f`` and ``w_i <= 2**E_w``, the quotient ``y = p / 2**(E_f + E_w)``
lies in [-1, 1].  Limb 0 is ``v_0 = rint(y * 2**B)``; what remains, ``y * 2**B - v_0``, is exact
in float64 and at most 1/2; limb 1 is that times ``2**B``, rounded, and so on:
``y = sum_l v_l * 2**(-B * (l + 1))``.  ``B`` leaves room for n rows: ``n * 2**B <= 2**62``.
For ordinary float32 data the first limb holds nearly every row exactly, and the few rows with
something left over add to a second; float64 data fill two.

**How many limbs.**  As many as make the last rounding of any non-zero product at most ``2**-27``
(float32) or ``2**-56`` (float64) of that product.  Then a cluster's sum is off by at most that
fraction of its sum of ``|p|``, hence a mean by at most 1/4 unit in the last place of the mean of
``|x|``, whatever else is in the data: one row of 1e30 costs limbs, not accuracy.

**Products.**  For float64 data with weights, ``w * x`` has a rounding error of its own, which
could move a mean by almost one more unit in the last place; it is recovered exactly (Dekker 1971,
two-product) and added to the lower limbs like the rest.  For float32 data it is 2**29 times
smaller than the result's unit and left.

The weight of a cluster is the sum of a column of ones, on the same grid: the count times ``2**B``
without weights.  What becomes of both is in :mod:`lloydia.exact.means`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Grid",
    "Magnitudes",
    "accumulate",
    "bits_a_limb",
    "exponents_of",
    "fraction_of",
    "join",
    "limbs",
    "limbs_for",
    "product_error",
    "span_of",
    "total",
    "total_grid",
    "total_limbs",
    "total_weight",
    "two_factors",
    "weight_magnitudes",
]

# Rows are scaled to below 2**HEADROOM before they are cut into limbs, so that neither the cutting
# nor Dekker's product meets an overflow or a subnormal number.
HEADROOM = 800
TOTAL_LIMBS = 3
DEKKER = 2.0**27 + 1.0


@dataclass(frozen=True)
class Magnitudes:
    """The facts about the data that the grid depends on; parts of a data set merge.

    Attributes
    ----------
    n_samples : int
    largest, smallest : ndarray of shape (d,), float64
        Largest magnitude, and smallest non-zero one (infinity where there is none), a feature.
    largest_weight, smallest_weight : float
        Largest weight, and smallest positive one; both 1 without weights.
    """

    n_samples: int
    largest: NDArray[np.float64]
    smallest: NDArray[np.float64]
    largest_weight: float = 1.0
    smallest_weight: float = 1.0

    @classmethod
    def of(cls, X: NDArray, weights: NDArray | None = None) -> Magnitudes:
        """Measure rows `X` of shape (n, d) and `weights` of shape (n,)."""
        magnitude = np.abs(X.astype(np.float64))
        largest = magnitude.max(axis=0)
        smallest = np.where(magnitude > 0, magnitude, np.inf).min(axis=0)
        return cls(len(X), largest, smallest, *weight_magnitudes(weights))

    def merge(self, other: Magnitudes) -> Magnitudes:
        """Return those of both parts."""
        return Magnitudes(
            self.n_samples + other.n_samples,
            np.maximum(self.largest, other.largest),
            np.minimum(self.smallest, other.smallest),
            max(self.largest_weight, other.largest_weight),
            min(self.smallest_weight, other.smallest_weight),
        )


def bits_a_limb(n: int) -> int:
    """Return B: n integers of magnitude ``2**B`` add up to at most ``2**62``."""
    return min(51, 62 - (n - 1).bit_length())


def weight_magnitudes(weights: NDArray | None) -> tuple[float, float]:
    """Return the largest weight, and the smallest positive one (infinity where there is none)."""
    if weights is None:
        return 1.0, 1.0
    smallest = weights.min(initial=math.inf)
    if smallest <= 0:
        smallest = weights.min(initial=math.inf, where=weights > 0)
    return float(weights.max(initial=0.0)), float(smallest)


def exponents_of(largest: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the exponents of a grid; features, and what is returned, are along the last axis."""
    exponents = np.zeros((*largest.shape[:-1], largest.shape[-1] + 1), dtype=np.int64)
    exponents[..., :-1] = np.frexp(largest)[1]
    return exponents


def span_of(largest: NDArray[np.float64], smallest: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the binary places that the values of a feature span, of the feature with the most."""
    places = np.frexp(largest)[1].astype(np.int64) - (np.frexp(smallest)[1] - 1)
    return np.where(largest > 0, places, 0).max(axis=-1)


def limbs_for(span: NDArray[np.int64] | int, bits: int, dtype: np.dtype) -> NDArray[np.int64]:
    """Return how many limbs of so many bits products that span so many places need."""
    precision = 56 if np.dtype(dtype) == np.float64 else 27
    return np.maximum(1, -(-(span + precision) // bits))


@dataclass(frozen=True)
class Grid:
    """The fixed-point grid of one data set.

    Attributes
    ----------
    bits : int
        B, the bits a limb.
    n_limbs : int
    exponents : ndarray of shape (d + 1,), int64
        E_f: every ``|x_if| < 2**E_f``.  The last column is the constant 1, whose sums are weights.
    weight_exponent : int
        E_w: every ``w_i <= 2**E_w``.
    recover : bool
        Whether the rounding errors of the products are added too.
    """

    bits: int
    n_limbs: int
    exponents: NDArray[np.int64]
    weight_exponent: int
    recover: bool

    @classmethod
    def choose(cls, magnitudes: Magnitudes, dtype: np.dtype) -> Grid:
        """Return the grid for data of these `magnitudes` and type (float32 or float64)."""
        double = np.dtype(dtype) == np.float64
        bits = bits_a_limb(magnitudes.n_samples)
        exponents = exponents_of(magnitudes.largest)
        span = int(span_of(magnitudes.largest, magnitudes.smallest))
        weight_exponent = 0
        weighted = (magnitudes.largest_weight, magnitudes.smallest_weight) != (1.0, 1.0)
        if weighted and magnitudes.largest_weight > 0:
            weight_exponent = math.frexp(magnitudes.largest_weight)[1]
            span += weight_exponent - math.frexp(magnitudes.smallest_weight)[1] + 1
        n_limbs = int(limbs_for(span, bits, dtype))
        return cls(bits, n_limbs, exponents, weight_exponent, double and weighted)

    @property
    def columns(self) -> NDArray[np.float64]:
        """The scale, the quantum and its inverse of each column: shape (3 (d + 1),)."""
        raised = self._raised()
        step = self.exponents + raised - self.bits
        return np.ldexp(1.0, np.concatenate([raised, step, -step]))

    @property
    def scale(self) -> NDArray[np.float64]:
        """Powers of two that bring each column towards ``2**HEADROOM``: shape (d + 1,)."""
        return np.ldexp(1.0, self._raised())

    @property
    def quantum(self) -> NDArray[np.float64]:
        """The grid's step in scaled columns, limb 0: shape (d + 1,)."""
        return np.ldexp(1.0, self.exponents + self._raised() - self.bits)

    def _raised(self) -> NDArray[np.int64]:
        # Every |x| is below 2**513, so this only ever scales up: exact for subnormals too.
        return np.minimum(HEADROOM - self.exponents, 1000)


def split(p: NDArray[np.float64], grid: Grid) -> NDArray[np.int64]:
    """Cut scaled products of shape (n, d + 1) into limbs of shape (n_limbs, n, d + 1)."""
    quantum, inverse = grid.quantum, 1.0 / grid.quantum
    out = np.empty((grid.n_limbs, *p.shape), dtype=np.int64)
    for limb in range(grid.n_limbs):
        v = np.rint(p * inverse)
        out[limb] = v
        p = (p - v * quantum) * 2.0**grid.bits
    return out


def limbs(X: NDArray, weights: NDArray | None, grid: Grid) -> NDArray[np.int64]:
    """Return the integers that each row adds to its cluster.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    weights : ndarray of shape (n,), float64, or None
    grid : Grid

    Returns
    -------
    ndarray of shape (n_limbs, n, d + 1), int64
        The last column belongs to the weight.
    """
    scaled = np.column_stack([X.astype(np.float64), np.ones(len(X))]) * grid.scale
    if weights is None:
        return split(scaled, grid)
    w = np.ldexp(weights.astype(np.float64), -grid.weight_exponent)[:, None]
    p = scaled * w
    out = split(p, grid)
    if grid.recover:
        out += split(product_error(scaled, w, p), grid)
    return out


def product_error(a: NDArray, b: NDArray, p: NDArray) -> NDArray:
    """Return ``a * b - p`` exactly, where ``p`` is the float64 product (Dekker 1971)."""
    a_high = a * DEKKER - (a * DEKKER - a)
    b_high = b * DEKKER - (b * DEKKER - b)
    a_low, b_low = a - a_high, b - b_high
    return ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low


def accumulate(values: NDArray[np.int64], labels: NDArray, n_clusters: int) -> NDArray[np.int64]:
    """Add rows' limbs of shape (n_limbs, n, m) to their clusters: shape (n_limbs, k, m)."""
    sums = np.zeros((len(values), n_clusters, values.shape[2]), dtype=np.int64)
    for limb in range(len(values)):
        np.add.at(sums[limb], labels, values[limb])
    return sums


def total(values: NDArray[np.float64]) -> float:
    """Return the fixed-point sum of non-negative `values`, rounded once from three limbs.

    The grid follows from the number of values and the largest of them, so the sum is the same for
    any order or partition; :func:`total_grid` says how far it may be off.
    """
    grid = total_grid(len(values), float(values.max(initial=0.0)))
    return join(total_limbs(values, *grid), *grid)


def total_weight(weights: NDArray | None, n: int) -> float:
    """Return the fixed-point sum of the weights of n rows, which is n without weights."""
    return float(n) if weights is None else total(weights)


def total_grid(n: int, largest: float) -> tuple[int, int]:
    """Return the grid for a sum of n values in [0, `largest`]: bits a limb, B, and exponent, E.

    ``largest < 2**E``, and ``n * 2**B <= 2**62``, so that no limb overflows.  Of three limbs the
    last place is ``2**(E - 3 B)``, each value is off by at most half of it, and the sum is at least
    ``2**(E - 1)``: before it is rounded it is off by at most ``n * 2**(-3 B)`` of itself.  That is
    ``2**(4 m - 186)`` for n up to ``2**m``, m >= 11: ``2**-62`` up to ``2**31`` values, ``2**-54``
    up to ``2**33``, ``2**-26`` up to ``2**40``.  It takes values that are nearly all smaller than
    the last place; one of at least ``2**(E - 3 B + 52)`` is not off at all.
    """
    return bits_a_limb(n), math.frexp(largest)[1]


def total_limbs(values: NDArray[np.float64], bits: int, exponent: int) -> list[int]:
    """Return what values in [0, ``2**exponent``] add to each limb of their sum."""
    remainder = np.ldexp(values, -exponent)
    limbs = []
    for _ in range(TOTAL_LIMBS):
        remainder = remainder * 2.0**bits
        limb = np.rint(remainder)
        limbs.append(int(limb.astype(np.int64).sum()))
        remainder = remainder - limb
    return limbs


def two_factors(exponent: int) -> tuple[float, float]:
    """Return two powers of two whose product is ``2**exponent``, which may not be a float."""
    half = exponent // 2
    return math.ldexp(1.0, half), math.ldexp(1.0, exponent - half)


def fraction_of(u: float, total: int) -> int:
    """Return ``floor(u * total)`` exactly, for u in [0, 1) a multiple of ``2**-53``."""
    return (int(u * 2.0**53) * total) >> 53


def join(limbs: list[int], bits: int, exponent: int) -> float:
    """Return the float nearest to ``sum_l limbs[l] * 2**(exponent - bits * (l + 1))``."""
    total_integer = 0
    for limb in limbs:
        total_integer = (total_integer << bits) + limb
    return math.ldexp(float(total_integer), exponent - bits * len(limbs))
