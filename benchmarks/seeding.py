"""What a start costs on a GPU: seedings, fits from them, and the iterations alone.

python benchmarks/seeding.py [--save] [--cases 1000000,64,256 ...] [--rounds 5]

Rows around k centres, at most 4,096, are made on the GPU.  All fits and seedings of a case take
turns, and figures are medians; each inertia is also given in percent of the default fit's.  If
flash-kmeans is installed, its fit from random rows takes part; if cuVS is, so does its fit from
k-means||, which is that of cuML.
Before there is a time, the rows that both seedings choose of a few thousand rows are compared with
those of the reference engine.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch

from lloydia import KMeans, assign
from lloydia.backends import choose
from lloydia.bench.machine import keep
from lloydia.seeding import SEEDINGS

CASES = (
    (1_000_000, 64, 256), (8_000_000, 128, 1024), (1_000_000, 768, 1024), (1_000_000, 128, 4096),
)  # fmt: skip
INITS = "k-means++", "k-means||"
MOST_CENTERS = 4096
PIECE = 1 << 20  # rows that are made together
FEW, FEW_CLUSTERS = 3000, 20  # of the comparison with the reference engine
WARM = 2  # turns before the clock counts: they compile and record

Contender = Callable[[], tuple[Any, int]]


def make(n: int, d: int, k: int) -> torch.Tensor:
    """Return rows around centres, on the GPU."""
    new: dict[str, Any] = {
        "generator": torch.Generator("cuda").manual_seed(0),
        "device": "cuda",
    }
    centers = torch.randn((min(k, MOST_CENTERS), d), **new)
    X = torch.empty((n, d), device="cuda")
    for first in range(0, n, PIECE):
        piece = X[first : first + PIECE]
        own = torch.randint(len(centers), (len(piece),), **new)
        piece.copy_(centers[own] + torch.randn(piece.shape, **new))
    return X


def picks(X: Any, k: int, init: str, device: str) -> Any:
    """Return the rows that a seeding chooses."""
    return SEEDINGS[init](choose(device, X, None, None), k, np.random.RandomState(0))


def check(X: torch.Tensor) -> None:
    """Compare seedings of some rows with the reference engine's.

    Raises
    ------
    RuntimeError
        Other rows were chosen.
    """
    few = X[:FEW]
    for init in INITS:
        found = picks(few, FEW_CLUSTERS, init, "cuda")
        if (found != picks(few.cpu().numpy(), FEW_CLUSTERS, init, "reference")).any():
            raise RuntimeError(f"{init} chooses other rows of {tuple(few.shape)} on the GPU.")


def contenders_of(X: torch.Tensor, k: int) -> dict[str, Contender]:
    """Return what is timed: a function returns centres, and the iterations that were done."""

    def seeding(init: str) -> Contender:
        return lambda: (X[torch.as_tensor(picks(X, k, init, "cuda")).to(X.device)], 0)

    def fit(init: Any) -> Contender:
        def run() -> tuple[Any, int]:
            model = KMeans(k, init=init, n_init=1, random_state=0).fit(X)
            return model.cluster_centers_, model.n_iter_

        return run

    start = seeding("k-means++")()[0]
    contenders = {init: seeding(init) for init in INITS}
    contenders |= {f"fit, {init}": fit(init) for init in INITS}
    contenders["fit from the k-means++ start"] = fit(start)
    return {**contenders, **flash_kmeans(X, k), **cuvs(X, k)}


def flash_kmeans(X: torch.Tensor, k: int) -> dict[str, Contender]:
    """Return flash-kmeans, if it is installed."""
    try:
        from flash_kmeans import batch_kmeans_Euclid
    except ImportError:
        return {}

    def fit() -> tuple[Any, int]:
        _, centers, n_iter = batch_kmeans_Euclid(X[None], k, max_iters=300, tol=1e-4)[:3]
        return centers[0], int(n_iter)

    return {"flash-kmeans from random rows": fit}


def cuvs(X: torch.Tensor, k: int) -> dict[str, Contender]:
    """Return cuVS, if it is installed."""
    try:
        from cuvs.cluster import kmeans
        from cuvs.common import Resources
    except ImportError:
        return {}
    resources = Resources()
    params = kmeans.KMeansParams(
        n_clusters=k, init_method="KMeansPlusPlus", max_iter=300, tol=1e-4, n_init=1
    )

    def fit() -> tuple[Any, int]:
        centers, _, n_iter = kmeans.fit(params, X, resources=resources)
        resources.sync()
        return torch.as_tensor(centers, device="cuda"), int(n_iter)

    return {"cuVS from k-means||": fit}


def timed(contender: Contender) -> tuple[float, Any, int]:
    """Return the seconds of a contender, and what it returned."""
    torch.cuda.synchronize()
    began = time.perf_counter()
    centers, n_iter = contender()
    torch.cuda.synchronize()
    return time.perf_counter() - began, centers, n_iter


def measure(n: int, d: int, k: int, rounds: int) -> Iterator[dict[str, Any]]:
    """Measure one case: a row for each contender."""
    X = make(n, d, k)
    check(X)
    contenders = contenders_of(X, k)
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    inertia, iterations = {}, {}
    for turn in range(WARM + rounds):
        for name, contender in contenders.items():
            took, centers, iterations[name] = timed(contender)
            if turn >= WARM:
                seconds[name].append(took)
            if turn == WARM + rounds - 1:
                inertia[name] = float(assign(X, centers)[1])
    default = inertia[f"fit, {INITS[0]}"]
    for name, took in seconds.items():
        yield {
            "device": torch.cuda.get_device_name(), "n": n, "d": d, "k": k, "what": name,
            "s": round(median(took), 5), "iterations": iterations[name], "rounds": len(took),
            "inertia": inertia[name], "inertia_percent": round(100.0 * inertia[name] / default, 2),
        }  # fmt: skip


def cases_of(texts: Sequence[str]) -> Iterator[tuple[int, int, int]]:
    """Yield cases that are spelt as rows, features and clusters."""
    for text in texts:
        n, d, k = (int(part) for part in text.split(","))
        yield n, d, k


def main() -> None:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cases", nargs="+", metavar="N,D,K", help="rows, features, clusters")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--save", action="store_true", help="keep the figures")
    parser.add_argument("--out", type=Path, help="the folder to keep them in")
    chosen = parser.parse_args()
    rows = []
    for case in cases_of(chosen.cases) if chosen.cases else CASES:
        for row in measure(*case, chosen.rounds):
            rows.append(row)
            print(
                f"{row['n']:>10,} x {row['d']:<4} k = {row['k']:<6}{row['what']:<32}"
                f"{row['s']:>10.4f} s {row['iterations']:>4} iterations, "
                f"inertia {row['inertia']:.8g}",
                flush=True,
            )
    if chosen.out:
        print(keep("seeding_costs", rows, chosen.out))
    elif chosen.save:
        print(keep("seeding_costs", rows))


if __name__ == "__main__":
    sys.exit(main())
