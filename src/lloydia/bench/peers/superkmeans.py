"""SuperKMeans (Kuffo and others 2026): it takes no start and draws its own from a seed.

Its pruning test is only probable; with BLAS alone it computes every distance.  It rotates the data
once a fit, and has an inertia of its own, which is shown relative to ours.
"""

from __future__ import annotations

from numpy.typing import NDArray

from lloydia.bench.peers import Fitted, Peer, Task


class SuperKMeans(Peer):
    """All rows, flat, for exactly as many iterations as it is told."""

    package = "superkmeans"
    dtypes = ("float32",)
    takes_start = False

    def __init__(self, name: str, mode: str, blas: bool) -> None:
        self.name = name
        self.modes = (mode,)
        self.blas = blas
        self.exact = blas
        self.prunes = not blas

    def fit(self, X: NDArray, task: Task) -> Fitted:
        """Fit."""
        import superkmeans

        fitted = superkmeans.SuperKMeans(
            task.k,
            X.shape[1],
            hierarchical=False,
            iters=task.iterations,
            sampling_fraction=1.0,
            max_points_per_cluster=len(X),
            n_threads=task.threads,
            use_blas_only=self.blas,
            early_termination=False,
        )
        centers = fitted.train(X)
        done = fitted.iteration_stats
        return Fitted(centers, len(done), objective=float(done[-1].objective))


PEERS = (
    SuperKMeans("SuperKMeans BLAS", "iterations", blas=True),
    SuperKMeans("SuperKMeans", "fits", blas=False),
)
