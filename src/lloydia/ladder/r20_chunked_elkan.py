"""Rung 20: Elkan's method on rung 19, as T has it.

What changed from rung 19: bounds, as rung 17 added them to rung 16.  The bounds follow the centres
and mark points in a kernel of their own; the threads of marked points compare with each chunk and
write its lower bounds; a block none of whose points is marked ends before it brings a centre.

Why it should help: as rung 17; without that one's trees in global memory the bounds are the larger
part of the traffic that is left.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
from numpy.typing import NDArray

from lloydia.ladder.blocks import BlockSums
from lloydia.ladder.bounds import Moves, margins
from lloydia.ladder.chunks import Chunks, merge, mine
from lloydia.ladder.device import Placed, cuda
from lloydia.ladder.r17_tree_elkan import follow
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
    """Run Elkan's method with chunks of centres and sums by blocks in shared memory."""
    (n, d), k = X.shape, len(centers)
    on = Placed(X, centers, block)
    chunks, sums, moves = Chunks(on), BlockSums(on), Moves(on)
    upper, lower = cuda.device_array(n, X.dtype), cuda.device_array((k, n), X.dtype)
    marked = cuda.device_array(n, np.bool_)
    widths = margins(d, X.dtype)

    def scan() -> None:
        follow[on.blocks, block](on.labels, moves.moved, *widths, upper, lower, marked)
        compare[chunks.scan](on.X, on.centers, chunks.held, marked, lower, *chunks.triples)
        settle[chunks.merge](*chunks.triples, chunks.lanes, marked, upper, on.labels, sums.flags)

    def means() -> None:
        sums.means()
        moves.measure()

    return on.descend(scan, means, rule, max_iter, n_changed=sums.n_flags)


@cuda.jit
def compare(X, centers, held, marked, lower, nearest, least, second):
    """Find the nearest of one chunk of centres and all its lower bounds, for every marked point."""
    staged = cuda.shared.array(0, X.dtype)
    i, c = cuda.grid(1), cuda.blockIdx.y
    doubt = i < X.shape[0] and marked[i]
    if not cuda.syncthreads_or(np.int32(doubt)):
        return
    first = c * held
    count = min(held, centers.shape[0] - first)
    stage(centers, first, count, staged)
    if doubt:
        best, D = first, X.dtype.type(np.inf)
        for j in range(count):
            other = distance_to_staged(X, i, staged, j)
            lower[first + j, i] = sqrt(other)
            if other < D:
                best, D = first + j, other
        # The second nearest is asked for by Hamerly's method alone.
        nearest[c, i], least[c, i], second[c, i] = best, D, D


@cuda.jit
def settle(nearest, least, second, lanes, marked, upper, labels, flags):
    """Reduce the triples of every marked point to its label and upper bound, and flag changes."""
    numbers = cuda.shared.array(0, upper.dtype)
    i, lane = mine(lanes)
    doubt = i < labels.shape[0] and marked[i]
    if not cuda.syncthreads_or(np.int32(doubt)):
        if lane == 0 and i < labels.shape[0]:
            flags[i] = False
        return
    best, D, _ = merge(nearest, least, second, i, lane, lanes, numbers)
    if lane == 0 and i < labels.shape[0]:
        if doubt:
            upper[i] = sqrt(D)
        raise_flag(flags, labels, i, best if doubt else labels[i])
