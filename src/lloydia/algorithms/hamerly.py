"""Hamerly: one upper and one lower bound a point (Hamerly 2010, "Making k-means even faster").

For a point x with label a keep u >= d(x, c_a) and l <= d(x, c_j) for every other j.

* When the centres move, d(x, c_a) grows by at most moved(a), and every other distance shrinks by
  at most the largest movement among the others:  u += moved(a),  l -= max_{j != a} moved(j).
* With s(a) half the distance from c_a to its nearest other centre, d(x, c_j) >= 2 s(a) - d(x, c_a).

So if u < max(l, s(a)), centre a is still the nearest, and strictly: x is skipped.  If not, u is
replaced by the distance itself; if the test still fails, all k centres are scanned, which gives
the label, u and l anew.
"""

from __future__ import annotations

import numpy as np

from lloydia.algorithms.geometry import Padding

__all__ = ["Hamerly"]


class Hamerly:
    """The bounds of every point: two float32, in the unit of the padding.

    Attributes
    ----------
    upper, lower : ndarray of shape (n,)
        u and l.
    padding : Padding
        Every computed bound passes through it.
    pairs : bool
        Whether all k x k distances between centres are needed.
    """

    pairs = False

    def __init__(self, n_samples: int, k: int, padding: Padding) -> None:
        self.upper = np.full(n_samples, np.inf, dtype=np.float32)
        self.lower = np.zeros(n_samples, dtype=np.float32)
        self.padding = padding
