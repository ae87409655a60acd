"""FAISS: all points, no subsampling; its own SuperKMeans; its k-means++."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lloydia.bench.cases import Case
from lloydia.bench.peers import Fitted, Peer, Task


class Faiss(Peer):
    """``faiss.Kmeans``: brute force by BLAS, and as many iterations as it is told to do.

    Left to itself it ends where its own sum of float32 distances no longer falls, which rounding
    decides.
    """

    name = "FAISS"
    package = "faiss-cpu"
    dtypes = ("float32",)
    options: Mapping[str, Any] = {"early_stop_threshold": -1.0}

    def fit(self, X: NDArray, task: Task) -> Fitted:
        """Fit all rows."""
        import faiss

        faiss.omp_set_num_threads(task.threads)
        fitted = self.kmeans(faiss)(
            X.shape[1],
            task.k,
            niter=task.iterations,
            max_points_per_centroid=len(X),
            min_points_per_centroid=1,
            **self.options,
        )
        fitted.train(X, **({"init_centroids": task.start} if self.takes_start else {}))
        objective = float(fitted.obj[-1])
        return Fitted(fitted.centroids, len(fitted.obj), objective=objective)

    def kmeans(self, faiss):
        """Return the class that does it."""
        return faiss.Kmeans


class FaissSuper(Faiss):
    """``faiss.SuperKmeans``: a pruning test on some dimensions that is only probable.

    It ends where it likes.
    """

    name = "FAISS SuperKMeans"
    modes = ("fits",)
    exact = False
    takes_start = False
    prunes = True
    options: Mapping[str, Any] = {}

    def refuses(self, case: Case, mode: str) -> str:
        """Return why it cannot do this case, or an empty string."""
        return super().refuses(case, mode) or ("d >= 32 only" if case.d < 32 else "")

    def kmeans(self, faiss):
        """Return the class that does it."""
        return faiss.SuperKmeans


class Seeding(Peer):
    """k-means++ with one draw a centre, not greedy."""

    name = "FAISS k-means++"
    package = "faiss-cpu"
    modes = ("seeding",)
    dtypes = ("float32",)
    exact = False
    takes_start = False

    def fit(self, X: NDArray, task: Task) -> Fitted:
        """Pick the starting rows."""
        import faiss

        faiss.omp_set_num_threads(task.threads)
        seeding = faiss.ClusteringInitialization(X.shape[1], task.k)
        seeding.method = faiss.ClusteringInitMethod_KMEANS_PLUS_PLUS
        centers = np.empty((task.k, X.shape[1]), dtype=np.float32)
        seeding.init_centroids(len(X), faiss.swig_ptr(X), faiss.swig_ptr(centers))
        return Fitted(centers, 0)


PEERS = (Faiss(), FaissSuper(), Seeding())
