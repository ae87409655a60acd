"""Elkan: k lower bounds a point.

Elkan 2003, "Using the triangle inequality to accelerate k-means".

For a point x with label a keep u >= d(x, c_a), l_j <= d(x, c_j) for every j, and a bound l (as
Hamerly's) on all l_j but that of a.

* When the centres move:  u += moved(a),  l_j -= moved(j),  l -= max_j moved(j).
* d(x, c_j) >= d(c_a, c_j) - d(x, c_a), so centre j is farther if u < d(c_a, c_j) / 2.

A point with u < l or u < s(a), half the distance from c_a to its nearest other centre, is skipped.
For any other, u is replaced by the distance to c_a itself and the test is repeated.  If it fails
again, centre j is skipped if u < max(l_j, d(c_a, c_j) / 2), which bounds d(x, c_j) too: with the
distances that are evaluated it gives l anew.

**Drift.**  No l_j is written but where a distance is evaluated: instead of it ``L_j = l_j + S_j``
is kept, where S_j adds up the movements of centre j, and ``L_j - S_j`` is the bound at any time.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from lloydia.algorithms.geometry import Padding, outgrown
from lloydia.imports import load
from lloydia.spelling import option

__all__ = ["TIMES", "Elkan", "bytes_of_row", "is_modest"]

# What bounds may take that nobody asked for.
TIMES, PART = 2.0, 0.25


class Elkan:
    """The bounds of every point: k + 2 float32, k in whole vectors; as many again for each centre.

    Attributes
    ----------
    upper, nearest : ndarray of shape (n,), float32
        u, and l with what the centres had moved.
    lower : ndarray of shape (n, k or more), float32
        L_j.
    drift : ndarray of shape (k or more,), float32
        S_j.
    passed : float
        The sum of the largest movements.
    padding : Padding
        Every computed bound passes through it.

    Raises
    ------
    MemoryError
        If the bounds do not fit into the memory that is free.
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
        # Written whole by the first assignment.
        self.lower = np.empty((n_samples, width), dtype=np.float32)
        self.drift = np.zeros(width, dtype=np.float32)
        self.passed = np.float32(0.0)

    def move(self, moved: NDArray[np.float64]) -> None:
        """Add how far the centres moved, shape (k,), to the drift."""
        drift = self.padding.raised(self.drift[: self.k] + moved)
        self.drift[: self.k] = drift
        if outgrown(float(self.passed), float(moved.max()), self.padding):
            self.nearest[:] = self.padding.lowered(self.nearest - self.passed)
            self.passed = np.float32(0.0)
        self.passed = np.float32(self.padding.raised(self.passed + moved.max()))

    def now(self, labels: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return u and l_j of points with these labels."""
        lower = self.lower[:, : self.k].astype(np.float64) - self.drift[: self.k]
        return self.upper.astype(np.float64), lower


def width_of(k: int) -> int:
    """Return k in whole vectors: as wide as the panels that distances are found with."""
    lanes = load("lloydia.backends.cpu.simd.micro").LANES
    return -(-k // lanes) * lanes


def bytes_of_row(k: int) -> int:
    """Return what the bounds take of each row, with k centres."""
    return 4 * (width_of(k) + 2)


def needed_bytes(n_samples: int, k: int) -> int:
    """Return what the bounds take, and the distances between centres."""
    return n_samples * bytes_of_row(k) + 4 * k * width_of(k)


def is_modest(n_samples: int, k: int, row_bytes: float) -> bool:
    """Return whether bounds take at most TIMES what the rows do, and PART of the free memory."""
    free = free_bytes()
    modest = bytes_of_row(k) <= TIMES * row_bytes and np.isfinite(free)
    return bool(modest and needed_bytes(n_samples, k) <= PART * free)


def free_bytes() -> float:
    """Return the bytes of memory that this process may get, infinity where nobody tells."""
    with suppress(ValueError, OSError):
        return float(load("lloydia.data.chunks.memory").available())
    return np.inf
