"""A: one sequential and three CUDA versions, 300 iterations at n = 100 and 100,000.

The tutorial's finding: the GPU loses at 100 points and wins at 100,000, by most without atomics.
Its blocks have 1024 threads, and its C++ program has float64 where the GPU has float32.  Ours adds
the reduction that it weighed (points sorted by label), the kernels of the three versions one by
one, which explain their order, and its other stop rule: the objective falls by less than a
threshold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from lloydia.bench.sheets import Sheet
from lloydia.ladder.experiments import kernels
from lloydia.ladder.experiments.figures import bars, blank, compared, diamonds
from lloydia.ladder.experiments.lab import Lab, blobs
from lloydia.ladder.experiments.measurement import Measurement, pick
from lloydia.ladder.experiments.oracle import Trial
from lloydia.stopping import Inertia

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["TITLE", "draw", "run", "sheets"]

TITLE = "A: atomics, shared memory, masked trees"
K, ITERATIONS, MEANS, BLOCKS = 5, 300, 5, (1024,)
FIXED, DOUBLE, SETTLED = "300 iterations", "300 iterations in float64", "until J settles"
ONE = "r01_lloyd"
HOSTS = (ONE, "scikit-learn lloyd", "r30_engine_cpu")
CPU = ("r00_reference",)
VERSIONS = ("r12_atomics", "r15_all_on_gpu", "r22_masked_trees")
CUDA = (*VERSIONS, "r52_sorted_segments", "r31_engine_cuda")
SIZES = (100, 100_000)


def run(lab: Lab) -> Iterator[Measurement]:
    """Measure both sizes with a fixed number of iterations, and the larger until J settles."""
    contenders = lab.contenders(cpu=CPU, cuda=CUDA, hosts=HOSTS, blocks=BLOCKS)
    for n, k in dict.fromkeys(lab.size(n, K) for n in SIZES):
        X = blobs(n, k, "float32")
        start = X[np.random.default_rng(1).choice(n, k, replace=False)]
        fixed = Trial("A", FIXED, X, start, None, lab.iterations(ITERATIONS))
        yield from lab.measure(fixed, contenders, repeat=MEANS, mean=True)
        wide = X.astype(np.float64), start.astype(np.float64)
        double = Trial("A", DOUBLE, *wide, None, lab.iterations(ITERATIONS))
        yield from lab.measure(double, lab.contenders(hosts=(ONE,)), repeat=MEANS, mean=True)
        for version in lab.contenders(cuda=VERSIONS, blocks=BLOCKS):
            yield kernels.measure(lab, fixed, version)
    settled = Trial("A", SETTLED, X, start, Inertia(drop=1e-5 * n), lab.iterations(1000))
    yield from lab.measure(settled, contenders, repeat=MEANS, mean=True)


def sheets(found: Sequence[Measurement]) -> list[Sheet]:
    """Return a table for each size, one for the other stop rule, and one of the kernels.

    The program in float64 stands in the comparison with the document alone.
    """
    others = (kernels.PART, DOUBLE)
    kinds = dict.fromkeys(
        (each.n, each.part, each.dtype) for each in found if each.part not in others
    )
    tables = [
        compared(
            f"{n:,} points, {part}, {dtype}",
            [each for each in found if (each.n, each.part, each.dtype) == (n, part, dtype)],
            ONE,
        )
        for n, part, dtype in kinds
    ]
    if kernels.timed(found):
        of_kernels = kernels.sheet(found, FIXED)
        sizes = sorted({each.n for each in kernels.timed(found)})
        tables.append(replace(of_kernels, notes=[_verdict(found, n) for n in sizes]))
    return tables


def _verdict(found: Sequence[Measurement], n: int) -> str:
    """Say whether the three versions have the document's order, and what decides it."""
    runs = {each.rung: each for each in pick(found, part=FIXED, n=n, rung=VERSIONS)}
    alone = {each.rung: each for each in kernels.timed(found) if each.n == n and each.rung in runs}
    ours, in_kernels = _order(runs), _order(alone)
    theirs = list(reversed(VERSIONS))
    likeness = {tuple(theirs): "the same", VERSIONS: "reversed"}.get(tuple(ours), "another")
    shares = {rung: alone[rung].per_iteration / runs[rung].per_iteration for rung in alone}
    return (
        f"{n:,} points: the document has {_chain(theirs)} in time; ours is {_chain(ours)}, "
        f"{likeness}. {_deciders(shares)} By the kernels alone it is {_chain(in_kernels)}."
    )


def _deciders(shares: Mapping[str, float]) -> str:
    """Say in which rungs the kernels decide, by their share of an iteration, and where the host."""
    said = []
    deciders = {True: "kernels decide", False: "host that launches them decides"}
    for by_kernels, decides in deciders.items():
        some = {rung[1:3]: share for rung, share in shares.items() if (share > 0.5) == by_kernels}
        if some:
            *first, last = some
            called = f"{', '.join(first)} and {last}" if first else last
            ends = (f"{share:.0%}" for share in (min(some.values()), max(some.values())))
            part = " to ".join(dict.fromkeys(ends))
            said.append(f"In {called} the kernels take {part} of an iteration, so the {decides}.")
    return " ".join(said)


def _order(found: Mapping[str, Measurement]) -> list[str]:
    """Return the rungs from the fastest."""
    return sorted(found, key=lambda rung: found[rung].per_iteration)


def _chain(rungs: Sequence[str]) -> str:
    return " < ".join(f"{rung[1:3]} (CUDA {1 + VERSIONS.index(rung)})" for rung in rungs)


def draw(found: Sequence[Measurement]) -> dict[str, Figure]:
    """Draw the times of both sizes, with the tutorial's as diamonds, and the kernels."""
    some = pick(found, part=FIXED)
    sizes = sorted({each.n for each in some})
    k, most = max(each.k for each in some), max(each.max_iter for each in some)
    title = f"{most} iterations, k = {k}, {some[0].dtype}"
    figure, axes = blank(title, diamonds(some), columns=len(sizes))
    for ax, n in zip(axes, sizes):
        bars(ax, pick(some, n=n), lambda each: each.seconds or 0.0)
        ax.set_title(f"{n:,} points", loc="left")
    figures = {"times": figure}
    if kernels.timed(found):
        figures["kernels"] = kernels.draw(found, FIXED)
    return figures
