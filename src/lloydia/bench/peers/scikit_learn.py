"""scikit-learn: lloyd, elkan and its k-means++."""

from __future__ import annotations

from numpy.typing import NDArray

from lloydia.bench.peers import Fitted, Peer, Task


class ScikitLearn(Peer):
    """Its estimator; the number of threads is OMP_NUM_THREADS, read when it is imported."""

    package = "scikit-learn"
    takes_defaults = True
    stops = True

    def __init__(self, algorithm: str, *modes: str) -> None:
        self.name = f"scikit-learn {algorithm}"
        self.algorithm = algorithm
        self.modes = modes
        self.prunes = self.square = algorithm == "elkan"

    def fit(self, X: NDArray, task: Task) -> Fitted:
        """Fit."""
        from sklearn.cluster import KMeans

        fitted = KMeans(
            task.k,
            init="k-means++" if task.start is None else task.start,
            n_init=1,
            max_iter=task.iterations,
            tol=task.tol,
            random_state=0,
            algorithm=self.algorithm,
        ).fit(X)
        return Fitted(fitted.cluster_centers_, fitted.n_iter_)


class Seeding(Peer):
    """k-means++, greedy."""

    name = "scikit-learn k-means++"
    package = "scikit-learn"
    modes = ("seeding",)
    takes_start = False

    def fit(self, X: NDArray, task: Task) -> Fitted:
        """Pick the starting rows."""
        from sklearn.cluster import kmeans_plusplus

        return Fitted(kmeans_plusplus(X, task.k, random_state=0)[0], 0)


PEERS = (ScikitLearn("lloyd", "iterations", "fits"), ScikitLearn("elkan", "fits"), Seeding())
