"""Rung 11: a kernel a step, with a matrix of all distances between them, as C has it.

What changed from rung 10: the whole iteration is on the GPU, and only the centres leave it, for
the stop rule.  A thread for every pair of a point and a centre writes D into an n x k matrix; a
thread a row finds its minimum; a thread a coordinate of a point adds it to the sum of its cluster,
by atomic addition; and a thread a coordinate of a centre divides.

Why it should help: nk threads, not n, and nothing waits for the bus.  But the matrix is written and
read, 2 n k numbers of memory traffic for the n d that matter, where rung 10 kept D in a register.

C gives every step the threads it can use.  Its run at 10,000 points and 200 clusters became 36
times as fast as its sequential program, and 16 to 24 times at its other sizes.

Blocks are C's: 4 centres x `block` points for the distances, `block` points for the minimum, and
all coordinates of `block` points or centres for sums and division; C has 256.  C adds 1 to a count
from every coordinate of a point, and halves the counts, which is right at two coordinates only;
here the thread of the first coordinate counts.  Sums are float64 whatever the type of X, for the
reason that rung 12 gives.  An empty cluster keeps its centre.

The host compares the centres, or the labels, whichever the stop rule reads: C's program has a
function for each.  Rungs 50 and 51 are the stop rules that C tried on the GPU.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lloydia.ladder.device import Kernels, Placed, ceil_div, cuda, zeros
from lloydia.ladder.nearest import squared_distance
from lloydia.ladder.rung import About, Outcome
from lloydia.stopping import Centers, Rule

ABOUT = About(
    "distance matrix, row minimum, atomic sums, divide",
    "C",
    "cuda",
    uses=frozenset({"block"}),
    stop=Centers(5e-6),
)

COLUMNS = 4  # centres in a block of the distances
MOST_THREADS = 1024  # in a block


class Steps:
    """C's steps of an iteration, queued one kernel after the other.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    centers : ndarray of shape (k, d)
    block : int
    timed : bool
        Whether to time each kernel.
    counting : bool
        Whether the kernel of the minimum counts the labels that change.

    Attributes
    ----------
    on : Placed
    run : Kernels
    """

    def __init__(
        self,
        X: NDArray,
        centers: NDArray,
        block: int,
        *,
        timed: bool = False,
        counting: bool = False,
    ) -> None:
        (n, d), k = X.shape, len(centers)
        self.on, self.run, self.counting = Placed(X, centers, block), Kernels(timed=timed), counting
        self.D = matrix(n, k, X.dtype)
        self.sums, self.counts = zeros((k, d), "float64"), zeros(k, "int32")
        rows = min(block, MOST_THREADS // COLUMNS)
        self.pairs = (ceil_div(k, COLUMNS), ceil_div(n, rows)), (COLUMNS, rows)
        self.wide = min(d * block, MOST_THREADS)

    def assign(self) -> None:
        """Queue the distances and the minimum."""
        on, rows = self.on, (self.on.blocks, self.on.block)
        self.run("distances", distances, self.pairs, on.X, on.centers, self.D)
        if self.counting:
            self.run("minimum", counted_minimum, rows, self.D, on.labels, on.changed)
        else:
            self.run("minimum", minimum, rows, self.D, on.labels)

    def means(self) -> None:
        """Queue the sums and the division."""
        on, (k, d) = self.on, self.sums.shape
        points = ceil_div(on.X.size, self.wide), self.wide
        coordinates = ceil_div(k * d, self.wide), self.wide
        self.run("zero", clear, coordinates, self.sums, self.counts)
        self.run("sums", add, points, on.X, on.labels, self.sums, self.counts)
        self.run("divide", quotients, coordinates, self.sums, self.counts, on.centers)


def fit(
    X: NDArray,
    centers: NDArray,
    *,
    rule: Rule | None,
    max_iter: int,
    threads: int = 1,
    block: int = 256,
    by_kernel: bool = False,
) -> Outcome:
    """Run Lloyd's method with a distance matrix; `by_kernel` times its kernels apart."""
    steps = Steps(X, centers, block, timed=by_kernel)
    before = np.full(len(X), -1, np.int32)

    def n_changed() -> int:
        nonlocal before
        old, before = before, steps.on.labels.copy_to_host()
        return int(np.count_nonzero(old != before))

    outcome = steps.on.descend(steps.assign, steps.means, rule, max_iter, n_changed=n_changed)
    return replace(outcome, phases=steps.run.seconds())


def matrix(n: int, k: int, dtype):
    """Return an n x k matrix on the GPU, or say that it does not fit."""
    needed, free = n * k * dtype.itemsize, cuda.current_context().get_memory_info().free
    if needed > free:
        raise MemoryError(
            f"{n} x {k} distances take {needed / 2**30:.1f} GiB and the GPU has "
            f"{free / 2**30:.1f} GiB free: take a rung that does not store them."
        )
    return cuda.device_array((n, k), dtype)


@cuda.jit
def distances(X, centers, D):
    """Write all distances, a thread a pair; neighbouring threads have neighbouring centres."""
    j, i = cuda.grid(2)
    if i < D.shape[0] and j < D.shape[1]:
        D[i, j] = squared_distance(X, i, centers, j)


@cuda.jit
def minimum(D, labels):
    """Label every point, a thread a row."""
    i = cuda.grid(1)
    if i < D.shape[0]:
        labels[i] = least(D, i)


@cuda.jit
def counted_minimum(D, labels, changed):
    """Label every point, a thread a row, and count the changes by atomic additions."""
    i = cuda.grid(1)
    if i < D.shape[0]:
        best = least(D, i)
        if labels[i] != best:
            cuda.atomic.add(changed, 0, 1)
        labels[i] = best


@cuda.jit(device=True)
def least(D, i):
    """Return where the least number of a row is, the first of equals."""
    best = 0
    for j in range(1, D.shape[1]):
        if D[i, j] < D[i, best]:
            best = j
    return best


@cuda.jit
def clear(sums, counts):
    """Set sums and counts to zero, a thread a coordinate of a centre."""
    p = cuda.grid(1)
    j = p // sums.shape[1]
    if j < sums.shape[0]:
        sums[j, p - j * sums.shape[1]] = 0
        counts[j] = 0


@cuda.jit
def add(X, labels, sums, counts):
    """Add every point to its cluster, a thread a coordinate."""
    p = cuda.grid(1)
    i = p // X.shape[1]
    f = p - i * X.shape[1]
    if i < X.shape[0]:
        cuda.atomic.add(sums, (labels[i], f), X[i, f])
        if f == 0:
            cuda.atomic.add(counts, labels[i], 1)


@cuda.jit
def quotients(sums, counts, centers):
    """Make sums centres, a thread a coordinate of a centre."""
    p = cuda.grid(1)
    j = p // sums.shape[1]
    if j < counts.shape[0] and counts[j] > 0:
        f = p - j * sums.shape[1]
        centers[j, f] = sums[j, f] / counts[j]


@cuda.jit
def divide(sums, counts, centers):
    """Make sums centres, a thread a cluster, and set them to zero for the next iteration."""
    j = cuda.grid(1)
    if j < counts.shape[0]:
        for f in range(sums.shape[1]):
            if counts[j] > 0:
                centers[j, f] = sums[j, f] / counts[j]
            sums[j, f] = 0
        counts[j] = 0
