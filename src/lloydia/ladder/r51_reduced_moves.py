"""Rung 51: rung 11 with the centres compared by a reduction on the GPU, as C tried next.

What changed from rung 11: a block of threads finds the largest change of a coordinate of a centre.
Each thread takes the maximum of every so many coordinates, and a tree in shared memory that of the
threads.  One number crosses the bus in an iteration, not k d.

Why it should help: the centres stay where they are.  But a reduction always looks at all of them,
where the host's loop ends at the first that has moved, and it is one launch more.

C tried it to have the whole test on the GPU, saw no gain, and kept the loop on the host.
"""

from __future__ import annotations

from numpy.typing import NDArray

from lloydia.ladder.device import cuda
from lloydia.ladder.r11_distance_matrix import Steps
from lloydia.ladder.rung import About, Outcome, reads
from lloydia.stopping import Centers, Labels, Rule

ABOUT = About(
    "distance matrix, moves of centres by a reduction",
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
) -> Outcome:
    """Run rung 11 with a reduction of the centres' moves."""
    steps = Steps(X, centers, block, counting=reads(rule, Labels))
    old, largest = cuda.to_device(centers), cuda.device_array(1, X.dtype)

    def move() -> float:
        shared = block * X.itemsize
        largest_move[1, block, 0, shared](old.ravel(), steps.on.centers.ravel(), largest)
        return float(largest.copy_to_host()[0])

    return steps.on.descend(steps.assign, steps.means, rule, max_iter, move=move)


@cuda.jit
def largest_move(old, new, largest):
    """Write the largest |new - old| of all coordinates, and make the new ones old: one block."""
    part = cuda.shared.array(0, new.dtype)
    t, stride = cuda.threadIdx.x, cuda.blockDim.x // 2
    own = new.dtype.type(0)
    for c in range(t, new.shape[0], cuda.blockDim.x):
        own = max(own, abs(new[c] - old[c]))
        old[c] = new[c]
    part[t] = own
    cuda.syncthreads()
    while stride > 0:
        if t < stride:
            part[t] = max(part[t], part[t + stride])
        stride //= 2
        cuda.syncthreads()
    if t == 0:
        largest[0] = part[0]
