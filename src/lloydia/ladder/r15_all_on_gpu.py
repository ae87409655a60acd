"""Rung 15: rung 14 with the means on the GPU, as B ends ("all on GPU"), and A's "CUDA 2".

What changed from rung 14: the assignment adds each point to its cluster by atomic additions, as
rung 12 does, and a second kernel divides.  Of all that the iteration finds, only the number of
changed labels leaves the GPU.  It is also rung 12 with one thing more: centres in shared memory.

Why it should help: in rungs 10, 13 and 14 the host's pass over the points and the way of the labels
to it take most of the time.  Both are gone.

B moved the means to the GPU, and its run became more than twice as fast as those of its other
versions.  A put the centres into shared memory, which took its 300 iterations at n = 100,000 from
75.2 to 61.1 ms.  D's "cudaKmeans" is this too, but for three things that rung 64 has.

Sums are float64 whatever the type of X, for the reason that rung 12 gives.
"""

from __future__ import annotations

from dataclasses import replace

from numpy.typing import NDArray

from lloydia.ladder.device import LARGE_BLOCKS, Kernels, Placed, ceil_div, cuda, zeros
from lloydia.ladder.r10_naive import relabel
from lloydia.ladder.r11_distance_matrix import divide
from lloydia.ladder.r12_atomics import add
from lloydia.ladder.rung import About, Outcome
from lloydia.ladder.staging import capacity, nearest_staged
from lloydia.stopping import Labels, Rule

ABOUT = About(
    "all on the GPU: shared centres, atomic sums",
    "AB",
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
    by_kernel: bool = False,
) -> Outcome:
    """Run Lloyd's method with staged centres and atomic sums; `by_kernel` times its two kernels."""
    on = Placed(X, centers, block, order="F")
    run = Kernels(timed=by_kernel)
    sums, counts = zeros(centers.shape, "float64"), zeros(len(centers), "int32")
    held = capacity(centers)
    shared = held * centers[0].nbytes

    def assign() -> None:
        todo = on.X, on.centers, held, on.labels, on.changed, sums, counts
        run("assign and add", assign_and_add, (on.blocks, block, 0, shared), *todo)

    def means() -> None:
        grid = ceil_div(len(centers), block), block
        run("divide", divide, grid, sums, counts, on.centers)

    return replace(on.descend(assign, means, rule, max_iter), phases=run.seconds())


@cuda.jit(**LARGE_BLOCKS)
def assign_and_add(X, centers, held, labels, changed, sums, counts):
    """Label every point and add it to its cluster, a thread a point."""
    staged = cuda.shared.array(0, X.dtype)
    i = cuda.grid(1)
    best = nearest_staged(X, i, centers, staged, held)
    if i < X.shape[0]:
        relabel(labels, i, best, changed)
        add(X, i, best, sums, counts)
