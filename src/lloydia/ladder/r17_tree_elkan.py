"""Rung 17: Elkan's method on rung 16, as T has it (Elkan 2003).

What changed from rung 16: a point keeps an upper bound on the distance to its centre and k lower
bounds on those to all centres.  A kernel of their own moves the bounds after the centres
(:mod:`bounds`), and marks the points for which one of them fails; the next measures all k distances
of the points marked.  The rest is rung 16.

Why it should help: late iterations mark few points.  But k bounds are read and written for every
point to save k distances, each of which is a few operations on numbers in registers: at two
features memory is busier than before.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
from numpy.typing import NDArray

from lloydia.ladder.bounds import Moves, follow_lower, follow_upper, margins
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
    tree, trees, moves = FlagTree(on), ClusterTrees(on), Moves(on)
    upper, lower = cuda.device_array(n, X.dtype), cuda.device_array((k, n), X.dtype)
    marked = cuda.device_array(n, np.bool_)
    widths = margins(d, X.dtype)

    def scan() -> None:
        follow[on.blocks, block](on.labels, moves.moved, *widths, upper, lower, marked)
        assign[on.blocks, block](on.X, on.centers, on.labels, marked, upper, lower, tree.flags)

    def means() -> None:
        trees.means()
        moves.measure()

    return on.descend(scan, means, rule, max_iter, n_changed=tree.count)


@cuda.jit
def follow(labels, moved, wide, narrow, upper, lower, marked):
    """Let all bounds follow the centres, and mark the points that they leave in doubt."""
    i = cuda.grid(1)
    if i < labels.shape[0]:
        a = labels[i]
        doubt = a < 0  # Before the first assignment there are no bounds.
        if a >= 0:
            u = follow_upper(upper[i], moved[a], wide)
            upper[i] = u
            for j in range(moved.shape[0]):
                low = follow_lower(lower[j, i], moved[j], wide, narrow)
                lower[j, i] = low
                # A tie is a doubt: a lower number might be as near.
                doubt |= j != a and u >= low
        marked[i] = doubt


@cuda.jit
def assign(X, centers, labels, marked, upper, lower, flags):
    """Measure all distances of the marked points, and flag those whose label changed."""
    i = cuda.grid(1)
    if i < X.shape[0]:
        best = labels[i]
        if marked[i]:
            best, least = 0, squared_distance(X, i, centers, 0)
            lower[0, i] = sqrt(least)
            for j in range(1, centers.shape[0]):
                D = squared_distance(X, i, centers, j)
                lower[j, i] = sqrt(D)
                if D < least:
                    best, least = j, D
            upper[i] = sqrt(least)
        raise_flag(flags, labels, i, best)
