"""Yinyang: one lower bound for every group of centres.

Ding, Zhao, Shen, Musuvathi and Mytkowicz 2015, "Yinyang k-means: a drop-in replacement of the
classic k-means with consistent speedup".

The centres are divided once, at the start, into t groups of centres near each other.  For a point x
with label a keep u >= d(x, c_a) and, for every group G, l_G <= d(x, c_j) for every j != a in G.

* When the centres move:  u += moved(a),  l_G -= max_{j in G} moved(j).
* If u < l_G, no centre of G is nearer than c_a: G is skipped.  If u < min_G l_G, x is skipped.

For any other point u is replaced by (a bound on) the distance to c_a itself and the tests are
repeated.  A group that is not skipped is evaluated whole, which gives l_G anew: the least of its
distances, or the second least where the least belongs to the new label.  If c_a loses its label and
its own group was skipped, l of that group is lowered to d(x, c_a).

**Drift.**  Bounds that are not evaluated are not written either: instead of l_G the sum
``L_G = l_G + S_G`` is kept, where S_G adds up the largest movements of the group since the start,
and ``L_G - S_G`` is the bound at any later time.  Where S_G has outgrown what centres still move,
L_G is lowered to that, and S_G begins anew.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lloydia.algorithms.geometry import Padding, outgrown
from lloydia.imports import load

__all__ = ["Yinyang", "bytes_of_row", "near_each_other"]

# Bytes a row that lower bounds may always take; otherwise as many as the row itself.
LEAST_ALLOWED = 128


class Yinyang:
    """The bounds of every point: t + 1 float32, in the unit of the padding.

    The numbers of a row take 4 bytes more than the row itself, or than 128 bytes, at most.

    Attributes
    ----------
    upper : ndarray of shape (n,), float32
        u.
    lower : ndarray of shape (t, n), float32
        L_G; empty before the groups are made.
    drift : ndarray of shape (t,), float32
        S_G.
    size : int
        Centres a group; the last group may have fewer.
    order : ndarray of shape (k,), int64
        The centres, group after group.
    padding : Padding
        Every computed bound passes through it.
    """

    def __init__(self, n_samples: int, k: int, padding: Padding) -> None:
        self.upper = np.full(n_samples, np.inf, dtype=np.float32)
        self.lower = np.empty((0, n_samples), dtype=np.float32)
        self.padding = padding

    def divide(self, centers: NDArray[np.float64], width: int, row_bytes: float) -> None:
        """Make groups of a multiple of `width` centres (k, d), for rows of so many bytes."""
        self.size, n_groups = groups_of(len(centers), width, row_bytes)
        self.lower = np.zeros((n_groups, len(self.upper)), dtype=np.float32)
        self.drift = np.zeros(n_groups, dtype=np.float32)
        self.order = near_each_other(centers, self.size)

    def move(self, moved: NDArray[np.float64]) -> None:
        """Add how far the centres moved, shape (k,), to the drift of their groups."""
        largest = np.maximum.reduceat(moved[self.order], np.arange(0, len(moved), self.size))
        for g in np.flatnonzero(outgrown(self.drift, largest, self.padding)):
            self.lower[g] = self.padding.lowered(self.lower[g] - self.drift[g])
            self.drift[g] = 0.0
        self.drift = np.asarray(self.padding.raised(self.drift + largest), dtype=np.float32)

    def now(self, labels: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return u, and l of every centre's group (0 for the label's own), of labelled points."""
        groups = (self.lower.astype(np.float64) - self.drift[:, None]).T
        lower = np.empty((len(labels), len(self.order)))
        lower[:, self.order] = np.repeat(groups, self.size, axis=1)[:, : len(self.order)]
        lower[np.arange(len(labels)), labels] = 0.0
        return self.upper.astype(np.float64), lower


def groups_of(k: int, width: int, row_bytes: float) -> tuple[int, int]:
    """Return how large groups of a multiple of `width` of k centres are, and how many there are."""
    most = int(max(row_bytes, LEAST_ALLOWED)) // 4
    size = width * -(-k // (width * most))
    return size, -(-k // size)


def bytes_of_row(k: int, row_bytes: float) -> int:
    """Return what the bounds take of each row of so many bytes, with k centres."""
    grouped = load("lloydia.backends.cpu.scan.grouped")
    _, n_groups = groups_of(k, grouped.vectors(k) * grouped.LANES, row_bytes)
    return 4 * (1 + n_groups)


def near_each_other(centers: NDArray[np.float64], size: int) -> NDArray[np.int64]:
    """Order centres of shape (k, d) so that every `size` of them in turn are near each other.

    Recursive bisection, at a multiple of `size`, across the direction of largest spread.
    """
    k = len(centers)
    if k <= size:
        return np.arange(k)
    offsets = centers - centers.mean(axis=0)
    # Near 1: what follows squares them.
    offsets /= np.abs(offsets).max() or 1.0
    along = np.argsort(offsets @ direction_of_spread(offsets), kind="stable")
    middle = -(-k // size) // 2 * size
    parts = along[:middle], along[middle:]
    return np.concatenate([part[near_each_other(centers[part], size)] for part in parts])


def direction_of_spread(offsets: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return about the first principal direction of offsets (m, d) from their mean: shape (d,)."""
    squares = np.square(offsets).sum(axis=1)
    direction = offsets[squares.argmax()]
    for _ in range(8):
        norm = np.abs(direction).max()
        if not norm > 0:
            break
        direction = offsets.T @ (offsets @ (direction / norm))
    return direction
