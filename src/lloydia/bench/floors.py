"""What the machine can do: bandwidth and matrix products, measured in the same run as the peers.

An iteration reads X once, writes a label a row, and takes ``2 n d k`` operations for its scores; it
cannot be faster than either at the rates measured here.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np

from lloydia.bench.cases import Case

__all__ = ["floor", "rates"]

LARGE = 1 << 26  # numbers of 4 bytes: 256 MB, far beyond any cache
ORDER = 2048
REPEATS = 7


def rates(threads: int) -> dict[str, float]:
    """Return copy and read bandwidth in GB/s (a copy counts both ways), gemm in GFLOP/s."""
    from threadpoolctl import threadpool_limits

    source = np.ones(LARGE, dtype=np.float32)
    target = np.zeros(LARGE, dtype=np.float32)
    parts = list(zip(np.array_split(source, threads), np.array_split(target, threads)))
    with ThreadPoolExecutor(threads) as pool, threadpool_limits(1):
        copies = [partial(np.copyto, to, of) for of, to in parts]
        reads = [partial(np.dot, of, of) for of, _ in parts]
        found = {
            "copy_gbs": 2 * source.nbytes / _fastest(lambda: _all(pool, copies)) / 1e9,
            "read_gbs": source.nbytes / _fastest(lambda: _all(pool, reads)) / 1e9,
        }
    with threadpool_limits(threads):
        for dtype in ("float32", "float64"):
            A = np.ones((ORDER, ORDER), dtype=dtype)
            B = np.empty_like(A)
            seconds = _fastest(partial(np.matmul, A, A, out=B))
            found[f"gemm_{dtype}_gflops"] = 2 * ORDER**3 / seconds / 1e9
    return found


def floor(case: Case, rates: dict[str, float]) -> float:
    """Return the seconds below which an iteration cannot be."""
    size = np.dtype(case.dtype).itemsize
    arithmetic = 2 * case.n * case.d * case.k / rates[f"gemm_{case.dtype}_gflops"]
    traffic = case.n * (case.d * size + 4) / rates["read_gbs"]
    return max(arithmetic, traffic) / 1e9


def _all(pool: ThreadPoolExecutor, jobs: list[partial]) -> None:
    for _ in pool.map(lambda job: job(), jobs):
        pass


def _fastest(function: Callable[[], object]) -> float:
    seconds = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - begin)
    return min(seconds)
