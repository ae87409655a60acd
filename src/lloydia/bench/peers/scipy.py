"""SciPy's kmeans2: brute force on one thread, for a given number of iterations."""

from __future__ import annotations

from numpy.typing import NDArray

from lloydia.bench.peers import Fitted, Peer, Task


class SciPy(Peer):
    """``scipy.cluster.vq.kmeans2``; an empty cluster keeps its centre."""

    name = "SciPy kmeans2"
    package = "scipy"
    square = True

    def fit(self, X: NDArray, task: Task) -> Fitted:
        """Fit."""
        from scipy.cluster.vq import kmeans2

        centers, _ = kmeans2(X, task.start, iter=task.iterations, minit="matrix", missing="warn")
        return Fitted(centers, task.iterations)


PEERS = (SciPy(),)
