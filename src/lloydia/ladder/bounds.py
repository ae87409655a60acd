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

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from lloydia.ladder.device import cuda

__all__ = ["follow_lower", "follow_upper", "margins"]


def margins(d: int, dtype: DTypeLike) -> tuple[Any, Any]:
    """Return w for d features, and 2 - w: what widens upper bounds, and what lowers lower ones."""
    kind = np.dtype(dtype).type
    excess = kind(2 * d + 8) * np.finfo(kind).eps
    return kind(1 + excess), kind(1 - excess)


@cuda.jit(device=True)
def follow_upper(bound, moved, wide):
    """Return an upper bound that followed its centre."""
    return (bound + moved) * wide


@cuda.jit(device=True)
def follow_lower(bound, moved, wide, narrow):
    """Return a lower bound that followed its centre; one that falls below 0 says nothing."""
    return bound * narrow - moved * wide
