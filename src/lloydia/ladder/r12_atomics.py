"""Rung 12: one thread a point for all of it, with atomic sums, as A begins ("CUDA 1").

What changed from rung 11: the thread that finds the nearest centre of a point adds the point to
that cluster's sum and count, by atomic additions in global memory.  A second kernel divides.  The
points lie feature after feature, as A and D store them.

Why it should help: no matrix; a point is read once, and a label written.  The additions are what is
left: those to one cluster queue at one address, n / k of them one after the other, so it is slowest
with few clusters.

D tried this version too, before it put the centres into shared memory (rung 64).  It says that the
assignment had half the speed so.

A divides an empty cluster's sum by one, which moves its centre to 0; here the centre stays.  Sums
are float64 whatever the type of X.  In float32 a sum that takes millions of terms one after the
other loses digits as it grows: at 10 million pixels and 7 clusters, as in D, centres were off by
6e-4 of the largest value.  The trees of rungs 16 to 23 add in the type of X; there it was 2e-7.
"""

from __future__ import annotations

from dataclasses import replace

from numpy.typing import NDArray

from lloydia.ladder.device import Kernels, Placed, ceil_div, cuda, zeros
from lloydia.ladder.nearest import nearest, tally
from lloydia.ladder.r11_distance_matrix import divide
from lloydia.ladder.rung import About, Outcome
from lloydia.stopping import Rule

ABOUT = About("one thread a point, atomic sums", "AD", "cuda", uses=frozenset({"block"}), stop=None)


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
    """Run Lloyd's method with sums by atomic additions; `by_kernel` times its two kernels."""
    on = Placed(X, centers, block, order="F")
    run = Kernels(timed=by_kernel)
    sums, counts = zeros(centers.shape, "float64"), zeros(len(centers), "int32")

    def assign() -> None:
        todo = on.X, on.centers, on.labels, on.changed, sums, counts
        run("assign and add", assign_and_add, (on.blocks, block), *todo)

    def means() -> None:
        grid = ceil_div(len(centers), block), block
        run("divide", divide, grid, sums, counts, on.centers)

    return replace(on.descend(assign, means, rule, max_iter), phases=run.seconds())


@cuda.jit
def assign_and_add(X, centers, labels, changed, sums, counts):
    """Label every point and add it to its cluster, a thread a point."""
    i = cuda.grid(1)
    moved = False
    if i < X.shape[0]:
        best = nearest(X, i, centers)
        moved = labels[i] != best
        labels[i] = best
        add(X, i, best, sums, counts)
    tally(moved, changed)


@cuda.jit(device=True)
def add(X, i, j, sums, counts):
    """Add a point to a cluster."""
    cuda.atomic.add(counts, j, 1)
    for f in range(X.shape[1]):
        cuda.atomic.add(sums, (j, f), X[i, f])
