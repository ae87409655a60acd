"""Rung 20: Elkan's method on rung 19, as T has it.

T moves the lower bounds by chunks of centres too, each of which has a flag for every point that is
set at the first bound that fails, and reduces a point's flags by maximum in shared memory.  It
bought the same 1.4 to 1.6 times over global memory in float64 and 1.8 to 2 in float32; with blocks
of 1024 it is faster than rung 21 in float64.

What changed from rung 19: the bounds, of which the upper ones move in a kernel of their own.  The
points marked are compared with each chunk, which writes its lower bounds.

Why it should help: as rung 17, and chunks of one point are looked through at the same time.  But
the first bound that fails ends the loop over its own chunk only, and the flags take another
reduction with a block for every point.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
from numpy.typing import NDArray

from lloydia.ladder.bounds import follow_lower, follow_upper, margins
from lloydia.ladder.chunks import Chunks, fold_triples
from lloydia.ladder.device import Placed, cuda
from lloydia.ladder.folds import FlagFold, Fold, fold_largest
from lloydia.ladder.point_chunks import PointChunks
from lloydia.ladder.rung import About, Outcome
from lloydia.ladder.staging import distance_to_staged, stage
from lloydia.ladder.trees import raise_flag
from lloydia.stopping import Rule

ABOUT = About("Elkan, chunks in shared memory", "T", "cuda", "elkan", uses=frozenset({"block"}))


def fit(
    X: NDArray,
    centers: NDArray,
    *,
    rule: Rule | None,
    max_iter: int,
    threads: int = 1,
    block: int = 256,
) -> Outcome:
    """Run Elkan's method with chunks of centres and of points in shared memory."""
    (n, d), k = X.shape, len(centers)
    on = Placed(X, centers, block)
    chunks, flags, sums = Chunks(on), FlagFold(n, block), PointChunks(on)
    upper, lower = cuda.device_array(n, X.dtype), cuda.device_array((n, k), X.dtype)
    marked = cuda.device_array((1, n, chunks.count), np.int32)
    marks = Fold(fold_largest, marked, block)
    wide, narrow = margins(d, X.dtype)
    by_chunk = (on.blocks, chunks.count), block, 0, chunks.held * X.dtype.itemsize

    def scan() -> None:
        raise_upper[on.blocks, block](on.labels, sums.moved, wide, upper)
        follow[by_chunk](on.labels, sums.moved, chunks.held, wide, narrow, upper, lower, marked)
        marks.queue()
        compare[chunks.scan](
            *(on.X, on.centers, chunks.held, marked, lower),
            *(chunks.nearest, chunks.distances, flags.flags),
        )
        chunks.fold(settle, marked, upper, on.labels, flags.flags)

    return on.descend(scan, sums.means, rule, max_iter, n_changed=flags.count)


@cuda.jit
def raise_upper(labels, moved, wide, upper):
    """Let all upper bounds follow their centres."""
    i = cuda.grid(1)
    if i < labels.shape[0] and labels[i] >= 0:
        upper[i] = follow_upper(upper[i], moved[labels[i]], wide)


@cuda.jit
def follow(labels, moved, held, wide, narrow, upper, lower, marked):
    """Let a chunk's lower bounds follow its centres up to the first that fails, and mark that."""
    staged = cuda.shared.array(0, moved.dtype)
    i, c = cuda.grid(1), cuda.blockIdx.y
    first = c * held
    count = min(held, moved.shape[0] - first)
    for e in range(cuda.threadIdx.x, count, cuda.blockDim.x):
        staged[e] = moved[first + e]
    cuda.syncthreads()
    if i < labels.shape[0]:
        a = labels[i]
        doubt = a < 0  # Before the first assignment there are no bounds.
        if a >= 0:
            u = upper[i]
            for e in range(count):
                if first + e != a:
                    low = follow_lower(lower[i, first + e], staged[e], wide, narrow)
                    lower[i, first + e] = low
                    if u >= low:  # A tie is a doubt: a lower number might be as near.
                        doubt = True
                        break
        marked[0, i, c] = doubt


@cuda.jit
def compare(X, centers, held, marked, lower, nearest, distances, flags):
    """Find the nearest of one chunk of centres and all its lower bounds, for every marked point."""
    staged = cuda.shared.array(0, X.dtype)
    i, c = cuda.grid(1), cuda.blockIdx.y
    first = c * held
    count = min(held, centers.shape[0] - first)
    stage(centers, first, count, staged)
    if i >= X.shape[0]:
        return
    if marked[0, i, 0] == 0:
        if c == 0:
            flags[i] = 0
        return
    best, D = first, X.dtype.type(np.inf)
    for j in range(count):
        other = distance_to_staged(X, i, staged, j)
        lower[i, first + j] = sqrt(other)
        if other < D:
            best, D = first + j, other
    # The second nearest is asked for by Hamerly's method alone.
    nearest[0, i, c], distances[0, i, c], distances[1, i, c] = best, D, D


@cuda.jit
def settle(nearest, distances, m, marked, upper, labels, flags):
    """Fold the triples of a marked point; the last fold gives the label and the upper bound."""
    numbers = cuda.shared.array(0, distances.dtype)
    i = cuda.blockIdx.x
    if marked[0, i, 0] == 0:
        return
    best, D, _ = fold_triples(nearest, distances, m, numbers)
    if cuda.gridDim.y == 1 and cuda.threadIdx.x == 0:
        upper[i] = sqrt(D)
        raise_flag(flags, labels, i, best)
