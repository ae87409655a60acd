"""Rung 18: Hamerly's method on rung 16, as T has it (Hamerly 2010).

T keeps one lower bound a point, on the distance to its second nearest centre, and lowers it by the
largest movement of any centre, which a tree over the centres finds.  It bought the fastest of T's
solvers in global memory in float64, and was slower than rung 16 in float32.

What changed from rung 17: that bound, and the tree.

Why it should help: two bounds a point are read and written, not k + 1, so the memory traffic that
rung 17 added is nearly gone.  The bound is weaker: one centre that moves far marks all points.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
from numpy.typing import NDArray

from lloydia.ladder.bounds import follow_lower, follow_upper, margins
from lloydia.ladder.device import Placed, cuda
from lloydia.ladder.nearest import two_nearest
from lloydia.ladder.rung import About, Outcome
from lloydia.ladder.trees import ClusterTrees, FlagTree, LargestTree, raise_flag
from lloydia.stopping import Rule

ABOUT = About("Hamerly, trees in global memory", "T", "cuda", "hamerly", uses=frozenset({"block"}))


def fit(
    X: NDArray,
    centers: NDArray,
    *,
    rule: Rule | None,
    max_iter: int,
    threads: int = 1,
    block: int = 256,
) -> Outcome:
    """Run Hamerly's method with trees in global memory."""
    n, d = X.shape
    on = Placed(X, centers, block)
    tree, trees = FlagTree(on), ClusterTrees(on)
    moves = LargestTree(trees.moved, block)
    upper, lower = cuda.device_array(n, X.dtype), cuda.device_array(n, X.dtype)
    marked = cuda.device_array(n, np.bool_)
    widths = margins(d, X.dtype)

    def scan() -> None:
        follow[on.blocks, block](
            on.labels, trees.moved, moves.largest, *widths, upper, lower, marked
        )
        assign[on.blocks, block](on.X, on.centers, on.labels, marked, upper, lower, tree.flags)

    def means() -> None:
        trees.means()
        moves.find()

    return on.descend(scan, means, rule, max_iter, n_changed=tree.count)


@cuda.jit
def follow(labels, moved, largest, wide, narrow, upper, lower, marked):
    """Let both bounds follow the centres, and mark the points that they leave in doubt."""
    i = cuda.grid(1)
    if i < labels.shape[0]:
        follow_both(i, labels, moved, largest[0], wide, narrow, upper, lower, marked)


@cuda.jit(device=True)
def follow_both(i, labels, moved, most, wide, narrow, upper, lower, marked):
    """Let both bounds of a point follow the centres, and mark it if they leave it in doubt."""
    a = labels[i]
    doubt = a < 0  # Before the first assignment there are no bounds.
    if a >= 0:
        u = follow_upper(upper[i], moved[a], wide)
        low = follow_lower(lower[i], most, wide, narrow)
        upper[i], lower[i] = u, low
        # A tie is a doubt: a lower number might be as near.
        doubt = u >= low
    marked[i] = doubt


@cuda.jit
def assign(X, centers, labels, marked, upper, lower, flags):
    """Measure all distances of the marked points, and flag those whose label changed."""
    i = cuda.grid(1)
    if i < X.shape[0]:
        best = labels[i]
        if marked[i]:
            best, least, second = two_nearest(X, i, centers)
            upper[i], lower[i] = sqrt(least), sqrt(second)
        raise_flag(flags, labels, i, best)
