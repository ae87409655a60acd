"""Fits on a Dask cluster of two processes, compared with dask-ml's KMeans and with one process.

    python benchmarks/cluster.py               (5M, 16, 64) in 16 chunks: five minutes on two cores
    python benchmarks/cluster.py --rows 500000 --save

It needs ``pip install 'dask[array,dataframe]' distributed dask-ml``.  All contenders have the same
rows, start and number of iterations.  Before any time is shown, the results are compared: on the
cluster they must be those of one process to the last bit; the largest difference from dask-ml's
centres, which rounds differently, is printed.  The contenders take turns, and times are medians.
Seedings are timed as well: on the cluster they must choose the same rows as in one process, and
dask-ml's k-means|| has as many rounds, of as many rows.  The last line is the time of an iteration
over almost no rows, which is the time of communication.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from statistics import median
from typing import Any

import dask.array as da
import numpy as np
from dask_ml.cluster import KMeans as DaskML
from dask_ml.cluster.k_means import k_init
from distributed import Client, LocalCluster, wait
from numpy.typing import NDArray

from lloydia import KMeans
from lloydia.backends import choose
from lloydia.backends.cluster.partitions import place
from lloydia.bench import machine
from lloydia.seeding import SEEDINGS

INITS = "k-means++", "k-means||"
# Rounds of k-means||, each of which draws about 2 k rows, as in Lloydia.
SEEDING_ROUNDS = 5
CHUNKS, ITERATIONS, TIMING_ROUNDS = 16, 10, 3
NO_ROWS = "an iteration over almost no rows"


def block(number: int, n: int, d: int, k: int) -> NDArray[np.float32]:
    """Return some rows of k overlapping blobs; `number` is their seed."""
    middles = np.random.default_rng(0).normal(size=(k, d)) * 2
    rng = np.random.default_rng([1, number])
    rows = rng.normal(size=(n, d)) + middles[rng.integers(k, size=n)]
    return rows.astype(np.float32)


def rows_of(client: Client, n: int, d: int, k: int) -> da.Array:
    """Return rows that the workers make and hold."""
    size = n // CHUNKS
    numbers = da.arange(CHUNKS, chunks=1)
    X = numbers.map_blocks(
        lambda p: block(int(p[0]), size, d, k), new_axis=1, dtype=np.float32,
        chunks=((size,) * CHUNKS, (d,)), meta=np.empty((0, d), np.float32),
    ).persist()  # fmt: skip
    wait(X)
    return X


def ours(X: Any, start: NDArray) -> KMeans:
    """Fit Lloydia: ITERATIONS iterations and a last assignment."""
    return KMeans(len(start), init=start, max_iter=ITERATIONS, tol=0).fit(X)


def theirs(X: da.Array, start: NDArray) -> DaskML:
    """Fit dask-ml: as many iterations."""
    return DaskML(len(start), init=start, max_iter=ITERATIONS, tol=0).fit(X)


def take_turns(contenders: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Return the median seconds of each contender; each round runs every contender once."""
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, contender in contenders.items():
            begin = time.perf_counter()
            contender()
            seconds[name].append(time.perf_counter() - begin)
    return {name: median(times) for name, times in seconds.items()}


def compare(X: da.Array, local: NDArray, start: NDArray) -> float:
    """Compare the results of all contenders; return the largest difference from dask-ml's centres.

    Raises
    ------
    RuntimeError
        The result on the cluster is not that of one process, or a contender did another number of
        iterations.
    """
    far, near, other = ours(X, start), ours(local, start), theirs(X, start)
    if far.cluster_centers_.tobytes() != near.cluster_centers_.tobytes():
        raise RuntimeError("The cluster has other centres than one process.")
    if (far.labels_.compute() != near.labels_).any():
        raise RuntimeError("The cluster has other labels than one process.")
    counts = far.n_iter_, near.n_iter_, other.n_iter_
    if counts != (ITERATIONS,) * 3:
        raise RuntimeError(f"The contenders did {counts} iterations, not {ITERATIONS} each.")
    return float(np.abs(far.cluster_centers_ - other.cluster_centers_).max())


def seedings(client: Client, X: da.Array, local: NDArray, k: int) -> dict[str, Callable[[], Any]]:
    """Return the contenders of seedings.

    Raises
    ------
    RuntimeError
        A seeding of the cluster chose other rows than that of one process.
    """
    with client.as_current():
        engines = {
            "2 processes": choose("auto", place(X), None, None),
            "1 process, 2 threads": choose("auto", local, None, None),
        }
    found: dict[str, Callable[[], Any]] = {}
    for init in INITS:
        for where, engine in engines.items():
            found[f"{init}, {where}"] = partial(picks, engine, k, init)
        first, second = (found[f"{init}, {where}"]() for where in engines)
        if (first != second).any():
            raise RuntimeError(f"{init} chooses other rows on the cluster than in one process.")
    found["k-means|| of dask-ml, 2 processes"] = partial(
        k_init,
        X,
        k,
        "k-means||",
        random_state=0,
        max_iter=SEEDING_ROUNDS,
        oversampling_factor=2 * k,
    )
    return found


def picks(engine: Any, k: int, init: str) -> NDArray[np.int64]:
    """Return the rows that a seeding chooses."""
    return SEEDINGS[init](engine, k, np.random.RandomState(0))


def overhead(client: Client, d: int, k: int) -> float:
    """Return the milliseconds of an iteration over almost no rows: those of communication."""
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
    """Time all contenders, print a table and, with --save, append it to the results."""
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
        difference = compare(X, local, start)
        contenders = {
            "lloydia, 2 processes": lambda: ours(X, start),
            "lloydia, 1 process, 2 threads": lambda: ours(local, start),
            "dask-ml, 2 processes": lambda: theirs(X, start),
        }
        seconds = take_turns(contenders, TIMING_ROUNDS)
        seconds |= take_turns(seedings(client, X, local, k), TIMING_ROUNDS)
        communication = overhead(client, d, k)
    print(f"({n}, {d}, {k}) float32, {CHUNKS} chunks: seconds of fits ({ITERATIONS} iterations),")
    print("then of seedings")
    for name, value in seconds.items():
        print(f"{name:<36} {value:8.2f}")
    print(f"centres of dask-ml differ by at most {difference:.1e}")
    print(f"{NO_ROWS}: {communication:.1f} ms")
    if given.save:
        common = {"n": n, "d": d, "k": k, "chunks": CHUNKS, "iterations": ITERATIONS, "load": busy}
        peers = {name: version(name) for name in ("dask", "distributed", "dask-ml")}
        every = {**seconds, NO_ROWS: communication / 1e3}
        rows = [{**common, **peers, "contender": name, "seconds": t} for name, t in every.items()]
        print(machine.keep("cluster", rows))


if __name__ == "__main__":
    main()
