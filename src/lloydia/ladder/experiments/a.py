"""A: one sequential and three CUDA versions, 300 iterations at n = 100 and 100,000.

The tutorial's finding: the GPU loses at 100 points and wins at 100,000, by most without atomics.
Ours adds the same with the tutorial's other stop rule, that the objective falls by less than a
threshold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from lloydia.bench.sheets import Sheet
from lloydia.ladder.experiments.figures import bars, blank, compared
from lloydia.ladder.experiments.lab import Lab, blobs
from lloydia.ladder.experiments.measurement import Measurement, pick
from lloydia.ladder.experiments.oracle import Trial
from lloydia.stopping import Inertia

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["TITLE", "draw", "run", "sheets"]

TITLE = "A: atomics, shared memory, masked trees"
K, ITERATIONS, MEANS = 5, 300, 5
HOSTS = ("r01_lloyd", "scikit-learn lloyd", "r30_engine_cpu")
CPU = ("r00_reference",)
CUDA = ("r12_atomics", "r15_all_on_gpu", "r22_masked_trees", "r31_engine_cuda")
SIZES = (100, 100_000)


def run(lab: Lab) -> Iterator[Measurement]:
    """Measure both sizes with a fixed number of iterations, and the larger until J settles."""
    contenders = lab.contenders(cpu=CPU, cuda=CUDA, hosts=HOSTS)
    for source in SIZES:
        n, k = lab.size(source, K)
        X = blobs(n, k, "float32")
        start = X[np.random.default_rng(1).choice(n, k, replace=False)]
        fixed = Trial("A", "300 iterations", X, start, None, lab.iterations(ITERATIONS))
        yield from lab.measure(fixed, contenders, repeat=MEANS, mean=True)
    settled = Trial("A", "until J settles", X, start, Inertia(drop=1e-5 * n), lab.iterations(1000))
    yield from lab.measure(settled, contenders, repeat=MEANS, mean=True)


def sheets(found: Sequence[Measurement]) -> list[Sheet]:
    """Return a table for each size, and one for the other stop rule."""
    parts = dict.fromkeys((each.n, each.part) for each in found)
    return [
        compared(
            f"{n:,} points, {part}",
            [each for each in found if (each.n, each.part) == (n, part)],
            "r01_lloyd",
        )
        for n, part in parts
    ]


def draw(found: Sequence[Measurement]) -> dict[str, Figure]:
    """Draw the times of both sizes, with the tutorial's as diamonds."""
    sizes = sorted({each.n for each in pick(found, part="300 iterations")})
    title = f"{ITERATIONS} iterations, k = {K}"
    figure, axes = blank(title, "diamonds: the tutorial's own", columns=len(sizes))
    for ax, n in zip(axes, sizes):
        bars(ax, pick(found, part="300 iterations", n=n), lambda each: each.seconds or 0.0)
        ax.set_title(f"{n:,} points", loc="left")
    return {"times": figure}
