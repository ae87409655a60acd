"""Rung 17: Elkan's method on rung 16, as T has it (Elkan 2003).

T moves a point's upper bound and k lower bounds in a kernel of their own, which leaves its loop at
the first bound that fails and marks the point; the next kernel measures all k distances of the
points marked.  It bought T a little over rung 16 in float64 and lost in float32, where reading k
bounds takes longer than measuring k distances.

What changed from rung 16: the bounds (:mod:`bounds`), one array with the k lower bounds of a point
side by side.  The rest is rung 16.

Why it should help: late iterations mark few points.  But up to k bounds are read and written for
every point to save k distances, each of which is a few operations on numbers in registers; and the
threads of a warp read bounds that lie k numbers apart.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
from numpy.typing import NDArray

from lloydia.ladder.bounds import follow_lower, follow_upper, margins
from lloydia.ladder.device import Placed, cuda
from lloydia.ladder.nearest import squared_distance
from lloydia.ladder.rung import About, Outcome
from lloydia.ladder.trees import ClusterTrees, FlagTree, raise_flag
from lloydia.stopping import Rule

ABOUT = About("Elkan, trees in global memory", "T", "cuda", "elkan", uses=frozenset({"block"}))


def fit(
    X: NDArray,
    centers: NDArray,
    *,
    rule: Rule | None,
    max_iter: int,
    threads: int = 1,
    block: int = 256,
) -> Outcome:
    """Run Elkan's method with trees in global memory."""
    (n, d), k = X.shape, len(centers)
    on = Placed(X, centers, block)
    tree, trees = FlagTree(on), ClusterTrees(on)
    upper, lower = cuda.device_array(n, X.dtype), cuda.device_array((n, k), X.dtype)
    marked = cuda.device_array(n, np.bool_)
    widths = margins(d, X.dtype)

    def scan() -> None:
        follow[on.blocks, block](on.labels, trees.moved, *widths, upper, lower, marked)
        assign[on.blocks, block](on.X, on.centers, on.labels, marked, upper, lower, tree.flags)

    return on.descend(scan, trees.means, rule, max_iter, n_changed=tree.count)


@cuda.jit
def follow(labels, moved, wide, narrow, upper, lower, marked):
    """Let the bounds follow the centres up to the first that fails, and mark its point."""
    i = cuda.grid(1)
    if i < labels.shape[0]:
        a = labels[i]
        doubt = a < 0  # Before the first assignment there are no bounds.
        if a >= 0:
            u = follow_upper(upper[i], moved[a], wide)
            upper[i] = u
            for j in range(moved.shape[0]):
                if j != a:
                    low = follow_lower(lower[i, j], moved[j], wide, narrow)
                    lower[i, j] = low
                    if u >= low:  # A tie is a doubt: a lower number might be as near.
                        doubt = True
                        break  # All bounds of the point are measured again.
        marked[i] = doubt


@cuda.jit
def assign(X, centers, labels, marked, upper, lower, flags):
    """Measure all distances of the marked points, and flag those whose label changed."""
    i = cuda.grid(1)
    if i < X.shape[0]:
        best = labels[i]
        if marked[i]:
            best, least = 0, squared_distance(X, i, centers, 0)
            lower[i, 0] = sqrt(least)
            for j in range(1, centers.shape[0]):
                D = squared_distance(X, i, centers, j)
                lower[i, j] = sqrt(D)
                if D < least:
                    best, least = j, D
            upper[i] = sqrt(least)
        raise_flag(flags, labels, i, best)
