"""Rung 22: assignment and masked trees in one kernel, and a tree over the blocks (A's "CUDA 3").

What changed from rung 15: no atomic additions.  The kernel that labels the points ("fine") also
adds them up.  A block goes through the clusters: each thread puts the coordinates of its point and
a 1 into shared memory if the point is a member, else zeros, and one tree adds the coordinates and
the count together.  Every block writes a row of k sums.  A second kernel ("coarse") is one block,
in which neighbouring threads have neighbouring clusters of a row; its tree halves the rows until it
comes to stride k, so that k sums are left, and divides.

Why it should help: the additions of a block take log2(block) steps, where atomic ones to one
address come after another.  But a block does them for every cluster, members or none, so the time
grows with k, and the coarse kernel keeps one multiprocessor busy and all others idle.

A tried this to get rid of additions that wait for each other: its 300 iterations at n = 100,000
went from 61.1 to 17.1 ms, nearly 16 times as fast as its sequential program.

A starts k threads a block in the coarse kernel, which mixes clusters unless the number of blocks is
a power of two, and more than 1024 cannot be started.  Here the block has as many rows as fit, a
power of two, and a thread first adds up what is left over.  A's coarse kernel divides the sums of
the first block by its count; here it divides the sums of all.  An empty cluster keeps its centre.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lloydia.ladder.device import LARGE_BLOCKS, SHARED_BYTES, Kernels, Placed, cuda
from lloydia.ladder.nearest import tally
from lloydia.ladder.rung import About, Outcome
from lloydia.ladder.staging import capacity, nearest_staged
from lloydia.stopping import Rule

ABOUT = About(
    "assignment and masked trees in one kernel, then a tree over blocks",
    "A",
    "cuda",
    uses=frozenset({"block"}),
    stop=None,
)

THREADS = 1024  # at most in the block of the coarse kernel


def fit(
    X: NDArray,
    centers: NDArray,
    *,
    rule: Rule | None,
    max_iter: int,
    threads: int = 1,
    block: int = 1024,
    by_kernel: bool = False,
) -> Outcome:
    """Run Lloyd's method with sums by masked trees; `by_kernel` times its two kernels apart."""
    on = Placed(X, centers, block, order="F")
    run = Kernels(timed=by_kernel)
    k, d = centers.shape
    sums = cuda.device_array((d, on.blocks, k), X.dtype)
    counts = cuda.device_array((on.blocks, k), np.int32)
    held, some = capacity(centers), features_at_once(X, block, taken=block * X.itemsize)
    shared = max(held * centers[0].nbytes, (some + 1) * block * X.itemsize)
    clusters = min(k, THREADS)
    rows = rows_at_once(on.blocks, clusters)
    fewer = features_at_once(X, rows * clusters, taken=4 * THREADS)
    room = fewer * rows * clusters * X.itemsize

    def assign() -> None:
        counting = rule is not None
        todo = on.X, on.centers, held, some, on.labels, counting, on.changed, sums, counts
        run("fine", fine, (on.blocks, block, 0, shared), *todo)

    def means() -> None:
        grid = 1, rows * clusters, 0, room
        run("coarse", coarse, grid, sums, counts, clusters, fewer, on.centers)

    return replace(on.descend(assign, means, rule, max_iter), phases=run.seconds())


def features_at_once(X: NDArray, threads: int, *, taken: int) -> int:
    """Return how many features, a number a thread each, fit into what is left of shared memory."""
    return min(X.shape[1], (SHARED_BYTES - taken) // (threads * X.itemsize))


def rows_at_once(blocks: int, clusters: int) -> int:
    """Return the largest power of two of rows that one block has threads for, or that there are."""
    most = min(THREADS // clusters, 2 * blocks - 1)
    return 1 << (most.bit_length() - 1)


@cuda.jit(**LARGE_BLOCKS)
def fine(X, centers, held, some, labels, counting, changed, sums, counts):
    """Label every point, and write the sums and counts of all clusters in this block of points.

    `some` features at a time are in shared memory beside the members.
    """
    shared = cuda.shared.array(0, X.dtype)
    i, t, b, block = cuda.grid(1), cuda.threadIdx.x, cuda.blockIdx.x, cuda.blockDim.x
    (n, d), k = X.shape, centers.shape[0]
    zero, one = X.dtype.type(0), X.dtype.type(1)
    best = nearest_staged(X, i, centers, shared, held)
    moved = False
    if i < n:
        moved = labels[i] != best
        labels[i] = best
    if counting:
        tally(moved, changed)
    cuda.syncthreads()  # All have read the last centres before sums take their place.
    for j in range(k):
        member = i < n and best == j
        for first in range(0, d, some):
            width = min(some, d - first)
            shared[t] = one if member else zero
            for f in range(width):
                shared[(f + 1) * block + t] = X[i, first + f] if member else zero
            fold(shared, t, block, width + 1, 1)
            if t == 0:
                counts[b, j] = shared[0]
                for f in range(width):
                    sums[first + f, b, j] = shared[(f + 1) * block]
            cuda.syncthreads()


@cuda.jit(**LARGE_BLOCKS)
def coarse(sums, counts, clusters, some, centers):
    """Add up the rows of all blocks, and divide: one block, a thread a row and cluster.

    `clusters` at a time have threads, and `some` features at a time are in shared memory.
    """
    shared = cuda.shared.array(0, sums.dtype)
    members = cuda.shared.array(THREADS, np.int32)
    t, size = cuda.threadIdx.x, cuda.blockDim.x
    k, d = centers.shape
    row = t // clusters
    rows = size // clusters
    for begin in range(0, k, clusters):
        j = begin + t - row * clusters
        own = np.int32(0)
        if j < k:
            for b in range(row, counts.shape[0], rows):
                own += counts[b, j]
        members[t] = own
        fold(members, t, size, 1, clusters)
        for first in range(0, d, some):
            width = min(some, d - first)
            for f in range(width):
                total = sums.dtype.type(0)
                if j < k:
                    for b in range(row, counts.shape[0], rows):
                        total += sums[first + f, b, j]
                shared[f * size + t] = total
            fold(shared, t, size, width, clusters)
            if t < clusters and j < k and members[t] > 0:
                for f in range(width):
                    centers[j, first + f] = shared[f * size + t] / members[t]
            cuda.syncthreads()


@cuda.jit(device=True)
def fold(numbers, t, size, arrays, last):
    """Fold `arrays` of `size` numbers each, which lie one after the other, until `last` are left.

    All threads of the block come here, once each has written its numbers.
    """
    cuda.syncthreads()
    stride = size // 2
    while stride >= last:
        if t < stride:
            for a in range(arrays):
                numbers[a * size + t] += numbers[a * size + t + stride]
        stride //= 2
        cuda.syncthreads()
