r"""Exponion: the centres in a ball (Newling and Fleuret 2016, "Fast k-means with accurate bounds").

The bounds and tests are those of :mod:`lloydia.algorithms.hamerly`.  What a point x of cluster a
that fails them is compared with is not every centre: with u >= d(x, c_a), and g(a) the distance
from c_a to its nearest other centre,

* the two centres nearest to x are at most u + g(a) away, for c_a and that other centre are;
* d(x, c_j) >= d(c_a, c_j) - u.

So only centres with d(c_a, c_j) <= 2 u + g(a) can be nearest or second nearest, and the second
nearest of these gives l.  The points of one cluster that fail share one ball, that of the largest
u among them: their candidates are then vectors that are made once.

In few dimensions a ball holds few centres.  In many, where all distances are much alike, it holds
them all; such points are scanned as in hamerly.

Beside the bounds it keeps the list of the points that fail, at most 12 bytes a point.
"""

from __future__ import annotations

from lloydia.algorithms.hamerly import Hamerly

__all__ = ["Exponion"]


class Exponion(Hamerly):
    """The bounds of every point: those of Hamerly."""
