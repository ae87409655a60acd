"""Rung 28: rung 10 with several threads a point, as B suggests.

What changed from rung 10: four threads share a point.  Each compares it with every fourth centre,
and keeps its own least distance; then one of them compares the four, in shared memory.

Why it should help: it is for few points, which would leave most of the GPU idle.  With many, the
same distances are computed, and a barrier and a comparison come on top.

B only suggests it, and names what it takes: a least distance for each thread, and a comparison at
the end.  So there is no figure of B's to compare with.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lloydia.ladder.device import LARGE_BLOCKS, Placed, ceil_div, cuda
from lloydia.ladder.nearest import squared_distance
from lloydia.ladder.r10_naive import relabel, round_trip
from lloydia.ladder.rung import About, Outcome
from lloydia.stopping import Labels, Rule

ABOUT = About(
    "naive, four threads a point", "B", "cuda", uses=frozenset({"block"}), stop=Labels(0.001)
)

THREADS_A_POINT = 4
MOST_THREADS = 1024  # in a block


def fit(
    X: NDArray,
    centers: NDArray,
    *,
    rule: Rule | None,
    max_iter: int,
    threads: int = 1,
    block: int = 256,
) -> Outcome:
    """Run rung 10 with four threads a point."""
    on = Placed(X, centers, block)
    blocks = ceil_div(len(X) * THREADS_A_POINT, block)

    def scan() -> None:
        assign[blocks, block](on.X, on.centers, on.labels, on.changed)

    return round_trip(on, X, centers, scan, rule, max_iter)


@cuda.jit(**LARGE_BLOCKS)
def assign(X, centers, labels, changed):
    """Label every point, a few threads a point, and count the changes."""
    bests = cuda.shared.array(MOST_THREADS, np.int32)
    leasts = cuda.shared.array(MOST_THREADS, X.dtype)
    t, i = cuda.threadIdx.x, cuda.grid(1) // THREADS_A_POINT
    part = t % THREADS_A_POINT
    best, least = 0, X.dtype.type(np.inf)
    if i < X.shape[0]:
        for j in range(part, centers.shape[0], THREADS_A_POINT):
            D = squared_distance(X, i, centers, j)
            if D < least:
                best, least = j, D
    bests[t], leasts[t] = best, least
    cuda.syncthreads()
    if part == 0 and i < X.shape[0]:
        for other in range(t + 1, t + THREADS_A_POINT):
            D = leasts[other]
            if D < least or (D == least and bests[other] < best):
                best, least = bests[other], D
        relabel(labels, i, best, changed)
