"""Rung 24: an array for one cluster at a time, reduced again and again (D, "fastCudaKmeans 1.0").

What changed from rung 64: no atomic additions.  The assignment only labels.  Then the host goes
through the clusters: a kernel fills an array with the points of the cluster, and zeros where a
point belongs to another; repeated reductions add it up (:mod:`reductions`); a last kernel divides.
The host waits for each of these kernels before it starts the next.

Why it should help: the additions of a block take log2(block) steps, where atomic ones to one
address come after another.  But every cluster costs a pass over all points that writes as much as
the points take, a pass that reads it, and some six launches that the host waits for.

D replaced the atomic additions by the reduction that Harris describes, and its run gained less than
expected, and sometimes lost.  It compares the step with making a race car a little smoother and
twice as heavy, and goes on to rung 25.
"""

from __future__ import annotations

from numpy.typing import NDArray

from lloydia.ladder.device import Placed, cuda
from lloydia.ladder.r14_shared_centers import assign
from lloydia.ladder.reductions import Reduction
from lloydia.ladder.rung import About, Outcome
from lloydia.ladder.staging import capacity
from lloydia.stopping import Rule

ABOUT = About(
    "an array for each cluster in turn, reduced", "D", "cuda", uses=frozenset({"block"}), stop=None
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
    """Run Lloyd's method with an array that is filled and reduced for each cluster."""
    (n, d), k = X.shape, len(centers)
    on = Placed(X, centers, block, order="F")
    cluster = Reduction(1, d, n, X.dtype, block)
    held = capacity(centers)
    shared = held * centers[0].nbytes

    def scan() -> None:
        assign[on.blocks, block, 0, shared](on.X, on.centers, held, on.labels, on.changed)
        cuda.synchronize()

    def means() -> None:
        for j in range(k):
            populate[on.blocks, block](on.X, on.labels, j, cluster.values, cluster.members)
            cuda.synchronize()
            cluster.add()
            divide[1, 32](cluster.sums, cluster.counts, on.centers[j : j + 1])
            cuda.synchronize()

    return on.descend(scan, means, rule, max_iter)


@cuda.jit
def populate(X, labels, cluster, values, members):
    """Write the points of a cluster, and zeros for the others, a thread a point."""
    i = cuda.grid(1)
    if i < X.shape[0]:
        write(X, i, labels[i] == cluster, values, members, 0)


@cuda.jit(device=True)
def write(X, i, member, values, members, j):
    """Write a point into a cluster's array, or zeros if it is no member."""
    members[j, i] = 1 if member else 0
    for f in range(X.shape[1]):
        values[j, f, i] = X[i, f] if member else X.dtype.type(0)


@cuda.jit
def divide(sums, counts, centers):
    """Make sums centres, a thread a cluster; that of an empty cluster stays."""
    j = cuda.grid(1)
    if j < centers.shape[0] and counts[j, 0] > 0:
        for f in range(centers.shape[1]):
            centers[j, f] = sums[j, f, 0] / counts[j, 0]
