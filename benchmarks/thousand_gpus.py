"""What an iteration over 10**12 rows on 1,000 GPUs would take, from measured parts.

    python benchmarks/thousand_gpus.py        the table of docs/scale.md, as Markdown

Nothing here ran on 1,000 GPUs.  Computing is what one H200 was measured to take for a row
(benchmarks/results/nvidia-h200/peers.jsonl: runs of ten iterations, what is done once a fit
included), times the rows of a GPU.  What is sent follows from the package itself: the limbs of the
sums for so many rows, k (d + 1) integers of 8 bytes each; centres go back in float32.  Adding two
answers and dividing the total are timed where this script runs.  The network is assumed:

* in a host eight GPUs on NVLink, 450 GB/s each way (NVIDIA H200 data sheet: 900 GB/s both ways);
* between hosts 400 Gbit/s a GPU (NVIDIA DGX H200 data sheet: ConnectX-7), 10 us a message;
* or, for Dask over TCP: 10 Gbit/s a host, 1 ms a task (docs.dask.org, Best Practices: every task
  costs 200 us to 1 ms);
* rows that do not fit into a GPU's 141 GB come over PCIe, 64 GB/s each way (the same sheet).

A tree of fan 2 in each host, then between hosts, sums up: every level waits for a message, and
adds.  The centres take the same way back.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import numpy as np

from lloydia.exact import sums

N, GPUS, IN_HOST = 10**12, 1000, 8
MEMORY = 141e9
PCIE = 64e9

# Binary places from the largest magnitude of a feature to its smallest: what normal data of 10**12
# rows span.
SPAN = 45


@dataclass(frozen=True)
class Network:
    """Seconds a message, and bytes a second, in a host and between hosts."""

    name: str
    latency: float
    inside: float
    outside: float


NETWORKS = (
    Network("NVLink, 400 Gbit/s", 10e-6, 450e9, 50e9),
    Network("Dask, 10 Gbit/s", 1e-3, 1.25e9, 1.25e9),
)

# Features, clusters, and seconds a row of one H200 in float32.
MEASURED = (
    (3, 16, 0.44e-3 / 10e6),
    (16, 64, 0.46e-3 / 1e6),
    (128, 1024, 7.0e-3 / 8e6),
    (128, 4096, 3.4e-3 / 1e6),
    (768, 1024, 6.7e-3 / 1e6),
)


def timed(function: Callable[[], object]) -> float:
    """Return the seconds of a call, the median of five."""
    seconds = []
    for _ in range(5):
        begin = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - begin)
    return median(seconds)


def line(d: int, k: int, a_row: float) -> str:
    """Return a row of the table."""
    bits = sums.bits_a_limb(N)
    n_limbs = int(sums.limbs_for(SPAN, bits, np.dtype(np.float32)))
    sent, back = n_limbs * k * (d + 1) * 8, k * d * 4
    answers = np.ones((2, n_limbs, k, d + 1), dtype=np.int64)
    extent = sums.Extent(N, np.ones(d), np.full(d, 2.0**-SPAN))
    grid = sums.Grid.choose(extent, np.dtype(np.float32))
    add = timed(lambda: np.add(*answers, out=answers[0]))
    divide = timed(lambda: sums.means(answers[0], grid, np.dtype(np.float32)))
    own = N // GPUS * d * 4
    compute = a_row * N / GPUS
    beyond = max(own - MEMORY, 0) / PCIE
    within, levels = math.ceil(math.log2(IN_HOST)), math.ceil(math.log2(GPUS / IN_HOST))
    cells = [f"{d}, {k}", f"{own / 1e9:,.0f} GB", f"{n_limbs}", spell(sent), f"{within} + {levels}"]
    cells += [f"{compute:.2f} s", f"{beyond:.1f} s" if beyond else "none"]
    for network in NETWORKS:
        step = 0.0
        for a_level, speed in ((within, network.inside), (levels, network.outside)):
            step += a_level * (2 * network.latency + (sent + back) / speed + add)
        step += divide
        cells.append(f"{step * 1e3:.1f} ms ({step / (max(compute, beyond) + step):.1%})")
    return f"| {' | '.join(cells)} |"


def spell(count: int) -> str:
    """Return a number of bytes for people."""
    return f"{count / 1e6:.2f} MB" if count >= 1e6 else f"{count / 1e3:.1f} kB"


def main() -> None:
    heads = ["features, clusters", "rows of a GPU", "limbs", "sent up a step", "levels"]
    heads += ["computing", "over PCIe", *(f"reduce: {network.name}" for network in NETWORKS)]
    print(f"| {' | '.join(heads)} |")
    print(f"|{' --- |' * len(heads)}")
    for shape in MEASURED:
        print(line(*shape))


if __name__ == "__main__":
    main()
