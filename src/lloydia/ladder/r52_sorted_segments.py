"""Rung 52: points sorted by label, then one reduction a segment, as A and D suggest.

What changed from rung 22: the rows of the points are sorted by label, by a radix sort of PyTorch,
so that the members of a cluster lie next to each other.  Where a cluster begins and ends is found
by a binary search.  Every cluster has blocks of its own, whose threads add up members only; a tree
in shared memory adds the threads, and a second kernel the blocks.

Why it should help: no zeros are added, so neither the work of the sums nor the memory grows with k.
But sorting n labels moves n numbers several times, and the points are then read in the order of
their labels, not of memory.

A weighed it against masked trees and chose those, to do more in one kernel.  D names it as what it
would do next, and says that somebody else's program with Thrust does it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lloydia.imports import load
from lloydia.ladder.blocks import block_sum
from lloydia.ladder.device import SIMULATED, Placed, ceil_div, cuda
from lloydia.ladder.nearest import nearest, tally
from lloydia.ladder.rung import About, Outcome
from lloydia.stopping import Rule

ABOUT = About(
    "sorted by label, then a reduction a segment", "AD", "cuda", uses=frozenset({"block"})
)

MOST_PARTS = 64  # blocks that a cluster has at most


def fit(
    X: NDArray,
    centers: NDArray,
    *,
    rule: Rule | None,
    max_iter: int,
    threads: int = 1,
    block: int = 256,
) -> Outcome:
    """Run Lloyd's method with sums over sorted points."""
    on = Placed(X, centers, block, order="F")
    (n, d), k = X.shape, len(centers)
    order, ends = cuda.device_array(n, np.int64), cuda.device_array(k + 1, np.int64)
    sort = sorting(on.labels, order, ends)
    parts = min(MOST_PARTS, ceil_div(n, block))
    sums = cuda.device_array((k, d, parts), X.dtype)
    shared = block * X.itemsize

    def scan() -> None:
        assign[on.blocks, block](on.X, on.centers, on.labels, on.changed)

    def means() -> None:
        sort()
        reduce_segments[(parts, min(k, 65535)), block, 0, shared](on.X, order, ends, sums)
        divide[ceil_div(k, block), block](sums, ends, on.centers)

    return on.descend(scan, means, rule, max_iter)


def sorting(labels: Any, order: Any, ends: Any) -> Callable[[], None]:
    """Return what queues a sort of the labels.

    Parameters
    ----------
    labels : device array of shape (n,), int32
    order : device array of shape (n,), int64
        OUT: the points by label.
    ends : device array of shape (k + 1,), int64
        OUT: how many labels are less than 0, 1, ..., k.
    """
    clusters = np.arange(len(ends), dtype=np.int32)
    if SIMULATED:

        def sort_on_host() -> None:
            found = labels.copy_to_host()
            order.copy_to_device(np.argsort(found, kind="stable").astype(np.int64))
            ends.copy_to_device(np.searchsorted(np.sort(found), clusters).astype(np.int64))

        return sort_on_host
    torch = load("torch")
    views = [torch.as_tensor(each, device="cuda") for each in (labels, order, ends)]
    values, wanted = torch.empty_like(views[0]), torch.from_numpy(clusters).to("cuda")

    def sort() -> None:
        torch.sort(views[0], stable=True, out=(values, views[1]))
        torch.searchsorted(values, wanted, out=views[2])

    return sort


@cuda.jit
def assign(X, centers, labels, changed):
    """Label every point, a thread a point."""
    i = cuda.grid(1)
    moved = False
    if i < X.shape[0]:
        best = nearest(X, i, centers)
        moved = labels[i] != best
        labels[i] = best
    tally(moved, changed)


@cuda.jit
def reduce_segments(X, order, ends, sums):
    """Add up this block's share of each cluster's points."""
    part = cuda.shared.array(0, X.dtype)
    b, parts = cuda.blockIdx.x, cuda.gridDim.x
    for j in range(cuda.blockIdx.y, sums.shape[0], cuda.gridDim.y):
        begin = ends[j] + b * cuda.blockDim.x + cuda.threadIdx.x
        for f in range(X.shape[1]):
            own = X.dtype.type(0)
            for p in range(begin, ends[j + 1], parts * cuda.blockDim.x):
                own += X[order[p], f]
            total = block_sum(part, own)
            if cuda.threadIdx.x == 0:
                sums[j, f, b] = total


@cuda.jit
def divide(sums, ends, centers):
    """Add up the blocks' sums, and make them centres, a thread a cluster."""
    j = cuda.grid(1)
    if j < sums.shape[0] and ends[j + 1] > ends[j]:
        for f in range(sums.shape[1]):
            total = sums.dtype.type(0)
            for b in range(sums.shape[2]):
                total += sums[j, f, b]
            centers[j, f] = total / (ends[j + 1] - ends[j])
