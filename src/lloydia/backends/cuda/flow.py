"""Where an iteration stands: a few integers on the device that its kernels share.

Nothing of an iteration is known to the host while the kernels of the next are queued.  What they
need of each other is in one int32 tensor, ``flow``.
"""

from __future__ import annotations

import triton.language as tl

__all__ = [
    "HALT",
    "ITERATION",
    "MOST_FEATURES",
    "MOVES",
    "N_CHANGED",
    "N_DOUBT",
    "N_DOUBT2",
    "N_EMPTY",
    "N_RECHECKED",
    "SIZE",
    "TICKETS",
]

# Not 0: the kernels of an iteration return at once, and change nothing.
HALT = tl.constexpr(0)
# Iterations completed.
ITERATION = tl.constexpr(1)
# Of this iteration: rows that changed, rows in doubt after each stage, rows checked again.
N_CHANGED = tl.constexpr(2)
N_DOUBT = tl.constexpr(3)
N_DOUBT2 = tl.constexpr(4)
N_RECHECKED = tl.constexpr(5)
# Of this iteration: clusters of weight 0, and programs that have computed their centres.
N_EMPTY = tl.constexpr(6)
TICKETS = tl.constexpr(7)
# Entries of the list of moves between clusters.
MOVES = tl.constexpr(8)
SIZE = 16

# Up to so many features, rows stay in registers and matrix units do not pay.
MOST_FEATURES = 8
