"""Rung 30: Lloydia's engine on the CPU, ``KMeans(device="cpu")``.

What changed: everything; see :mod:`lloydia.backends.cpu`.  Vectors of points and of centres in
registers, distances in float32 or in matrix units with a certificate for what they cannot decide,
bounds or boxes of neighbouring rows that skip the rest, integer sums of only those rows that
changed, and a pool of threads that takes blocks as it becomes free.

It is driven one iteration at a time, so that it does as many as any rung: the estimator would end
at the first that changes nothing, and assign once more otherwise.  The time includes all that the
engine learns and arranges about the rows first.
"""

from __future__ import annotations

import time

from numpy.typing import NDArray

from lloydia.backends import choose
from lloydia.backends.magnitudes import check_range
from lloydia.backends.numpy_first import compiled_only
from lloydia.ladder.rung import About, Outcome, Watch
from lloydia.stopping import Rule

ABOUT = About("Lloydia's engine, CPU", "TABCD", "cpu", uses=frozenset({"threads"}))


def fit(
    X: NDArray,
    centers: NDArray,
    *,
    rule: Rule | None,
    max_iter: int,
    threads: int = 1,
    block: int = 256,
) -> Outcome:
    """Run the engine with its own choice of algorithm."""
    watch = Watch(rule, max_iter, len(X))
    began = time.perf_counter()
    with compiled_only():
        engine = choose("cpu", X, None, threads)
    check_range(engine, None, centers)
    engine.start(centers, "auto", empty_stops=False, max_iter=max_iter)
    over = False
    while not over:
        report = engine.iterate(watch.needs_inertia).result()
        over = watch.over(report.n_changed, report.move, report.inertia)
    seconds = time.perf_counter() - began
    return Outcome(engine.labels(), engine.centers(), watch.n_iter, seconds)
