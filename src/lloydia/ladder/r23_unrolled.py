"""Rung 23: reductions unrolled in warps, with several adds a thread and without D's arrays.

What changed from rung 22: four things about the same sums.  A thread first adds up 8 points in a
register, so a block stands for 8 times as many.  Each cluster has blocks of its own, so that none
waits for another.  A warp adds in five steps, written out, without a barrier, and a block in two
such rounds.  And the rows are reduced by as many blocks as they need, again and again, not by one
(Harris 2007, "Optimizing parallel reduction in CUDA").

Why it should help: most threads of a tree are idle in most of its levels, and a barrier costs more
than the addition beside it; here seven of eight additions need neither.

D's own program with these reductions is rung 25, which writes every cluster's pixels into an array
first; it took 0.67 s for 10 million pixels at k = 2, where one thread took 74 s.  At its end D
wishes to keep the reductions and to be rid of the arrays, which is what this rung does.

D lets the lanes of a warp add in shared memory without any barrier.  Since lanes need no longer run
in step (Volta) that is a race; here they hand their numbers over by shuffles.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lloydia.ladder.device import Placed, ceil_div, cuda
from lloydia.ladder.r16_tree_lloyd import assign
from lloydia.ladder.rung import About, Outcome
from lloydia.ladder.trees import MOST_ROWS, divide
from lloydia.stopping import Rule

ABOUT = About("repeated unrolled reductions", "D", "cuda", uses=frozenset({"block"}), stop=None)

ADDS = 8
ALL = 0xFFFFFFFF  # lanes of a warp


def fit(
    X: NDArray,
    centers: NDArray,
    *,
    rule: Rule | None,
    max_iter: int,
    threads: int = 1,
    block: int = 256,
) -> Outcome:
    """Run Lloyd's method with repeated reductions."""
    (n, d), k = X.shape, len(centers)
    on = Placed(X, centers, block, order="F")
    flags = cuda.device_array(n, np.bool_)
    widths = [ceil_div(n, block * ADDS)]
    while widths[-1] > 1:
        widths.append(ceil_div(widths[-1], block * ADDS))
    sums = [cuda.device_array((k * d, width), X.dtype) for width in widths]
    counts = [cuda.device_array((k + 1, width), np.int32) for width in widths]
    root = counts[-1][k]

    def scan() -> None:
        assign[on.blocks, block](on.X, on.centers, on.labels, flags)

    def means() -> None:
        grid = widths[0], min(k + 1, MOST_ROWS)
        reduce_members[grid, block](on.X, on.labels, flags, sums[0], counts[0])
        for rows in (sums, counts):
            for numbers, fewer in pairwise(rows):
                height, width = fewer.shape
                reduce_rows[(width, min(height, MOST_ROWS)), block](numbers, fewer)
        divide[ceil_div(k, block), block](sums[-1], counts[-1], 0, k, on.centers)

    return on.descend(scan, means, rule, max_iter, n_changed=lambda: int(root.copy_to_host()[0]))


@cuda.jit
def reduce_members(X, labels, flags, sums, counts):
    """Add up the members of each cluster in this block of points, and the flags."""
    part = cuda.shared.array(32, X.dtype)
    whole = cuda.shared.array(32, np.int32)
    n, d, k, b = X.shape[0], X.shape[1], counts.shape[0] - 1, cuda.blockIdx.x
    begin, step = b * ADDS * cuda.blockDim.x + cuda.threadIdx.x, cuda.blockDim.x
    end = min(begin + ADDS * step, n)
    for j in range(cuda.blockIdx.y, k + 1, cuda.gridDim.y):
        members = 0
        for i in range(begin, end, step):
            members += flags[i] if j == k else labels[i] == j
        members = block_total(whole, np.int32(members))
        if cuda.threadIdx.x == 0:
            counts[j, b] = members
        for f in range(d if j < k else 0):
            own = X.dtype.type(0)
            for i in range(begin, end, step):
                if labels[i] == j:
                    own += X[i, f]
            own = block_total(part, own)
            if cuda.threadIdx.x == 0:
                sums[j * d + f, b] = own


@cuda.jit
def reduce_rows(numbers, sums):
    """Add up what this block has of each row."""
    part = cuda.shared.array(32, numbers.dtype)
    b, step = cuda.blockIdx.x, cuda.blockDim.x
    begin = b * ADDS * step + cuda.threadIdx.x
    end = min(begin + ADDS * step, numbers.shape[1])
    for r in range(cuda.blockIdx.y, numbers.shape[0], cuda.gridDim.y):
        own = numbers.dtype.type(0)
        for i in range(begin, end, step):
            own += numbers[r, i]
        own = block_total(part, numbers.dtype.type(own))
        if cuda.threadIdx.x == 0:
            sums[r, b] = own


@cuda.jit(device=True)
def block_total(part, own):
    """Return the sum over the block, right in thread 0; `part` is shared, one for each warp."""
    warp, lane = cuda.threadIdx.x // 32, cuda.threadIdx.x % 32
    own = warp_total(own)
    if lane == 0:
        part[warp] = own
    cuda.syncthreads()
    if warp == 0:
        own = warp_total(part[lane] if lane < cuda.blockDim.x // 32 else part.dtype.type(0))
    cuda.syncthreads()  # The first warp has read it before anyone writes the next.
    return own


@cuda.jit(device=True)
def warp_total(own):
    """Return the sum over the warp, right in lane 0."""
    own += cuda.shfl_down_sync(ALL, own, 16)
    own += cuda.shfl_down_sync(ALL, own, 8)
    own += cuda.shfl_down_sync(ALL, own, 4)
    own += cuda.shfl_down_sync(ALL, own, 2)
    own += cuda.shfl_down_sync(ALL, own, 1)
    return own
