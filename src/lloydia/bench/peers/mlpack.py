"""mlpack: its five exact variants, in float64, for our number of iterations."""

from __future__ import annotations

from numpy.typing import NDArray

from lloydia.bench.peers import Fitted, Peer, Task


class Mlpack(Peer):
    """One variant; it stops by itself only when the centres move by less than 1e-5."""

    package = "mlpack"
    dtypes = ("float64",)

    def __init__(self, algorithm: str, *modes: str) -> None:
        self.name = f"mlpack {algorithm}"
        self.algorithm = algorithm
        self.modes = modes
        self.prunes = algorithm != "naive"
        self.square = algorithm == "elkan"

    def fit(self, X: NDArray, task: Task) -> Fitted:
        """Fit."""
        import mlpack

        found = mlpack.kmeans(
            input_=X,
            clusters=task.k,
            initial_centroids=task.start,
            max_iterations=task.iterations,
            algorithm=self.algorithm,
            labels_only=True,
        )
        # After an even number of iterations the centres lie in the memory of the start.
        return Fitted(found["centroid"].copy(), task.iterations)


PEERS = (
    Mlpack("naive", "iterations", "fits"),
    *(Mlpack(name, "fits") for name in ("elkan", "hamerly", "pelleg-moore", "dualtree")),
)
