"""Rung 27: rung 14 with the points in shared memory too, as B suggests.

What changed from rung 14: a block also copies its points into shared memory, feature after feature,
so that the 32 threads of a warp use 32 banks.  Every thread then compares its point with the
centres there.

Why it should help: a thread reads its point once for each centre, and shared memory answers sooner
than the cache.  But no thread reads another's point, so nothing is shared, and what a thread reads
k times the compiler may keep in registers anyway.

B only suggests it, for a larger gain than that of the shared centres.  So there is no figure of B's
to compare with.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lloydia.ladder.device import LARGE_BLOCKS, SHARED_BYTES, Placed, cuda
from lloydia.ladder.r10_naive import relabel, round_trip
from lloydia.ladder.rung import About, Outcome
from lloydia.ladder.staging import stage
from lloydia.stopping import Labels, Rule

ABOUT = About(
    "transposed, centres and points in shared memory",
    "B",
    "cuda",
    uses=frozenset({"block"}),
    stop=Labels(0.001),
)


def fit(
    X: NDArray,
    centers: NDArray,
    *,
    rule: Rule | None,
    max_iter: int,
    threads: int = 1,
    block: int = 256,
) -> Outcome:
    """Run rung 14 with staged points.

    Raises
    ------
    ValueError
        If the centres and a block's points do not fit into shared memory together.
    """
    on = Placed(X, centers, block, order="F")
    shared = centers.nbytes + block * X[:1].nbytes
    if shared > SHARED_BYTES:
        raise ValueError(
            f"The centres and a block of {block} points take {shared} bytes, more than the "
            f"{SHARED_BYTES} bytes of shared memory: take smaller blocks, or rung 14, which keeps "
            "points in global memory."
        )

    def scan() -> None:
        assign[on.blocks, block, 0, shared](on.X, on.centers, on.labels, on.changed)

    return round_trip(on, X, centers, scan, rule, max_iter)


@cuda.jit(**LARGE_BLOCKS)
def assign(X, centers, labels, changed):
    """Label every point, a thread a point, and count the changes."""
    staged = cuda.shared.array(0, X.dtype)
    points = staged[centers.size :]
    i, t, block = cuda.grid(1), cuda.threadIdx.x, cuda.blockDim.x
    k, d = centers.shape
    if i < X.shape[0]:
        for f in range(d):
            points[f * block + t] = X[i, f]
    stage(centers, 0, k, staged)
    if i < X.shape[0]:
        best, least = 0, X.dtype.type(np.inf)
        for j in range(k):
            D = X.dtype.type(0)
            for f in range(d):
                difference = points[f * block + t] - staged[j * d + f]
                D += difference * difference
            if D < least:
                best, least = j, D
        relabel(labels, i, best, changed)
