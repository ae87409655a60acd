"""Rung 19: Lloyd's method by chunks in shared memory, as T has it (CUDA, shared memory).

T brings chunks of centres, and for the means chunks of points, into shared memory, and reduces what
the chunks gave block by block in shared memory.  It bought 1.4 to 1.6 times the speed of global
memory in float64 and 1.8 to 2 times in float32, with blocks of 64 and 256 threads but not of 1024.

What changed from rung 16: centres are compared with in shared memory, every chunk by blocks of its
own, and a block for every point reduces the chunks' triples (:mod:`chunks`); sums come from chunks
of points (:mod:`point_chunks`), and they and the flags go up by blocks (:mod:`folds`).

Why it should help: the (cluster x point) array is never stored, and most levels of a tree are
barriers of a block where they were launches.  But the reduction of the triples takes a whole block
for every point, however few chunks there are; so small blocks are better, and k up to the block
size, one chunk, gains nothing from it.
"""

from __future__ import annotations

from numpy.typing import NDArray

from lloydia.ladder.chunks import Chunks, fold_triples, two_nearest_staged
from lloydia.ladder.device import Placed, cuda
from lloydia.ladder.folds import FlagFold
from lloydia.ladder.point_chunks import PointChunks
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
    """Run Lloyd's method with chunks of centres and of points in shared memory."""
    on = Placed(X, centers, block)
    chunks, flags, means = Chunks(on), FlagFold(len(X), block), PointChunks(on).means

    def scan() -> None:
        compare[chunks.scan](on.X, on.centers, chunks.held, chunks.nearest, chunks.distances)
        chunks.fold(settle, on.labels, flags.flags)

    return on.descend(scan, means, rule, max_iter, n_changed=flags.count)


@cuda.jit
def compare(X, centers, held, nearest, distances):
    """Find the triple of every point among one chunk of centres."""
    staged = cuda.shared.array(0, X.dtype)
    i, c = cuda.grid(1), cuda.blockIdx.y
    first = c * held
    count = min(held, centers.shape[0] - first)
    stage(centers, first, count, staged)
    if i < X.shape[0]:
        best, least, second = two_nearest_staged(X, i, staged, first, count)
        nearest[0, i, c], distances[0, i, c], distances[1, i, c] = best, least, second


@cuda.jit
def settle(nearest, distances, m, labels, flags):
    """Fold the triples of a point, a block a point; the last fold gives the label and the flag."""
    numbers = cuda.shared.array(0, distances.dtype)
    best, _, _ = fold_triples(nearest, distances, m, numbers)
    if cuda.gridDim.y == 1 and cuda.threadIdx.x == 0:
        raise_flag(flags, labels, cuda.blockIdx.x, best)
