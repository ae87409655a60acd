"""Fits on a Dask cluster of two processes, beside dask-ml's KMeans and one process.

    python benchmarks/cluster.py               (5M, 16, 64) in 16 chunks: five minutes on two cores
    python benchmarks/cluster.py --rows 500000 --save

It needs ``pip install 'dask[array,dataframe]' distributed dask-ml``.  Every library has the same
rows, start and number of iterations; before any time is shown, the centres are compared: with one
process bit for bit, with dask-ml as far as its rounding lets them agree.  Times are medians of fits
that take turns.  The last line is what an iteration costs that has nothing to compute: asking and
hearing.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from importlib.metadata import version
from statistics import median
from typing import Any

import dask.array as da
import numpy as np
from dask_ml.cluster import KMeans as DaskML
from distributed import Client, LocalCluster, wait
from numpy.typing import NDArray

from lloydia import KMeans
from lloydia.backends import choose
from lloydia.backends.cluster.partitions import place
from lloydia.bench import machine

CHUNKS, ITERATIONS, TURNS = 16, 10, 3


def block(number: int, n: int, d: int, k: int) -> NDArray[np.float32]:
    """Return some rows of k overlapping blobs: the same for the same number."""
    middles = np.random.default_rng(0).normal(size=(k, d)) * 2
    rng = np.random.default_rng([1, number])
    rows = rng.normal(size=(n, d)) + middles[rng.integers(k, size=n)]
    return rows.astype(np.float32)


def rows_of(client: Client, n: int, d: int, k: int) -> da.Array:
    """Have the workers make the rows, and hold them."""
    size = n // CHUNKS
    numbers = da.arange(CHUNKS, chunks=1)
    X = numbers.map_blocks(
        lambda p: block(int(p[0]), size, d, k), new_axis=1, dtype=np.float32,
        chunks=((size,) * CHUNKS, (d,)), meta=np.empty((0, d), np.float32),
    ).persist()  # fmt: skip
    wait(X)
    return X


def ours(X: Any, start: NDArray) -> KMeans:
    """Fit so many iterations, after which rows are assigned once more."""
    return KMeans(len(start), init=start, max_iter=ITERATIONS, tol=0).fit(X)


def theirs(X: da.Array, start: NDArray) -> DaskML:
    """Fit as many iterations of dask-ml's."""
    return DaskML(len(start), init=start, max_iter=ITERATIONS, tol=0).fit(X)


def turns(sides: dict[str, Callable[[], Any]], count: int) -> dict[str, float]:
    """Return the median seconds of each side, all taking turns."""
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(count):
        for name, side in sides.items():
            begin = time.perf_counter()
            side()
            seconds[name].append(time.perf_counter() - begin)
    return {name: median(times) for name, times in seconds.items()}


def compare(X: da.Array, local: NDArray, start: NDArray) -> float:
    """Return how far dask-ml's centres are from ours at most; ours must have one process's bits."""
    far, near, other = ours(X, start), ours(local, start), theirs(X, start)
    assert far.cluster_centers_.tobytes() == near.cluster_centers_.tobytes()
    assert (far.labels_.compute() == near.labels_).all()
    assert far.n_iter_ == near.n_iter_ == other.n_iter_ == ITERATIONS
    return float(np.abs(far.cluster_centers_ - other.cluster_centers_).max())


def overhead(client: Client, d: int, k: int) -> float:
    """Return the milliseconds of an iteration over almost nothing."""
    X = rows_of(client, 100 * CHUNKS, d, k)
    with client.as_current():
        engine = choose("auto", place(X), None, None)
    engine.start(X[:k].compute(), "lloyd")
    seconds = []
    for _ in range(100):
        begin = time.perf_counter()
        engine.iterate(False)
        seconds.append(time.perf_counter() - begin)
    return 1e3 * median(seconds)


def main() -> None:
    """Run, print a table, and keep it where asked."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--features", type=int, default=16)
    parser.add_argument("--clusters", type=int, default=64)
    parser.add_argument("--save", action="store_true", help="append to benchmarks/results")
    given = parser.parse_args()
    n, d, k = given.rows // CHUNKS * CHUNKS, given.features, given.clusters
    busy = machine.load()
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        X = rows_of(client, n, d, k)
        local = X.compute()
        start = local[np.linspace(0, n - 1, k).astype(int)]
        apart = compare(X, local, start)
        sides = {
            "lloydia, 2 processes": lambda: ours(X, start),
            "lloydia, 1 process, 2 threads": lambda: ours(local, start),
            "dask-ml, 2 processes": lambda: theirs(X, start),
        }
        seconds = turns(sides, TURNS)
        asking = overhead(client, d, k)
    print(f"({n}, {d}, {k}) float32, {CHUNKS} chunks, {ITERATIONS} iterations, seconds a fit")
    for name, value in seconds.items():
        print(f"{name:<32} {value:8.2f}")
    print(f"centres of dask-ml differ by at most {apart:.1e}")
    print(f"an iteration over nothing: {asking:.1f} ms")
    if given.save:
        common = {"n": n, "d": d, "k": k, "chunks": CHUNKS, "iterations": ITERATIONS, "load": busy}
        peers = {name: version(name) for name in ("dask", "distributed", "dask-ml")}
        rows = [{**common, **peers, "side": s, "seconds": t} for s, t in seconds.items()]
        rows.append({**common, **peers, "side": "asking", "seconds": asking / 1e3})
        print(machine.keep("cluster", rows))


if __name__ == "__main__":
    main()
