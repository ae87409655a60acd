"""Rung 10: the nearest centre on the GPU, and all else on the CPU, as B begins ("naive").

What changed from rung 1: one thread a point finds the nearest centre, so tens of thousands work at
the same time.  A thread whose label changed adds one to a counter on the GPU.  The arrays are as
they were on the CPU, row after row.  In every iteration the labels and the counter go back to the
host, which computes the means and sends the centres.

Why it should help: the k distances of a point are nearly all the arithmetic, and no point needs
another's.  What is left sets the limit: a pass over the points on one thread of the host, and n
labels over the bus, however fast the kernel is (Amdahl 1967).  The outcome separates these phases;
the points themselves are there before, so ``upload`` is that of the centres.

B moved the assignment alone to a V100, and printed a run 7 to 8 times as fast as its sequential
program.  Of the iteration it left the means, which are more than half of the time, on the CPU.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from numpy.typing import NDArray

from lloydia.ladder.device import Placed, cuda
from lloydia.ladder.nearest import nearest
from lloydia.ladder.r01_lloyd import means as means_on_host
from lloydia.ladder.rung import About, Outcome
from lloydia.stopping import Labels, Rule

ABOUT = About(
    "naive: nearest centre on the GPU, means on the CPU",
    "B",
    "cuda",
    uses=frozenset({"block"}),
    stop=Labels(0.001),
)


def fit(
    X: NDArray,
    centers: NDArray,
    *,
    rule: Rule | None,
    max_iter: int,
    threads: int = 1,
    block: int = 256,
) -> Outcome:
    """Run Lloyd's method with the assignment alone on the GPU."""
    on = Placed(X, centers, block)

    def scan() -> None:
        assign[on.blocks, block](on.X, on.centers, on.labels, on.changed)

    return round_trip(on, X, centers, scan, rule, max_iter)


@cuda.jit
def assign(X, centers, labels, changed):
    """Label every point, a thread a point, and count the changes."""
    i = cuda.grid(1)
    if i < X.shape[0]:
        relabel(labels, i, nearest(X, i, centers), changed)


@cuda.jit(device=True)
def relabel(labels, i, best, changed):
    """Give a point its label, and count it if that is another."""
    if labels[i] != best:
        cuda.atomic.add(changed, 0, 1)
    labels[i] = best


def round_trip(
    on: Placed,
    X: NDArray,
    centers: NDArray,
    scan: Callable[[], object],
    rule: Rule | None,
    max_iter: int,
) -> Outcome:
    """Descend with labels found by `scan` on the GPU, and means of the rows of X on the host."""
    phases = dict.fromkeys(("upload", "kernels", "download", "host"), 0.0)
    labels = on.labels.copy_to_host()
    copied = {
        "bytes uploaded": float(centers.nbytes),
        "bytes downloaded": float(labels.nbytes + on.changed.dtype.itemsize),
    }

    @contextmanager
    def phase(name: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        cuda.synchronize()
        phases[name] += time.perf_counter() - began

    def assign_on_device() -> None:
        with phase("kernels"):
            scan()
        with phase("download"):
            on.labels.copy_to_host(labels)

    def means() -> None:
        nonlocal centers
        with phase("host"):
            centers = means_on_host(X, labels, centers)
        with phase("upload"):
            on.centers.copy_to_device(centers)

    def n_changed() -> int:
        with phase("download"):
            return on.n_changed()

    return on.descend(
        assign_on_device, means, rule, max_iter, n_changed=n_changed, phases=phases, figures=copied
    )
