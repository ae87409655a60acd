r"""Exponion: the centres in a ball (Newling and Fleuret 2016, "Fast k-means with accurate bounds").

The bounds and tests are those of :mod:`lloydia.algorithms.hamerly`.  A point x of cluster a that
fails the tests is compared with the centres in a ball only.  With u >= d(x, c_a), and g(a) the
distance from c_a to its nearest other centre,

* the two centres nearest to x are at distances of at most u + g(a), because c_a and its nearest
  other centre are;
* d(x, c_j) >= d(c_a, c_j) - u.

So only centres with d(c_a, c_j) <= 2 u + g(a) can be nearest or second nearest, and the second
nearest of them gives l.  All failing points of a cluster use the ball of the largest u among them,
so the vectors of its centres are made once.

In few dimensions, a ball contains few centres.  In many dimensions, where all distances are
similar, it contains all of them; such points are scanned as in hamerly.

Besides the bounds, the algorithm stores the list of failing points: at most 12 bytes per point.
"""

from __future__ import annotations

from lloydia.algorithms.hamerly import Hamerly

__all__ = ["Exponion"]


class Exponion(Hamerly):
    """The bounds of all points, the same as Hamerly's."""
