"""Distances between centroids that are nearly equal.

The mean of m float64 numbers, added one after another, has an error of up to ``m * 2**-53`` times
the mean of their magnitudes.  Two equal centroids therefore mostly differ after rounding, and a
score that divides by their distance is meaningless.  The distances of such pairs are computed from
the exact sums of their rows, which are integers times a power of two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["ExactCentroids", "near"]

# A pair is computed exactly if its distance is at most this fraction of the magnitudes added, ...
NEAR = 2.0**-20
# ... or at most this fraction times the number of rows.
ROUNDING = 2.0**-43


def near(apart: Any, reach: Any, own_reach: Any, n_samples: int) -> Any:
    """Return which distances are too small to be computed from rounded centroids.

    Parameters
    ----------
    apart : array of shape (m, k)
        The computed distances.
    reach : array of shape (k,)
        For each centroid, a bound on the mean magnitude of its rows: its own norm plus the mean
        distance of its rows from it.
    own_reach : array of shape (m, 1)
        The same bound for the m centroids.
    n_samples : int
    """
    return apart <= max(NEAR, ROUNDING * n_samples) * (reach + own_reach)


class ExactCentroids:
    """The distances between the exact centroids of clusters.

    Parameters
    ----------
    rows_of : callable
        Returns the rows of a cluster: ndarray of shape (m, d), float32 or float64, finite.
    shape : tuple of int
        Number of clusters and of features.
    """

    def __init__(self, rows_of: Callable[[int], NDArray[Any]], shape: tuple[int, int]) -> None:
        self.rows_of = rows_of
        # Each centroid as an unevaluated sum of two floats, once it has been computed.
        self.high, self.low = np.zeros(shape), np.zeros(shape)
        self.known: dict[int, tuple[int, NDArray[np.object_]]] = {}

    def sums(self, cluster: int) -> tuple[int, NDArray[np.object_]]:
        """Return the number of rows of a cluster and, per feature, their sum times ``2**1074``."""
        if cluster not in self.known:
            rows = np.asarray(self.rows_of(cluster), dtype=np.float64)
            sums = [exact_sum(x) for x in rows.T]
            self.known[cluster] = len(rows), np.array(sums, dtype=object)
            for f, total in enumerate(sums):
                mean = Fraction(total, len(rows) << LEAST)
                self.high[cluster, f] = float(mean)
                self.low[cluster, f] = float(mean - Fraction(float(mean)))
        return self.known[cluster]

    def distances(self, i: int, others: Sequence[int]) -> NDArray[np.float64]:
        """Return the distances between a centroid and others; the distance of equal ones is 0."""
        for cluster in (i, *others):
            self.sums(cluster)
        high, low = self.high[others], self.low[others]
        apart = np.linalg.norm((high - self.high[i]) + (low - self.low[i]), axis=1)
        # Two floats hold 106 bits of a centroid.
        scale = np.linalg.norm(high, axis=1) + np.linalg.norm(self.high[i])
        for p in np.flatnonzero(apart <= 2.0**-50 * scale).tolist():
            apart[p] = self.distance(i, others[p])
        return apart

    def distance(self, i: int, j: int) -> float:
        """Return the distance between two centroids, rounded from an exact square: 0 if equal."""
        (m, own), (n, other) = self.sums(i), self.sums(j)
        gaps = own * n - other * m
        if not gaps.any():
            return 0.0
        # Scaling by a power of two keeps the square within the range of float64.
        bits = max(int(gap).bit_length() for gap in gaps)
        unit = 1 << bits
        square = sum(Fraction(int(gap), unit) ** 2 for gap in gaps)
        scale = Fraction(unit, m * n << LEAST)
        return float(scale * Fraction(float(square) ** 0.5))


# Every finite float64 is a multiple of 2**-1074.
LEAST = 1074


def exact_sum(values: NDArray[np.float64]) -> int:
    """Return the sum of finite numbers times ``2**1074``, exactly."""
    fraction, exponent = np.frexp(values)
    # Magnitudes are below 2**53, and their halves below 2**32, so int64 holds sums of 2**31 halves.
    digits = np.ldexp(fraction, 53).astype(np.int64)
    total = 0
    for e in np.unique(exponent).tolist():
        some = digits[exponent == e]
        part = (int((some >> 32).sum()) << 32) + int((some & 0xFFFFFFFF).sum())
        shift = e - 53 + LEAST
        # The digits of a subnormal number end in zeros.
        total += part << shift if shift >= 0 else part >> -shift
    return total
