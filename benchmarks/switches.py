"""What each mechanism of the GPU engine brings: fits with it and without it, in turns.

python benchmarks/switches.py [--save] [--rounds 11]

Rows and the first centres are on the GPU.  Each fit does ten iterations; the last case does two
hundred, since bounds are kept only late in long runs.  Figures are medians; all fits
of a case must give the same bits.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import torch

from lloydia import KMeans
from lloydia.backends.cuda import options
from lloydia.bench.machine import keep

CASES = (
    (256, 2, 16, 10), (100_000, 2, 5, 10), (1_000_000, 2, 100, 10), (10_000_000, 3, 16, 10),
    (1_000_000, 16, 64, 10), (1_000_000, 64, 256, 10), (1_000_000, 768, 1024, 10),
    (1_000_000, 128, 1024, 200),
)  # fmt: skip
CONTENDERS = {"nothing": (), **{name: (name,) for name in options.SWITCHES}}
# Fits that compile and record before the clock counts.
WARM = 2


def fit(X: torch.Tensor, k: int, n_iter: int) -> tuple[float, str, int]:
    """Return a fit's seconds, the SHA-256 of its result, and its iterations."""
    model = KMeans(k, init=X[:k].clone(), n_init=1, tol=0.0, max_iter=n_iter)
    torch.cuda.synchronize()
    began = time.perf_counter()
    model.fit(X)
    torch.cuda.synchronize()
    took = time.perf_counter() - began
    sha = hashlib.sha256(model.labels_.cpu().numpy().tobytes())
    sha.update(model.cluster_centers_.cpu().numpy().tobytes())
    sha.update(repr(model.inertia_).encode())
    return took, sha.hexdigest(), model.n_iter_


def measure(n: int, d: int, k: int, n_iter: int, rounds: int) -> Iterator[dict[str, Any]]:
    """Measure one case, a line for each mechanism that is left out.

    Raises
    ------
    RuntimeError
        Two of the fits differ.
    """
    generator = torch.Generator("cuda").manual_seed(0)
    middles = 4.0 * torch.rand((2 * k, d), generator=generator, device="cuda")
    owner = torch.randint(0, 2 * k, (n,), generator=generator, device="cuda")
    X = middles[owner] + torch.randn((n, d), generator=generator, device="cuda")
    seconds: dict[str, list[float]] = {contender: [] for contender in CONTENDERS}
    results, done = set(), 0
    for turn in range(WARM + rounds):
        for contender, off in CONTENDERS.items():
            with options.without(*off):
                took, result, done = fit(X, k, n_iter)
            results.add(result)
            if turn >= WARM:
                seconds[contender].append(took)
    if len(results) > 1:
        raise RuntimeError(f"Fits of {n} x {d}, k = {k} differ: a switch changes the result.")
    whole = median(seconds["nothing"])
    for contender, took in seconds.items():
        yield {
            "device": torch.cuda.get_device_name(), "n": n, "d": d, "k": k, "iterations": done,
            "without": contender, "ms": round(1e3 * median(took), 4),
            "ratio": round(median(took) / whole, 3),
        }  # fmt: skip


def main() -> None:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--save", action="store_true", help="keep the figures")
    parser.add_argument("--out", type=Path, help="the folder to keep them in")
    chosen = parser.parse_args()
    rows = []
    for case in CASES:
        for row in measure(*case, chosen.rounds):
            rows.append(row)
            print(
                f"{row['n']:>10,} x {row['d']:<4} k = {row['k']:<5} without {row['without']:<22}"
                f"{row['ms']:>10.3f} ms {row['ratio']:>7.2f} x",
                flush=True,
            )
    if chosen.out:
        print(keep("switches", rows, chosen.out))
    elif chosen.save:
        print(keep("switches", rows))


if __name__ == "__main__":
    sys.exit(main())
