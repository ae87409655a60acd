"""Lloydia itself: brute force for iterations, auto for fits; auto compared with every algorithm.

Figures are those of compiled kernels, in which a process ends up that fits small data many times.
"""

from __future__ import annotations

from numpy.typing import NDArray

from lloydia.algorithms import ALGORITHMS
from lloydia.algorithms.filtering import MAX_FEATURES
from lloydia.backends.numpy_first import compiled_only
from lloydia.bench.cases import Case
from lloydia.bench.peers import Fitted, Peer, Task


class Ours(Peer):
    """One algorithm; all give the same bits."""

    package = "lloydia"
    takes_defaults = True
    stops = True

    def __init__(self, algorithm: str, *modes: str) -> None:
        self.name = f"Lloydia {algorithm}"
        self.algorithm = algorithm
        self.modes = modes

    def refuses(self, case: Case, mode: str) -> str:
        """Return why not: filtering is for few features."""
        if self.algorithm == "filtering" and case.d > MAX_FEATURES:
            return f"at most {MAX_FEATURES} features"
        return super().refuses(case, mode)

    def fit(self, X: NDArray, task: Task) -> Fitted:
        """Fit, and tell how many distances that took."""
        from lloydia import KMeans

        model = KMeans(
            task.k,
            init="k-means++" if task.start is None else task.start,
            n_init=1,
            max_iter=task.iterations,
            tol=task.tol,
            random_state=0,
            algorithm=self.algorithm,
            n_threads=task.threads,
        )
        with compiled_only():
            return Fitted.by(model.fit(X))


class Seeding(Peer):
    """k-means++."""

    name = "Lloydia k-means++"
    package = "lloydia"
    modes = ("seeding",)

    def fit(self, X: NDArray, task: Task) -> Fitted:
        """Pick the starting rows."""
        from lloydia import kmeans_plusplus

        with compiled_only():
            return Fitted(kmeans_plusplus(X, task.k, random_state=0, n_threads=task.threads)[0], 0)


PEERS = (
    Ours("auto", "fits", "auto"),
    Ours("lloyd", "iterations", "auto"),
    *(Ours(name, "auto") for name in ALGORITHMS if name not in ("auto", "lloyd")),
    Seeding(),
)
