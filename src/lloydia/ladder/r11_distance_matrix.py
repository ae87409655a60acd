"""Rung 11: four kernels with a matrix of all distances between them, as C has it.

What changed from rung 10: the whole iteration is on the GPU, and only the centres leave it, for
the stop rule.  A thread for every pair of a point and a centre writes D into an n x k matrix; a
thread a row finds its minimum; a thread a coordinate of a point adds it to the sum of its cluster,
by atomic addition; and a thread a cluster divides.

Why it should help: nk threads, not n, and nothing waits for the bus.  But the matrix is written and
read, 2 n k numbers of memory traffic for the n d that matter, where rung 10 kept D in a register.

C adds 1 to a count from every coordinate of a point, and halves the counts, which is right at two
coordinates only; here the thread of the first coordinate counts.  Sums are float64 whatever the
type of X, for the reason that rung 12 gives.  An empty cluster keeps its centre.
"""

from __future__ import annotations

from dataclasses import replace

from numpy.typing import NDArray

from lloydia.ladder.device import Placed, Stopwatch, ceil_div, cuda, zeros
from lloydia.ladder.nearest import squared_distance, tally
from lloydia.ladder.rung import About, Outcome
from lloydia.stopping import Centers, Rule

ABOUT = About(
    "distance matrix, row minimum, atomic sums, divide",
    "C",
    "cuda",
    uses=frozenset({"block"}),
    stop=Centers(5e-6),
)


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
    """Run Lloyd's method with a distance matrix; `by_kernel` times its four kernels apart."""
    (n, d), k = X.shape, len(centers)
    on = Placed(X, centers, block)
    D = matrix(n, k, X.dtype)
    sums, counts = zeros((k, d), "float64"), zeros(k, "int32")
    pairs = (ceil_div(n, block // 32), ceil_div(k, 32)), (32, block // 32)
    clock = Stopwatch() if by_kernel else None

    def queue(name: str, kernel, grid, *args) -> None:
        kernel[grid](*args)
        if clock:
            clock.mark(name)

    def assign() -> None:
        if clock:
            clock.mark("")
        queue("distances", distances, pairs, on.X, on.centers, D)
        queue("minimum", minimum, (on.blocks, block), D, on.labels, on.changed)

    def means() -> None:
        queue("sums", add, (ceil_div(n * d, block), block), on.X, on.labels, sums, counts)
        queue("divide", divide, (ceil_div(k, block), block), sums, counts, on.centers)

    outcome = on.descend(assign, means, rule, max_iter)
    return outcome if clock is None else replace(outcome, phases=clock.seconds())


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
    i = cuda.blockIdx.x * cuda.blockDim.y + cuda.threadIdx.y
    j = cuda.blockIdx.y * cuda.blockDim.x + cuda.threadIdx.x
    if i < D.shape[0] and j < D.shape[1]:
        D[i, j] = squared_distance(X, i, centers, j)


@cuda.jit
def minimum(D, labels, changed):
    """Label every point, a thread a row."""
    i = cuda.grid(1)
    moved = False
    if i < D.shape[0]:
        best = 0
        for j in range(1, D.shape[1]):
            if D[i, j] < D[i, best]:
                best = j
        moved = labels[i] != best
        labels[i] = best
    tally(moved, changed)


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
def divide(sums, counts, centers):
    """Make sums centres, a thread a cluster, and set them to zero for the next iteration."""
    j = cuda.grid(1)
    if j < counts.shape[0]:
        for f in range(sums.shape[1]):
            if counts[j] > 0:
                centers[j, f] = sums[j, f] / counts[j]
            sums[j, f] = 0
        counts[j] = 0
