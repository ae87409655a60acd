"""The layout of an iteration's report: int64 numbers that its last kernel writes."""

from __future__ import annotations

import triton.language as tl

__all__ = ["CHANGED", "EMPTY", "HEAD", "MOVE", "PRUNED", "RECHECKED", "STATUS"]

# Columns of a report: rows that changed, empty clusters, the largest move of a centre (the bits of
# a float64), rechecked rows, the value of STOPPED, pruned rows; from HEAD on, D between the old and
# the new place of each centre (the bits of float64 numbers).
CHANGED, EMPTY, MOVE, RECHECKED, STATUS, PRUNED = (tl.constexpr(i) for i in range(6))
HEAD = tl.constexpr(8)
