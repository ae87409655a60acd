"""Elkan: k lower bounds per point.

Elkan 2003, "Using the triangle inequality to accelerate k-means".

For a point x with label a, the algorithm keeps u >= d(x, c_a), l_j <= d(x, c_j) for every j, and
(as in Hamerly's algorithm) a lower bound l on d(x, c_j) for all j != a.

* When the centres move:  u += moved(a),  l_j -= moved(j),  l -= max_j moved(j).
* d(x, c_j) >= d(c_a, c_j) - d(x, c_a), so centre j is farther if u < d(c_a, c_j) / 2.

A point with u < l or u < s(a), half the distance from c_a to its nearest other centre, is skipped.
For any other point, u is replaced by the distance to c_a itself and the test is repeated.  If it
fails again, centre j is skipped if u < max(l_j, d(c_a, c_j) / 2).  This maximum is a lower bound on
d(x, c_j); the least of these maxima and of the evaluated distances to the other centres is the
new l.

**Drift.**  An l_j is written only when its distance is evaluated.  What is stored is
``L_j = l_j + S_j``, where S_j is the sum of the movements of centre j, and ``L_j - S_j`` is the
bound at any later time.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from lloydia.algorithms.geometry import Padding, outgrown
from lloydia.imports import load
from lloydia.spelling import option

__all__ = ["TIMES", "Elkan", "bytes_of_row", "is_modest"]

# For algorithm="auto", bounds take at most TIMES the memory of the rows and PART of the free one.
TIMES, PART = 2.0, 0.25


class Elkan:
    """The bounds of all points: k + 2 float32 per point, with k rounded up to whole SIMD vectors.

    Attributes
    ----------
    upper, nearest : ndarray of shape (n,), float32
        u, and l plus the sum of the largest movements so far.
    lower : ndarray of shape (n, k or more), float32
        L_j.
    drift : ndarray of shape (k or more,), float32
        S_j.
    total_drift : float
        The sum of the largest movements.
    padding : Padding
        Every computed bound passes through it.

    Raises
    ------
    MemoryError
        If the bounds do not fit into the free memory.
    """

    def __init__(self, n_samples: int, k: int, padding: Padding) -> None:
        width = width_of(k)
        needed, free = needed_bytes(n_samples, k), free_bytes()
        if needed > free:
            raise MemoryError(
                f"{option('algorithm', 'elkan')} needs {needed:,} bytes for {n_samples:,} x {k:,} "
                f"bounds, and {free:,.0f} are free: use {option('algorithm', 'yinyang')} or "
                f"{option('algorithm', 'lloyd')}."
            )
        self.k, self.padding = k, padding
        self.upper = np.full(n_samples, np.inf, dtype=np.float32)
        self.nearest = np.zeros(n_samples, dtype=np.float32)
        # The first assignment writes all of it.
        self.lower = np.empty((n_samples, width), dtype=np.float32)
        self.drift = np.zeros(width, dtype=np.float32)
        self.total_drift = np.float32(0.0)

    def move(self, moved: NDArray[np.float64]) -> None:
        """Add the movements of the centres, shape (k,), to the drift."""
        drift = self.padding.upper_bound(self.drift[: self.k] + moved)
        self.drift[: self.k] = drift
        if outgrown(float(self.total_drift), float(moved.max()), self.padding):
            self.nearest[:] = self.padding.lower_bound(self.nearest - self.total_drift)
            self.total_drift = np.float32(0.0)
        self.total_drift = np.float32(self.padding.upper_bound(self.total_drift + moved.max()))

    def now(self, labels: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the current u and l_j of points with these labels."""
        lower = self.lower[:, : self.k].astype(np.float64) - self.drift[: self.k]
        return self.upper.astype(np.float64), lower


def width_of(k: int) -> int:
    """Return k rounded up to whole SIMD vectors, the width of the panels of centres."""
    lanes = load("lloydia.backends.cpu.simd.microkernel_centers_in_lanes").LANES
    return -(-k // lanes) * lanes


def bytes_of_row(k: int) -> int:
    """Return the bytes per row of the bounds of k centres."""
    return 4 * (width_of(k) + 2)


def needed_bytes(n_samples: int, k: int) -> int:
    """Return the bytes of the bounds and of the distances between centres."""
    return n_samples * bytes_of_row(k) + 4 * k * width_of(k)


def is_modest(n_samples: int, k: int, row_bytes: float) -> bool:
    """Return whether the bounds take at most TIMES the memory of the rows and PART of the free."""
    free = free_bytes()
    modest = bytes_of_row(k) <= TIMES * row_bytes and np.isfinite(free)
    return bool(modest and needed_bytes(n_samples, k) <= PART * free)


def free_bytes() -> float:
    """Return the bytes of free memory for this process; infinity if the system does not say."""
    with suppress(ValueError, OSError):
        return float(load("lloydia.data.chunks.memory").available())
    return np.inf
