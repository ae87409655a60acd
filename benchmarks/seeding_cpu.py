"""The cost of a start on a processor: seedings in iterations, and k-means++ of other libraries.

python benchmarks/seeding_cpu.py [--save] [--cases 25000,768,1024,48 ...] [--rounds 3]

Times are processor time of one thread, so that they hardly depend on what else a machine does.  A
case is rows, features, clusters and rank: unit rows in so many directions and a little noise, as
embeddings are.  The contenders of a case take turns, and figures are medians.  Before any time is
shown, the rows that both seedings choose of a few rows are compared with those of the reference
engine.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from lloydia import KMeans, kmeans_plusplus
from lloydia.backends import choose
from lloydia.backends.numpy_first import compiled_only
from lloydia.bench.machine import keep
from lloydia.seeding import SEEDINGS

CASES = (
    (100_000, 128, 4096, 48), (100_000, 768, 4096, 48), (200_000, 384, 8192, 48),
    (25_000, 768, 1024, 768), (25_000, 128, 1024, 128),
)  # fmt: skip
# Rows around centres: rows, features and clusters.
PEERS_CASES = (1_000_000, 2, 100), (200_000, 16, 256), (100_000, 128, 256)
INITS = "k-means++", "k-means||"
FEW, FEW_CLUSTERS = 1500, 20  # of the comparison with the reference engine
ITERATIONS = 10  # at most; rows that vary in all directions alike need fewer

# Does what is measured, and returns how many times.
Contender = Callable[[], float]


def embeddings(n: int, d: int, k: int, rank: int) -> NDArray[np.float32]:
    """Return unit rows of a rank, around k / 4 centres."""
    rng = np.random.default_rng(0)
    W = rng.standard_normal((rank, d), np.float32) / np.float32(rank**0.5)
    centers = rng.standard_normal((max(k // 4, 8), rank), np.float32) * np.float32(1.5)
    z = centers[rng.integers(len(centers), size=n)] + rng.standard_normal((n, rank), np.float32)
    X = z @ W + np.float32(0.1) * rng.standard_normal((n, d), np.float32)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X


def mixture(n: int, d: int, k: int) -> NDArray[np.float32]:
    """Return rows around centres that overlap."""
    rng = np.random.default_rng(0)
    centers = rng.normal(0.0, 4.0 / np.sqrt(d), (k, d)).astype(np.float32)
    return rng.standard_normal((n, d), np.float32) + centers[rng.integers(k, size=n)]


def picks(X: NDArray, k: int, init: str, device: str) -> NDArray[np.int64]:
    """Return the rows that a seeding chooses."""
    threads = 1 if device == "cpu" else None
    with compiled_only():
        return SEEDINGS[init](choose(device, X, None, threads), k, np.random.RandomState(0))


def check(X: NDArray) -> None:
    """Compare seedings of some rows with the reference engine's.

    Raises
    ------
    RuntimeError
        Other rows were chosen.
    """
    for init in INITS:
        found = picks(X[:FEW], FEW_CLUSTERS, init, "cpu")
        if (found != picks(X[:FEW], FEW_CLUSTERS, init, "reference")).any():
            raise RuntimeError(f"{init} chooses other rows of {X[:FEW].shape} than the reference.")


def once(work: Callable[[], Any]) -> Contender:
    """Return the contender that does some work once."""

    def contender() -> float:
        work()
        return 1.0

    return contender


def own_contenders(X: NDArray, k: int) -> dict[str, Contender]:
    """Return both seedings, and the iterations that they are compared with."""
    start = X[np.random.default_rng(0).permutation(len(X))[:k]]
    model = KMeans(
        k, init=start, n_init=1, max_iter=ITERATIONS, tol=0, n_threads=1, algorithm="lloyd"
    )

    def iterations() -> float:
        # Each evaluates n k distances.  A fit that `max_iter` ends assigns the rows once more.
        return model.fit(X).n_distances_ / (len(X) * k)

    seedings = {init: once(partial(picks, X, k, init, "cpu")) for init in INITS}
    return {"an iteration": iterations, **seedings}


def peers_contenders(X: NDArray, k: int) -> dict[str, Contender]:
    """Return k-means++ of the libraries that are installed."""
    import sklearn.cluster

    contenders: dict[str, Contender] = {
        "Lloydia": once(partial(kmeans_plusplus, X, k, random_state=0, n_threads=1)),
        "scikit-learn": once(partial(sklearn.cluster.kmeans_plusplus, X, k, random_state=0)),
    }
    try:
        import faiss
    except ImportError:
        return contenders
    faiss.omp_set_num_threads(1)

    def single_draw() -> None:
        seeding = faiss.ClusteringInitialization(X.shape[1], k)
        seeding.method = faiss.ClusteringInitMethod_KMEANS_PLUS_PLUS
        centers = np.empty((k, X.shape[1]), dtype=np.float32)
        seeding.init_centroids(len(X), faiss.swig_ptr(X), faiss.swig_ptr(centers))

    return {**contenders, "FAISS, one draw a centre": once(single_draw)}


def measure(case: tuple[int, ...], rounds: int) -> Iterator[dict[str, Any]]:
    """Measure one case: a row for each contender."""
    n, d, k = case[:3]
    X = embeddings(n, d, k, case[3]) if len(case) == 4 else mixture(n, d, k)
    check(X)
    contenders = own_contenders(X, k) if len(case) == 4 else peers_contenders(X, k)
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    # More threads of linear algebra would spend processor time on waiting for each other.
    with threadpool_limits(1):
        # The first turn compiles.
        for turn in range(1 + rounds):
            for name, contender in contenders.items():
                began = time.process_time()
                times = contender()
                if turn:
                    seconds[name].append((time.process_time() - began) / times)
    first = median(next(iter(seconds.values())))
    for name, took in seconds.items():
        yield {
            "n": n, "d": d, "k": k, "rank": case[3] if len(case) == 4 else None, "what": name,
            "processor_s": round(median(took), 4), "ratio": round(median(took) / first, 3),
            "rounds": rounds,
        }  # fmt: skip


def main() -> None:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cases", nargs="+", metavar="N,D,K[,RANK]", help="without a rank: peers")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--save", action="store_true", help="keep the figures")
    parser.add_argument("--out", type=Path, help="the folder to keep them in")
    chosen = parser.parse_args()
    cases = [tuple(map(int, text.split(","))) for text in chosen.cases or ()]
    rows = []
    for case in cases or (*PEERS_CASES, *CASES):
        for row in measure(case, chosen.rounds):
            rows.append(row)
            print(
                f"{row['n']:>10,} x {row['d']:<4} k = {row['k']:<6}{row['what']:<26}"
                f"{row['processor_s']:>9.3f} s, {row['ratio']:>7.2f} of the first",
                flush=True,
            )
    if chosen.out:
        print(keep("seeding_cpu", rows, chosen.out))
    elif chosen.save:
        print(keep("seeding_cpu", rows))


if __name__ == "__main__":
    sys.exit(main())
