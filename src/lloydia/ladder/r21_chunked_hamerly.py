"""Rung 21: Hamerly's method on rung 19, as T has it.

T keeps one lower bound a point, so that the bounds take no chunks: shared memory holds the largest
movement of a centre for them, itself found by a reduction in shared memory.  It bought the fastest
of all of T's solvers in float64 with blocks of 64 and 256 threads; in float32 rung 19 is faster.

What changed from rung 20: that bound.  It is why a chunk gives the second distance too: the least
of all that are not the nearest, over all chunks, is the bound.

Why it should help: as rung 18; two bounds a point are hardly any traffic.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
from numpy.typing import NDArray

from lloydia.ladder.bounds import margins
from lloydia.ladder.chunks import Chunks, fold_triples, two_nearest_staged
from lloydia.ladder.device import Placed, cuda
from lloydia.ladder.folds import FlagFold, LargestFold
from lloydia.ladder.point_chunks import PointChunks
from lloydia.ladder.r18_tree_hamerly import follow_both
from lloydia.ladder.rung import About, Outcome
from lloydia.ladder.staging import stage
from lloydia.ladder.trees import raise_flag
from lloydia.stopping import Rule

ABOUT = About("Hamerly, chunks in shared memory", "T", "cuda", "hamerly", uses=frozenset({"block"}))


def fit(
    X: NDArray,
    centers: NDArray,
    *,
    rule: Rule | None,
    max_iter: int,
    threads: int = 1,
    block: int = 256,
) -> Outcome:
    """Run Hamerly's method with chunks of centres and of points in shared memory."""
    n, d = X.shape
    on = Placed(X, centers, block)
    chunks, flags, sums = Chunks(on), FlagFold(n, block), PointChunks(on)
    moves = LargestFold(sums.moved, block)
    upper, lower = cuda.device_array(n, X.dtype), cuda.device_array(n, X.dtype)
    marked = cuda.device_array(n, np.bool_)
    widths = margins(d, X.dtype)

    def scan() -> None:
        follow[on.blocks, block](
            on.labels, sums.moved, moves.largest, *widths, upper, lower, marked
        )
        compare[chunks.scan](
            *(on.X, on.centers, chunks.held, marked),
            *(chunks.nearest, chunks.distances, flags.flags),
        )
        chunks.fold(settle, marked, upper, lower, on.labels, flags.flags)

    def means() -> None:
        sums.means()
        moves.find()

    return on.descend(scan, means, rule, max_iter, n_changed=flags.count)


@cuda.jit
def follow(labels, moved, largest, wide, narrow, upper, lower, marked):
    """Let both bounds follow the centres, and mark the points that they leave in doubt."""
    most = cuda.shared.array(1, moved.dtype)
    i = cuda.grid(1)
    if cuda.threadIdx.x == 0:
        most[0] = largest[0]
    cuda.syncthreads()
    if i < labels.shape[0]:
        follow_both(i, labels, moved, most[0], wide, narrow, upper, lower, marked)


@cuda.jit
def compare(X, centers, held, marked, nearest, distances, flags):
    """Find the triple of every marked point among one chunk of centres."""
    staged = cuda.shared.array(0, X.dtype)
    i, c = cuda.grid(1), cuda.blockIdx.y
    first = c * held
    count = min(held, centers.shape[0] - first)
    stage(centers, first, count, staged)
    if i >= X.shape[0]:
        return
    if not marked[i]:
        if c == 0:
            flags[i] = 0
        return
    best, least, second = two_nearest_staged(X, i, staged, first, count)
    nearest[0, i, c], distances[0, i, c], distances[1, i, c] = best, least, second


@cuda.jit
def settle(nearest, distances, m, marked, upper, lower, labels, flags):
    """Fold the triples of a marked point; the last fold gives the label and both bounds."""
    numbers = cuda.shared.array(0, distances.dtype)
    i = cuda.blockIdx.x
    if not marked[i]:
        return
    best, D, rival = fold_triples(nearest, distances, m, numbers)
    if cuda.gridDim.y == 1 and cuda.threadIdx.x == 0:
        upper[i], lower[i] = sqrt(D), sqrt(rival)
        raise_flag(flags, labels, i, best)
