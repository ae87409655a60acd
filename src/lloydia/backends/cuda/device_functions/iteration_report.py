"""What the report of an iteration holds, and where: int64 numbers that its last kernel writes."""

from __future__ import annotations

import triton.language as tl

__all__ = ["CHANGED", "EMPTY", "HEAD", "MOVE", "PRUNED", "RECHECKED", "STATUS"]

# A report: rows changed, empty clusters, the largest move (the bits of a float64), rows checked
# again, whether and how the device stopped, rows whose bounds spared them; from HEAD on, D between
# the old and the new place of each centre (bits of float64).
CHANGED, EMPTY, MOVE, RECHECKED, STATUS, PRUNED = (tl.constexpr(i) for i in range(6))
HEAD = tl.constexpr(8)
