"""Rung 21: Hamerly's method on rung 19, as T has it.

What changed from rung 20: one lower bound a point.  It is why a chunk gives the second distance
too: the least of all that are not the nearest, over all chunks, is the bound.

Why it should help: as rung 18; two bounds a point are hardly any traffic.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
from numpy.typing import NDArray

from lloydia.ladder.blocks import BlockSums
from lloydia.ladder.bounds import Moves, margins
from lloydia.ladder.chunks import Chunks, merge, mine, two_nearest_staged
from lloydia.ladder.device import Placed, cuda
from lloydia.ladder.r18_tree_hamerly import follow
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
    """Run Hamerly's method with chunks of centres and sums by blocks in shared memory."""
    n, d = X.shape
    on = Placed(X, centers, block)
    chunks, sums, moves = Chunks(on), BlockSums(on), Moves(on)
    upper, lower = cuda.device_array(n, X.dtype), cuda.device_array(n, X.dtype)
    marked = cuda.device_array(n, np.bool_)
    widths = margins(d, X.dtype)

    def scan() -> None:
        follow[on.blocks, block](
            on.labels, moves.moved, moves.farthest, *widths, upper, lower, marked
        )
        compare[chunks.scan](on.X, on.centers, chunks.held, marked, *chunks.triples)
        settle[chunks.merge](
            *chunks.triples, chunks.lanes, marked, upper, lower, on.labels, sums.flags
        )

    def means() -> None:
        sums.means()
        moves.measure()

    return on.descend(scan, means, rule, max_iter, n_changed=sums.n_flags)


@cuda.jit
def compare(X, centers, held, marked, nearest, least, second):
    """Find the triple of every marked point among one chunk of centres."""
    staged = cuda.shared.array(0, X.dtype)
    i, c = cuda.grid(1), cuda.blockIdx.y
    doubt = i < X.shape[0] and marked[i]
    if not cuda.syncthreads_or(np.int32(doubt)):
        return
    first = c * held
    count = min(held, centers.shape[0] - first)
    stage(centers, first, count, staged)
    if doubt:
        nearest[c, i], least[c, i], second[c, i] = two_nearest_staged(X, i, staged, first, count)


@cuda.jit
def settle(nearest, least, second, lanes, marked, upper, lower, labels, flags):
    """Reduce the triples of every marked point to its label and bounds, and flag changes."""
    numbers = cuda.shared.array(0, upper.dtype)
    i, lane = mine(lanes)
    doubt = i < labels.shape[0] and marked[i]
    if not cuda.syncthreads_or(np.int32(doubt)):
        if lane == 0 and i < labels.shape[0]:
            flags[i] = False
        return
    best, D, rival = merge(nearest, least, second, i, lane, lanes, numbers)
    if lane == 0 and i < labels.shape[0]:
        if doubt:
            upper[i], lower[i] = sqrt(D), sqrt(rival)
        raise_flag(flags, labels, i, best if doubt else labels[i])
