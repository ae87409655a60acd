"""Rung 22: sums by masked trees in shared memory, one row a block, as A ends ("CUDA 3").

What changed from rung 15: no atomic additions.  A first kernel labels the points.  In a second
("fine") every block goes through the clusters: threads whose point is a member hold its coordinate,
others 0, and a tree in shared memory adds them; the sums and counts of all clusters are a row of
partial sums a block.  In a third ("coarse") one block adds the rows and divides.

Why it should help: the additions of a block take log2(block) steps, where atomic ones to one
address come after another.  A block does them for every cluster, members or none, so the time grows
with k, and the coarse kernel keeps one multiprocessor busy and all others idle: it is for few
clusters, and for rows that one block gets through.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lloydia.ladder.blocks import block_sum
from lloydia.ladder.device import Placed, cuda
from lloydia.ladder.r16_tree_lloyd import assign
from lloydia.ladder.rung import About, Outcome
from lloydia.stopping import Rule

ABOUT = About("masked trees, fine and coarse", "A", "cuda", uses=frozenset({"block"}), stop=None)


def fit(
    X: NDArray,
    centers: NDArray,
    *,
    rule: Rule | None,
    max_iter: int,
    threads: int = 1,
    block: int = 256,
) -> Outcome:
    """Run Lloyd's method with sums by masked trees."""
    (n, d), k = X.shape, len(centers)
    on = Placed(X, centers, block, order="F")
    flags = cuda.device_array(n, np.bool_)
    sums = cuda.device_array((k * d, on.blocks), X.dtype)
    counts = cuda.device_array((k + 1, on.blocks), np.int32)
    n_flags = cuda.device_array(1, np.int32)
    shared = block * X.dtype.itemsize

    def scan() -> None:
        assign[on.blocks, block](on.X, on.centers, on.labels, flags)

    def means() -> None:
        fine[on.blocks, block, 0, shared](on.X, on.labels, flags, sums, counts)
        coarse[1, block, 0, shared](sums, counts, on.centers, n_flags)

    return on.descend(scan, means, rule, max_iter, n_changed=lambda: int(n_flags.copy_to_host()[0]))


@cuda.jit
def fine(X, labels, flags, sums, counts):
    """Write the sums and counts of all clusters in this block of points, and count its flags."""
    part = cuda.shared.array(0, X.dtype)
    i, b, t, d = cuda.grid(1), cuda.blockIdx.x, cuda.threadIdx.x, X.shape[1]
    k = counts.shape[0] - 1
    inside = i < X.shape[0]
    for j in range(k):
        member = inside and labels[i] == j
        count = cuda.syncthreads_count(np.int32(member))
        if t == 0:
            counts[j, b] = count
        for f in range(d):
            total = block_sum(part, X[i, f] if member else X.dtype.type(0))
            if t == 0:
                sums[j * d + f, b] = total
    moved = cuda.syncthreads_count(np.int32(inside and flags[i]))
    if t == 0:
        counts[k, b] = moved


@cuda.jit
def coarse(sums, counts, centers, n_flags):
    """Add the rows of all blocks, and divide, in one block."""
    part = cuda.shared.array(0, sums.dtype)
    whole = cuda.shared.array(1024, np.int32)
    k, d = centers.shape
    for j in range(k + 1):
        count = block_sum(whole, strided_sum(counts, j))
        if j == k:
            n_flags[0] = count
        for f in range(d if j < k else 0):
            total = block_sum(part, strided_sum(sums, j * d + f))
            if count > 0 and cuda.threadIdx.x == 0:
                centers[j, f] = total / count


@cuda.jit(device=True)
def strided_sum(numbers, r):
    """Return the sum of every so many numbers of a row, a thread's share of it."""
    own = numbers.dtype.type(0)
    for b in range(cuda.threadIdx.x, numbers.shape[1], cuda.blockDim.x):
        own += numbers[r, b]
    return own
