"""Rung 64: rung 15 with sums in the type of the points, as D's "cudaKmeans" has them.

What changed from rung 15: the sums are float32 where the points are, and the host waits for each of
the two kernels before it starts the next.

Why it should help: it moves half the bytes.  But a float32 has 24 bits, so a sum of millions of
numbers no longer takes up the last digits of what is added, and the order of atomic additions
decides which.  The ladder asks for 1e-4 of the largest value; with 10 million pixels and 7 clusters
centres were off by 6e-4.

D gave each pixel a thread, put the centres into shared memory and added by atomics: 10 million
pixels at k = 2 took 3.87 s where its sequential program took 74 s.  It says that the assignment had
half the speed with centres in global memory, and that the sums are what is left to improve.
"""

from __future__ import annotations

from numpy.typing import NDArray

from lloydia.ladder.device import Placed, ceil_div, cuda, zeros
from lloydia.ladder.r11_distance_matrix import divide
from lloydia.ladder.r15_all_on_gpu import assign_and_add
from lloydia.ladder.rung import About, Outcome
from lloydia.ladder.staging import capacity
from lloydia.stopping import Rule

ABOUT = About(
    "shared centres, atomic sums in the points' type",
    "D",
    "cuda",
    uses=frozenset({"block"}),
    stop=None,
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
    """Run rung 15 with sums in the type of X."""
    on = Placed(X, centers, block, order="F")
    sums, counts = zeros(centers.shape, X.dtype), zeros(len(centers), "int32")
    held = capacity(centers)
    shared = held * centers[0].nbytes

    def assign() -> None:
        assign_and_add[on.blocks, block, 0, shared](
            on.X, on.centers, held, on.labels, on.changed, sums, counts
        )
        cuda.synchronize()

    def means() -> None:
        divide[ceil_div(len(centers), block), block](sums, counts, on.centers)
        cuda.synchronize()

    return on.descend(assign, means, rule, max_iter)
