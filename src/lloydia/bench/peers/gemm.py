"""Not a peer but a floor: the product X C^T alone, by BLAS in chunks, with nothing done to it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lloydia.bench.peers import Fitted, Peer, Task

CHUNK = 1 << 22  # bytes of the product that are kept at a time: they stay in the cache


class Gemm(Peer):
    """One product an iteration, by NumPy's BLAS."""

    name = "gemm"
    package = "numpy"
    modes = ("iterations",)
    exact = False

    def fit(self, X: NDArray, task: Task) -> Fitted:
        """Multiply."""
        assert task.start is not None
        rows = max(256, CHUNK // (task.k * X.itemsize))
        out = np.empty((rows, task.k), dtype=X.dtype)
        for _ in range(task.iterations):
            for i in range(0, len(X), rows):
                block = X[i : i + rows]
                np.matmul(block, task.start.T, out=out[: len(block)])
        return Fitted(None, task.iterations)


PEERS = (Gemm(),)
