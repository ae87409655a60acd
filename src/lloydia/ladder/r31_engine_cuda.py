"""Rung 31: Lloydia's engine on a GPU, ``KMeans(device="cuda")``.

What changed: everything; see :mod:`lloydia.backends.cuda`.  Few features are scanned in registers,
many by tensor cores in half precision with a certificate for what that cannot decide; sums are
integers, and only the rows that changed are added and subtracted; the kernels are written in
Triton, and iterations are queued as recorded launches, several before the host waits for the first.

It is driven one iteration at a time, so that it does as many as any rung: the estimator would end
at the first that changes nothing, and assign once more otherwise.  The points are on the GPU
before; the time includes all that the engine learns and arranges about them first.
"""

from __future__ import annotations

import time
from collections import deque

from numpy.typing import NDArray

from lloydia.backends import choose
from lloydia.backends.magnitudes import check_range
from lloydia.backends.reports import PendingReport
from lloydia.data.arrays import on_host
from lloydia.imports import load
from lloydia.ladder.rung import About, Outcome, Watch
from lloydia.stopping import Labels, Rule

ABOUT = About("Lloydia's engine, GPU", "TABCD", "cuda")


def fit(
    X: NDArray,
    centers: NDArray,
    *,
    rule: Rule | None,
    max_iter: int,
    threads: int = 1,
    block: int = 256,
) -> Outcome:
    """Run the engine on points that are on the GPU."""
    choose("cuda", X[:1], None, None)  # It says what is missing, if anything is.
    torch = load("torch")
    placed = torch.from_numpy(X).to("cuda")
    torch.cuda.synchronize()
    watch = Watch(rule, max_iter, len(X))
    began = time.perf_counter()
    engine = choose("cuda", placed, None, None)
    check_range(engine, None, centers)
    engine.start(centers, "lloyd", empty_stops=False)
    # Iterations past the end must leave the labels of the last: past strict convergence they do.
    lag = engine.lag if rule is None or rule == Labels() else 0
    waiting: deque[PendingReport] = deque()
    queued, over = 0, False
    while not over:
        while queued < max_iter and len(waiting) <= lag:
            waiting.append(engine.iterate(watch.needs_inertia))
            queued += 1
        report = waiting.popleft().result()
        over = watch.over(report.n_changed, report.move, report.inertia)
    engine.rewind(watch.n_iter)
    torch.cuda.synchronize()
    seconds = time.perf_counter() - began
    labels, centers = on_host(engine.labels()), on_host(engine.centers())
    return Outcome(labels, centers, watch.n_iter, seconds)
