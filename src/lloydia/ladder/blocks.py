"""A sum over a block in shared memory: a tree with a barrier of the block after each level."""

from __future__ import annotations

from lloydia.ladder.device import cuda

__all__ = ["block_sum"]


@cuda.jit(device=True)
def block_sum(part, number):
    """Return the sum over the block of every thread's number; `part` is shared, one a thread."""
    t, m = cuda.threadIdx.x, cuda.blockDim.x
    part[t] = number
    cuda.syncthreads()
    while m > 1:
        if t < m // 2:
            part[t] += part[m - 1 - t]
        m //= 2
        cuda.syncthreads()
    total = part[0]
    cuda.syncthreads()  # All have read it before the next is written.
    return total
