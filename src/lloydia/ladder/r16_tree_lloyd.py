"""Rung 16: Lloyd's method with trees in global memory, as T has it (CUDA, global memory).

T gives each point a thread, and finds by reductions in global memory, one launch a level, whether
a label changed and where the centres go.  It bought a solver that beats scikit-learn with blocks of
64 and 256 threads.

What changed from rung 12: no atomic additions.  The assignment flags the points that changed, and a
tree adds the flags (T's takes their minimum, with the same loads and launches).  Every point is
written into an array with a row for each coordinate and each cluster, as itself in its own
cluster's rows and as 0 in the others, and trees add the rows; the last level divides
(:mod:`trees`).

Why it should help: additions that wait for each other become additions that do not.  It costs
n k (d + 1) numbers of memory traffic where rung 12 wrote n labels, and some forty launches an
iteration.
"""

from __future__ import annotations

from numpy.typing import NDArray

from lloydia.ladder.device import Placed, cuda
from lloydia.ladder.nearest import nearest
from lloydia.ladder.rung import About, Outcome
from lloydia.ladder.trees import ClusterTrees, FlagTree, raise_flag
from lloydia.stopping import Rule

ABOUT = About("Lloyd, trees in global memory", "T", "cuda", uses=frozenset({"block"}))


def fit(
    X: NDArray,
    centers: NDArray,
    *,
    rule: Rule | None,
    max_iter: int,
    threads: int = 1,
    block: int = 256,
) -> Outcome:
    """Run Lloyd's method with trees in global memory."""
    on = Placed(X, centers, block)
    tree = FlagTree(on)

    def scan() -> None:
        assign[on.blocks, block](on.X, on.centers, on.labels, tree.flags)

    means = ClusterTrees(on).means
    return on.descend(scan, means, rule, max_iter, n_changed=tree.count)


@cuda.jit
def assign(X, centers, labels, flags):
    """Label every point, a thread a point, and flag those that changed."""
    i = cuda.grid(1)
    if i < X.shape[0]:
        raise_flag(flags, labels, i, nearest(X, i, centers))
