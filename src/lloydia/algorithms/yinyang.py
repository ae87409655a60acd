"""Yinyang: one lower bound per point for each group of centres.

Ding, Zhao, Shen, Musuvathi and Mytkowicz 2015, "Yinyang k-means: a drop-in replacement of the
classic k-means with consistent speedup".

At the start, the centres are divided into t groups of centres near each other.  For a point x with
label a, the algorithm keeps u >= d(x, c_a) and, for each group G, l_G <= d(x, c_j) for all j != a
in G.

* When the centres move:  u += moved(a),  l_G -= max_{j in G} moved(j).
* If u < l_G, no centre of G is nearer than c_a: G is skipped.  If u < min_G l_G, x is skipped.

For any other point, u is replaced by (a bound on) the distance to c_a itself and the tests are
repeated.  All distances of a group that is not skipped are evaluated, which gives a new l_G: the
least of its distances, or the second least if the least belongs to the new label.  If x leaves the
cluster of c_a and the group of c_a was skipped, l_G of that group is lowered to d(x, c_a).

**Drift.**  A bound is written only when its group is evaluated.  What is stored is
``L_G = l_G + S_G``, where S_G is the sum of the largest movements in the group, and ``L_G - S_G``
is the bound at any later time.  When S_G has become much larger than the current movements, so that
float32 would lose them, L_G is replaced by ``L_G - S_G`` and S_G restarts at 0.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lloydia.algorithms.geometry import Padding, outgrown
from lloydia.imports import load

__all__ = ["Yinyang", "bytes_of_row", "near_each_other"]

# Lower bounds take at most as many bytes per row as the row itself, or this many if that is more.
MIN_BYTES = 128


class Yinyang:
    """The bounds of all points: t + 1 float32 per point, in the unit of the padding.

    They take at most 4 bytes per row more than the row itself, or than 128 bytes.

    Attributes
    ----------
    upper : ndarray of shape (n,), float32
        u.
    lower : ndarray of shape (t, n), float32
        L_G; empty before the groups are made.
    drift : ndarray of shape (t,), float32
        S_G.
    size : int
        Centres per group; the last group may have fewer.
    order : ndarray of shape (k,), int64
        The indices of the centres, group after group.
    padding : Padding
        Every computed bound passes through it.
    """

    def __init__(self, n_samples: int, k: int, padding: Padding) -> None:
        self.upper = np.full(n_samples, np.inf, dtype=np.float32)
        self.lower = np.empty((0, n_samples), dtype=np.float32)
        self.padding = padding

    def divide(self, centers: NDArray[np.float64], width: int, row_bytes: float) -> None:
        """Divide centres (k, d) into groups of a multiple of `width`, for rows of `row_bytes`."""
        self.size, n_groups = groups_of(len(centers), width, row_bytes)
        self.lower = np.zeros((n_groups, len(self.upper)), dtype=np.float32)
        self.drift = np.zeros(n_groups, dtype=np.float32)
        self.order = near_each_other(centers, self.size)

    def move(self, moved: NDArray[np.float64]) -> None:
        """Add the movements of the centres, shape (k,), to the drift of their groups."""
        largest = np.maximum.reduceat(moved[self.order], np.arange(0, len(moved), self.size))
        for g in np.flatnonzero(outgrown(self.drift, largest, self.padding)):
            self.lower[g] = self.padding.lower_bound(self.lower[g] - self.drift[g])
            self.drift[g] = 0.0
        self.drift = np.asarray(self.padding.upper_bound(self.drift + largest), dtype=np.float32)

    def now(self, labels: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the current u of labelled points, and l of each centre (0 for the label)."""
        groups = (self.lower.astype(np.float64) - self.drift[:, None]).T
        lower = np.empty((len(labels), len(self.order)))
        lower[:, self.order] = np.repeat(groups, self.size, axis=1)[:, : len(self.order)]
        lower[np.arange(len(labels)), labels] = 0.0
        return self.upper.astype(np.float64), lower


def groups_of(k: int, width: int, row_bytes: float) -> tuple[int, int]:
    """Return the size of the groups of k centres, a multiple of `width`, and their number."""
    max_groups = int(max(row_bytes, MIN_BYTES)) // 4
    size = width * -(-k // (width * max_groups))
    return size, -(-k // size)


def bytes_of_row(k: int, row_bytes: float) -> int:
    """Return the bytes per row of the bounds of k centres, for rows of `row_bytes`."""
    grouped = load("lloydia.backends.cpu.scan.grouped")
    _, n_groups = groups_of(k, grouped.vectors(k) * grouped.LANES, row_bytes)
    return 4 * (1 + n_groups)


def near_each_other(centers: NDArray[np.float64], size: int) -> NDArray[np.int64]:
    """Return an order of centres (k, d) in which consecutive groups of `size` are near each other.

    The order comes from recursive bisection, at multiples of `size`, along the direction of largest
    variance.
    """
    k = len(centers)
    if k <= size:
        return np.arange(k)
    offsets = centers - centers.mean(axis=0)
    # Scale the offsets to at most 1, because they are squared below.
    offsets /= np.abs(offsets).max() or 1.0
    along = np.einsum("if,f->i", offsets, principal_direction(offsets)).argsort(kind="stable")
    middle = -(-k // size) // 2 * size
    parts = along[:middle], along[middle:]
    return np.concatenate([part[near_each_other(centers[part], size)] for part in parts])


def principal_direction(offsets: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return an estimate of the first principal direction of offsets (m, d): shape (d,)."""
    squares = np.square(offsets).sum(axis=1)
    direction = offsets[squares.argmax()]
    for _ in range(8):
        norm = np.abs(direction).max()
        if not norm > 0:
            break
        # A matrix product by `@` starts more threads than the caller may allow; this does not.
        along = np.einsum("if,f->i", offsets, direction / norm)
        direction = np.einsum("i,if->f", along, offsets)
    return direction
