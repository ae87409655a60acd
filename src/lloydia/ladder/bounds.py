"""Bounds of points on the GPU: how they follow the centres, and which points they leave to scan.

A point of cluster a keeps u >= d(x, c_a) and lower bounds on its distances to other centres.  By
the triangle inequality they stay bounds if u grows by how far c_a moved and a lower bound falls by
how far its centre did; the label stands while u is below them (Elkan 2003, Hamerly 2010).

Distances are rounded, and by rung 16 too, which measures them all: a computed D is within a factor
1 +- (d + 2) e of the true one, with e the epsilon of the type.  So bounds are widened by
w = 1 + (2 d + 8) e whenever they move, which is more than all roundings of both; where they say
that a label stands, rung 16 finds the same one.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from lloydia.ladder.device import Placed, ceil_div, cuda, zeros
from lloydia.ladder.nearest import squared_distance

__all__ = ["Moves", "follow_lower", "follow_upper", "margins"]


def margins(d: int, dtype: DTypeLike) -> tuple[Any, Any]:
    """Return w for d features, and 2 - w: what widens upper bounds, and what lowers lower ones."""
    kind = np.dtype(dtype).type
    excess = kind(2 * d + 8) * np.finfo(kind).eps
    return kind(1 + excess), kind(1 - excess)


class Moves:
    """How far the centres moved since the last assignment.

    Parameters
    ----------
    on : Placed

    Attributes
    ----------
    moved : device array of shape (k,)
    farthest : device array of shape (1,)
        The largest of them.
    """

    def __init__(self, on: Placed) -> None:
        self.on = on
        self.moved, self.farthest = zeros(len(on.centers), on.X.dtype), zeros(1, on.X.dtype)
        self._zero = zeros(1, on.X.dtype)
        self._seen = cuda.to_device(on.centers.copy_to_host())

    def measure(self) -> None:
        """Queue the measuring of the last move."""
        self.farthest.copy_to_device(self._zero)
        grid = ceil_div(len(self.moved), self.on.block), self.on.block
        _measure[grid](self._seen, self.on.centers, self.moved, self.farthest)


@cuda.jit
def _measure(seen, centers, moved, farthest):
    """Measure how far the centres are from those seen before, and see them, a thread a centre."""
    j = cuda.grid(1)
    if j < moved.shape[0]:
        moved[j] = sqrt(squared_distance(seen, j, centers, j))
        cuda.atomic.max(farthest, 0, moved[j])
        for f in range(centers.shape[1]):
            seen[j, f] = centers[j, f]


@cuda.jit(device=True)
def follow_upper(bound, moved, wide):
    """Return an upper bound that followed its centre."""
    return (bound + moved) * wide


@cuda.jit(device=True)
def follow_lower(bound, moved, wide, narrow):
    """Return a lower bound that followed its centre; one that falls below 0 says nothing."""
    return bound * narrow - moved * wide
