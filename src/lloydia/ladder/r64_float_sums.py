"""Rung 64: rung 15 with sums in the type of the points, as D's "cudaKmeans" has them.

What changed from rung 15: the sums are float32 where the points are; each coordinate has an array
of sums of its own, as in D's algorithm 5; and the host waits for each of the two kernels before it
starts the next.

Why it should help: it moves half the bytes.  But a float32 has 24 bits, so a sum of millions of
numbers no longer takes up the last digits of what is added, and the order of atomic additions
decides which.  The ladder asks for 1e-4 of the largest value; with 10 million pixels and 7 clusters
centres were off by 6e-4.

Where the sums lie may matter with few clusters.  Row after row, the six sums of two clusters lie in
one sector of memory (32 bytes), and one slice of the L2 cache does all additions to it; with an
array for each coordinate, several slices can share them.

D gave each pixel a thread, put the centres into shared memory and added by atomics: 10 million
pixels at k = 2 took 3.87 s where its sequential program took 74 s.  It says that the assignment had
half the speed with centres in global memory, and that the sums are what is left to improve.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from lloydia.ladder.device import LARGE_BLOCKS, Placed, ceil_div, cuda, zeros
from lloydia.ladder.r10_naive import relabel
from lloydia.ladder.rung import About, Outcome
from lloydia.ladder.staging import capacity, nearest_staged
from lloydia.stopping import Rule

ABOUT = About(
    "shared centres, atomic sums in the points' type",
    "D",
    "cuda",
    uses=frozenset({"block"}),
    stop=None,
)

APART = 512  # bytes, from which on arrays that are allocated one by one begin


def fit(
    X: NDArray,
    centers: NDArray,
    *,
    rule: Rule | None,
    max_iter: int,
    threads: int = 1,
    block: int = 256,
) -> Outcome:
    """Run rung 15 with sums in the type of X, an array for each coordinate."""
    on = Placed(X, centers, block, order="F")
    sums, counts = apart(centers), zeros(len(centers), "int32")
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


def apart(centers: NDArray) -> Any:
    """Return zeros of shape (d, k or more) on the GPU, rows `APART` bytes or more apart."""
    k, d = centers.shape
    size = centers.dtype.itemsize
    return zeros((d, ceil_div(k * size, APART) * APART // size), centers.dtype)


@cuda.jit(**LARGE_BLOCKS)
def assign_and_add(X, centers, held, labels, changed, sums, counts):
    """Label every point and add it to its cluster, a thread a point."""
    staged = cuda.shared.array(0, X.dtype)
    i = cuda.grid(1)
    best = nearest_staged(X, i, centers, staged, held)
    if i < X.shape[0]:
        relabel(labels, i, best, changed)
        for f in range(X.shape[1]):
            cuda.atomic.add(sums, (f, best), X[i, f])
        cuda.atomic.add(counts, best, 1)


@cuda.jit
def divide(sums, counts, centers):
    """Make sums centres, a thread a cluster, and set them to zero for the next iteration."""
    j = cuda.grid(1)
    if j < counts.shape[0]:
        for f in range(centers.shape[1]):
            if counts[j] > 0:
                centers[j, f] = sums[f, j] / counts[j]
            sums[f, j] = 0
        counts[j] = 0
