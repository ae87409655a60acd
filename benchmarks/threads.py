"""The gain of a second thread, compared with the gain of a second process.

    python benchmarks/threads.py --save      about two minutes on two idle cores

An iteration of Lloyd's algorithm is timed on one thread and on two, in turns.  The figure is
(T(b) - T(a)) / (b - a), where T(m) is the median time of m iterations.  No figure is shown unless
both give the same result, to the last bit.  For the factor of the machine itself, one process, and
then two at once, each on a core of its own, multiply matrices or read memory.  If both cores share
hardware, power or bandwidth, this factor is below 2, and no library can exceed it.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from lloydia import KMeans
from lloydia.bench.cases import Case, named, start, table
from lloydia.bench.machine import keep, load

CASES = ("1M,16,64", "500k,32,1000", "200k,128,1024", "1M,2,100,f64")
ROUNDS = 5

# Seconds that processes work at once, and that they have to begin.
WINDOW, LEAD = 2.0, 1.0


def rate(kind: str, core: int, begin: float) -> float:
    """Return the products of a second, or the gigabytes, from `begin` on, on one core."""
    os.sched_setaffinity(0, {core})
    A = np.ones((1024, 1024), dtype=np.float32)
    B, memory = np.empty_like(A), np.ones(1 << 26, dtype=np.float32)

    def work() -> float:
        if kind == "sgemm":
            np.matmul(A, A, out=B)
            return 2e-9 * A.shape[0] ** 3
        np.dot(memory, memory)
        return 1e-9 * memory.nbytes

    with threadpool_limits(1):
        work()
        time.sleep(max(0.0, begin - time.time()))
        done, now = 0.0, time.perf_counter()
        end = now + WINDOW
        while (last := time.perf_counter()) < end:
            done += work()
    return done / (last - now)


def machine(kind: str, cores: list[int]) -> dict[str, object]:
    """Return what one process reaches, and what two reach together."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        # Both have begun, and imported what they need, before the first one counts.
        list(pool.map(rate, [kind] * 2, cores, [0.0] * 2))
        alone = pool.submit(rate, kind, cores[0], time.time() + LEAD).result()
        both = sum(pool.map(rate, [kind] * 2, cores, [time.time() + LEAD] * 2))
    unit = "GFLOP/s" if kind == "sgemm" else "GB/s"
    return {
        "what": f"processes of {kind}, {unit}",
        "one": alone,
        "two": both,
        "factor": both / alone,
    }


def seconds(case: Case, X: NDArray, C: NDArray, m: int, threads: int) -> tuple[float, bytes]:
    """Return how long so many iterations take, and the centres that they end at."""
    model = KMeans(
        case.k, init=C, n_init=1, max_iter=m, tol=0, algorithm="lloyd", n_threads=threads
    )
    begin = time.perf_counter()
    model.fit(X)
    return time.perf_counter() - begin, model.cluster_centers_.tobytes()


def iterations(case: Case) -> dict[str, object]:
    """Return what an iteration takes on one thread and on two, in milliseconds."""
    X = case.rows()
    C = start(case, X)
    a, b = case.iterations
    times: dict[int, list[float]] = {1: [], 2: []}
    for turn in range(1 + ROUNDS):
        ends = set()
        for threads, found in times.items():
            short, _ = seconds(case, X, C, a, threads)
            long, end = seconds(case, X, C, a + b, threads)
            ends.add(end)
            if turn:  # the first may compile
                found.append(1e3 * (long - short) / b)
        if len(ends) > 1:
            sys.exit(f"{case.name}: two threads end at other bits than one")
    one, two = (statistics.median(found) for found in times.values())
    factor = statistics.median(x / y for x, y in zip(*times.values()))
    return {"what": f"iteration of {case.name}, ms", "one": one, "two": two, "factor": factor}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    parser.add_argument("--save", action="store_true", help="append the rows to results/")
    options = parser.parse_args()
    cores, busy, found = sorted(os.sched_getaffinity(0))[:2], load(), []
    if len(cores) < 2:
        sys.exit("there is one core: a second thread has nowhere to run")
    cases = named(table(), CASES, ["iterations"])
    if options.quick:
        cases = [case.tenth() for case in cases]
    jobs = [lambda kind=kind: machine(kind, cores) for kind in ("sgemm", "reading")]
    for job in [*jobs, *(lambda case=case: iterations(case) for case in cases)]:
        found.append({**job(), "load": busy})
        row = found[-1]
        print(f"{row['what']:32} {row['one']:9.3f} {row['two']:9.3f}   {row['factor']:.2f}x")
    if options.save and not options.quick:
        print(f"kept in {keep('threads', found, Path(__file__).parent / 'results')}")


if __name__ == "__main__":
    main()
