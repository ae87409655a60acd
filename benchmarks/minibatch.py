"""MiniBatchKMeans compared with scikit-learn's: one pass over the rows, on one thread.

    python benchmarks/minibatch.py --save       about two minutes on one core

Both get the same rows, starting centres and seed, so they draw the same batches.  They take turns
after a first fit that does not count, and a figure is a median of three.  No time is shown unless
Lloydia's centres are those of the reference engine, bit for bit, and scikit-learn's inertia is
within 5 % of Lloydia's.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path

import numpy as np
import sklearn.cluster
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from lloydia import MiniBatchKMeans, assign
from lloydia.backends.numpy_first import compiled_only
from lloydia.bench.machine import keep, load

# Rows, features, clusters, rows of a batch.
CASES = ((1_000_000, 16, 64, 1024), (1_000_000, 16, 64, 10_000), (20_000, 16, 64, 1024))
ROUNDS = 3


def rows(n: int, d: int, k: int) -> NDArray[np.float32]:
    """Return blobs that overlap."""
    rng = np.random.default_rng(0)
    centers = 3 * rng.normal(size=(k, d))
    return (rng.normal(size=(n, d)) + centers[rng.integers(k, size=n)]).astype(np.float32)


def fitted(kind, X, k, size, **options):
    """Return the seconds that a fit takes, and the estimator."""
    model = kind(
        k, init=X[:k], batch_size=size, max_iter=1, max_no_improvement=None, compute_labels=False,
        random_state=0, **options,
    )  # fmt: skip
    # A batch is small enough for NumPy, which would do the first ones of a process.
    with compiled_only():
        begin = time.perf_counter()
        model.fit(X)
        return time.perf_counter() - begin, model


def measured(case: tuple[int, int, int, int]) -> dict[str, object]:
    """Return the figures of a case, once the answers are as they must be."""
    n, d, k, size = case
    X = rows(n, d, k)
    contenders = {
        "lloydia": (MiniBatchKMeans, {"n_threads": 1}),
        "scikit-learn": (sklearn.cluster.MiniBatchKMeans, {}),
    }
    models = {name: fitted(kind, X, k, size, **own)[1] for name, (kind, own) in contenders.items()}
    oracle = fitted(MiniBatchKMeans, X, k, size, device="reference")[1].cluster_centers_
    if models["lloydia"].cluster_centers_.tobytes() != oracle.tobytes():
        sys.exit(f"{case}: the centres are not the oracle's")
    inertia = {name: assign(X, model.cluster_centers_)[1] for name, model in models.items()}
    if abs(inertia["scikit-learn"] / inertia["lloydia"] - 1) > 0.05:
        sys.exit(f"{case}: the inertias lie too far apart: {inertia}")
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(ROUNDS):
        for name, (kind, own) in contenders.items():
            seconds[name].append(fitted(kind, X, k, size, **own)[0])
    return {
        "bench": "minibatch",
        "case": f"{n:,}, {d}, {k}, batches of {size:,}",
        "steps": models["lloydia"].n_steps_,
        **{f"{name} ms": 1e3 * statistics.median(times) for name, times in seconds.items()},
        "ratio": statistics.median(
            theirs / ours for ours, theirs in zip(seconds["lloydia"], seconds["scikit-learn"])
        ),
        **{f"{name} inertia": value for name, value in inertia.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--save", action="store_true", help="append the rows to results/")
    options = parser.parse_args()
    busy, found = load(), []
    for case in CASES:
        with threadpool_limits(1):
            found.append({**measured(case), "load": busy})
        print({name: round(x, 2) if isinstance(x, float) else x for name, x in found[-1].items()})
    if options.save:
        print(f"kept in {keep('minibatch', found, Path(__file__).parent / 'results')}")


if __name__ == "__main__":
    main()
