"""Rung 19: Lloyd's method by chunks of centres in shared memory, as T has it (CUDA, shared memory).

What changed from rung 16: centres are compared with in shared memory, a chunk at a time and every
chunk by blocks of its own (:mod:`chunks`), and sums go up by blocks in shared memory
(:mod:`blocks`), not by levels in global memory.

Why it should help: the (cluster x point) array is never stored, and some forty launches become ten.
With many centres the chunks of one point are compared at the same time; with few there is one
chunk, and what is left of the first idea is that centres are near.
"""

from __future__ import annotations

from numpy.typing import NDArray

from lloydia.ladder.blocks import BlockSums
from lloydia.ladder.chunks import Chunks, merge, mine, two_nearest_staged
from lloydia.ladder.device import Placed, cuda
from lloydia.ladder.rung import About, Outcome
from lloydia.ladder.staging import stage
from lloydia.ladder.trees import raise_flag
from lloydia.stopping import Rule

ABOUT = About("Lloyd, chunks in shared memory", "T", "cuda", uses=frozenset({"block"}))


def fit(
    X: NDArray,
    centers: NDArray,
    *,
    rule: Rule | None,
    max_iter: int,
    threads: int = 1,
    block: int = 256,
) -> Outcome:
    """Run Lloyd's method with chunks of centres and sums by blocks in shared memory."""
    on = Placed(X, centers, block)
    chunks, sums = Chunks(on), BlockSums(on)

    def scan() -> None:
        compare[chunks.scan](on.X, on.centers, chunks.held, *chunks.triples)
        settle[chunks.merge](*chunks.triples, chunks.lanes, on.X, on.labels, sums.flags)

    return on.descend(scan, sums.means, rule, max_iter, n_changed=sums.n_flags)


@cuda.jit
def compare(X, centers, held, nearest, least, second):
    """Find the triple of every point among one chunk of centres."""
    staged = cuda.shared.array(0, X.dtype)
    i, c = cuda.grid(1), cuda.blockIdx.y
    first = c * held
    count = min(held, centers.shape[0] - first)
    stage(centers, first, count, staged)
    if i < X.shape[0]:
        nearest[c, i], least[c, i], second[c, i] = two_nearest_staged(X, i, staged, first, count)


@cuda.jit
def settle(nearest, least, second, lanes, X, labels, flags):
    """Reduce the triples of every point to its label, and flag those that changed."""
    numbers = cuda.shared.array(0, X.dtype)
    i, lane = mine(lanes)
    best, _, _ = merge(nearest, least, second, i, lane, lanes, numbers)
    if lane == 0 and i < labels.shape[0]:
        raise_flag(flags, labels, i, best)
