"""Elkan: k lower bounds a point.

Elkan 2003, "Using the triangle inequality to accelerate k-means".

For a point x with label a keep u >= d(x, c_a) and l_j <= d(x, c_j) for every j.

* When the centres move:  u += moved(a),  l_j -= moved(j).
* d(x, c_j) >= d(c_a, c_j) - d(x, c_a), so centre j is farther if u < d(c_a, c_j) / 2.

A point with u < s(a), half the distance from c_a to its nearest other centre, is skipped.  For any
other, centre j is skipped if u < l_j or u < d(c_a, c_j) / 2.  Before the first distance to another
centre, u is replaced by the distance to c_a itself and both tests are repeated.  A distance that is
evaluated becomes l_j, and if it is smaller (or equal, with a lower index) j becomes the label.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lloydia.algorithms.geometry import Padding

__all__ = ["Elkan"]


class Elkan:
    """The bounds of every point: k + 1 float32, in the unit of the padding.

    Attributes
    ----------
    upper : ndarray of shape (n,)
        u.
    lower : ndarray of shape (n, k)
        l_j.
    padding : Padding
        Every computed bound passes through it.
    """

    def __init__(self, n_samples: int, k: int, padding: Padding) -> None:
        self.upper = np.full(n_samples, np.inf, dtype=np.float32)
        self.lower = np.zeros((n_samples, k), dtype=np.float32)
        self.padding = padding

    def now(self, labels: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return u and l of points with these labels."""
        return self.upper.astype(np.float64), self.lower.astype(np.float64)
