"""Rung 26: rung 15 with sums of its own for every thread, as B suggests.

What changed from rung 15: a thread takes many points, and adds each to sums and counts that no
other thread writes, so nothing is atomic.  Repeated reductions then add up the threads' sums, as in
rung 23.  There are as many threads as 256 MiB hold the sums of.

Why it should help: additions to one address no longer wait for each other.  But each thread has
k (d + 1) numbers in global memory, which are set to zero, read and written at scattered places, and
reduced in every iteration.

B only suggests it, and doubts that it is worth the effort: a buffer a thread, reduced later, in
place of the atomic additions.  So there is no figure of B's to compare with.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lloydia.ladder.device import LARGE_BLOCKS, Placed, ceil_div, cuda
from lloydia.ladder.r10_naive import relabel
from lloydia.ladder.r23_unrolled import ADDS, reduce_rows
from lloydia.ladder.rung import About, Outcome
from lloydia.ladder.staging import capacity, nearest_staged
from lloydia.ladder.trees import MOST_ROWS, divide
from lloydia.stopping import Labels, Rule

ABOUT = About(
    "sums of its own for every thread", "B", "cuda", uses=frozenset({"block"}), stop=Labels(0.001)
)

BUFFER_BYTES = 2**28


def fit(
    X: NDArray,
    centers: NDArray,
    *,
    rule: Rule | None,
    max_iter: int,
    threads: int = 1,
    block: int = 256,
) -> Outcome:
    """Run Lloyd's method with a buffer for every thread."""
    k, d = centers.shape
    on = Placed(X, centers, block, order="F")
    fit_in = BUFFER_BYTES // (k * (d * X.dtype.itemsize + 4))
    blocks = min(on.blocks, max(1, fit_in // block))
    widths = [blocks * block]
    while widths[-1] > 1:
        widths.append(ceil_div(widths[-1], block * ADDS))
    sums = [cuda.device_array((k * d, width), X.dtype) for width in widths]
    counts = [cuda.device_array((k, width), np.int32) for width in widths]
    held = capacity(centers)
    shared = held * centers[0].nbytes

    def scan() -> None:
        assign_and_add[blocks, block, 0, shared](
            on.X, on.centers, held, on.labels, on.changed, sums[0], counts[0]
        )

    def means() -> None:
        for rows in (sums, counts):
            for numbers, fewer in pairwise(rows):
                height, width = fewer.shape
                reduce_rows[(width, min(height, MOST_ROWS)), block](numbers, fewer)
        divide[ceil_div(k, block), block](sums[-1], counts[-1], 0, k, on.centers)

    return on.descend(scan, means, rule, max_iter)


@cuda.jit(**LARGE_BLOCKS)
def assign_and_add(X, centers, held, labels, changed, sums, counts):
    """Label every so many points and add them to this thread's sums, which begin at zero."""
    staged = cuda.shared.array(0, X.dtype)
    t, d = cuda.grid(1), X.shape[1]
    for j in range(counts.shape[0]):
        counts[j, t] = 0
        for f in range(d):
            sums[j * d + f, t] = 0
    for first in range(0, X.shape[0], counts.shape[1]):
        i = first + t
        best = nearest_staged(X, i, centers, staged, held)
        if i < X.shape[0]:
            relabel(labels, i, best, changed)
            counts[best, t] += 1
            for f in range(d):
                sums[best * d + f, t] += X[i, f]
