"""What an iteration over 10**12 rows on 1,000 GPUs would take, from measured parts.

    python benchmarks/thousand_gpus.py        the table of docs/scale.md, as Markdown

Nothing here ran on 1,000 GPUs.  Computing is what one H200 was measured to take for a row
(benchmarks/results/nvidia-h200/peers.jsonl: runs of ten iterations, what is done once a fit
included), times the rows of a GPU.  What is sent follows from the package itself: the limbs of the
sums for so many rows, k (d + 1) integers of 8 bytes each; centres go back in float32.  The network
is assumed:

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
from dataclasses import dataclass

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
    """Seconds a message; bytes a second in a host, between hosts, and when an answer is added."""

    name: str
    latency: float
    inside: float
    outside: float
    adding: float


# Bytes a second, measured: the sums of three H200s, 1024 x 129 integers each, copied to a fourth
# and added in 0.12 ms (docs/scale.md); and a copy by one thread of the README's processor, of
# which adding is three.
ON_GPU = 3 * 1024 * 129 * 8 / 0.12e-3
ON_HOST = 28e9 / 3

NETWORKS = (
    Network("NVLink, 400 Gbit/s", 10e-6, 450e9, 50e9, ON_GPU),
    Network("Dask, 10 Gbit/s", 1e-3, 1.25e9, 1.25e9, ON_HOST),
)

# Features, clusters, and seconds a row of one H200 in float32.
MEASURED = (
    (3, 16, 0.142e-3 / 10e6),
    (16, 64, 0.113e-3 / 1e6),
    (128, 1024, 6.08e-3 / 8e6),
    (128, 4096, 2.24e-3 / 1e6),
    (768, 1024, 4.98e-3 / 1e6),
)


def line(d: int, k: int, a_row: float) -> str:
    """Return a row of the table."""
    bits = sums.bits_a_limb(N)
    n_limbs = int(sums.limbs_for(SPAN, bits, np.dtype(np.float32)))
    sent, back = n_limbs * k * (d + 1) * 8, k * d * 4
    own = N // GPUS * d * 4
    compute = a_row * N / GPUS
    beyond = max(own - MEMORY, 0) / PCIE
    within, levels = math.ceil(math.log2(IN_HOST)), math.ceil(math.log2(GPUS / IN_HOST))
    cells = [f"{d}, {k}", f"{own / 1e9:,.0f} GB", f"{n_limbs}", spell(sent), f"{within} + {levels}"]
    cells += [f"{compute:.2f} s", f"{beyond:.1f} s" if beyond else "none"]
    for network in NETWORKS:
        step = 0.0
        for a_level, speed in ((within, network.inside), (levels, network.outside)):
            step += a_level * (2 * network.latency + (sent + back) / speed + sent / network.adding)
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
