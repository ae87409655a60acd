"""The fits whose kernels are compiled ahead: small, but with every step that a first fit may take.

A kernel is compiled when it is called first.  So the data have rows that lie as far from one centre
as from another, equal rows and an empty cluster, whose kernels other data may not need.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from cyclopts import Token

from lloydia.cli.info import Shape, shape_of

if TYPE_CHECKING:
    import numpy as np

__all__ = ["DEFAULTS", "fits", "rows_of_shape", "shapes_of"]


# The kernels of the CPU depend on the number of features up to 8, on whether there are more than 12
# clusters then, and on whether features are many.
DEFAULTS = {
    "cpu": [
        *(Shape(150, 4, 3), Shape(20_000, 2, 8), Shape(20_000, 3, 16)),
        *(Shape(20_000, 16, 32), Shape(2_000, 768, 20)),
    ],
    "cuda": [Shape(1_000_000, 3, 16), Shape(1_000_000, 64, 256), Shape(200_000, 768, 1000)],
}

# Kernels of the CPU do not depend on more rows.
MOST_ROWS = 20_000

# The steps of all algorithms run within so many iterations.
ITERATIONS = 12


def shapes_of(_: type, tokens: Sequence[Token]) -> list[Shape]:
    """Convert words ROWS,FEATURES,CLUSTERS."""
    return [shape_of(Shape, [token]) for token in tokens]


def rows_of_shape(shape: Shape, dtype: str, device: str) -> np.ndarray:
    """Return blobs around points of a grid: shape (n, d).

    On the CPU they are at most MOST_ROWS rows, but not fewer than clusters.
    """
    import numpy as np

    n, d, k = shape
    if device == "cpu":
        n = max(min(n, MOST_ROWS), k)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d), dtype=np.float32).astype(dtype)
    X += rng.integers(0, 8, (k, d)).astype(dtype)[rng.integers(0, k, n)]
    # Integers: many of these rows are equal, or as near to one centre as to another.
    X[::4] = np.rint(X[::4])
    return X


def fits(X: np.ndarray, k: int, device: str) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Give what is to be run on the rows, by name."""
    import numpy as np
    from scipy.sparse import csr_matrix

    from lloydia import KMeans, MiniBatchKMeans
    from lloydia.algorithms import ALGORITHMS
    from lloydia.algorithms.filtering import MAX_FEATURES
    from lloydia.backends import put

    options: dict[str, Any] = {"n_init": 1, "random_state": 0, "device": device}
    rows = put(device, X)
    weights = np.random.default_rng(1).random(len(X))

    def fit(data: Any = rows, sample_weight: Any = None, **own: Any) -> Any:
        model = KMeans(k, **{"max_iter": ITERATIONS, **options, **own})
        return model.fit(data, sample_weight=sample_weight)

    def other_methods() -> None:
        model = fit(max_iter=1)
        model.predict(rows), model.transform(rows[:100]), model.score(rows)

    def empty_cluster() -> None:
        start = X[:k].copy()
        start[-1] = X.max() * 1000
        fit(init=start)

    # A GPU computes every algorithm as "lloyd".
    for algorithm in ALGORITHMS if device == "cpu" else ("lloyd",):
        if algorithm == "filtering" and X.shape[1] > MAX_FEATURES:
            continue
        yield algorithm, partial(fit, algorithm=algorithm)
    yield "tol=0", lambda: fit(tol=0)
    yield "random", lambda: fit(init="random")
    yield "farthest", lambda: fit(init="farthest", max_iter=2)
    yield "k-means||", lambda: fit(init="k-means||", max_iter=2)
    yield "weights", lambda: fit(sample_weight=weights)
    yield "an empty cluster", empty_cluster
    yield "predict", other_methods
    if device == "cpu":
        # Data frames have their numbers column by column.
        yield "Fortran order", lambda: fit(np.asfortranarray(X))
        yield "sparse", lambda: fit(csr_matrix(X), max_iter=2)
    else:
        yield "rows on the host", lambda: fit(X)
    yield "mini batches", lambda: MiniBatchKMeans(k, max_iter=1, **options).fit(rows)
