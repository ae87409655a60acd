"""Rung 14: rung 13 with the centres in shared memory, as B has it ("shared").

What changed from rung 13: the threads of a block first copy the centres into the memory that they
share, and compare with the copies; many centres come a chunk at a time (:mod:`staging`).

Why it should help: every thread reads all k d coordinates of the centres.  From shared memory they
come without a trip to the cache, which is left to the points.

B put the centres into shared memory, which made its run a little faster at 2 coordinates and slower
at 16.  With blocks of 1024 it is the version whose phases B prints: the host's means take 56 % of
the time, the kernel 25 %, the labels' way back 19 %.
"""

from __future__ import annotations

from numpy.typing import NDArray

from lloydia.ladder.device import Placed, cuda
from lloydia.ladder.r10_naive import relabel, round_trip
from lloydia.ladder.rung import About, Outcome
from lloydia.ladder.staging import capacity, nearest_staged
from lloydia.stopping import Labels, Rule

ABOUT = About(
    "transposed, centres in shared memory",
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
    """Run rung 13 with staged centres."""
    on = Placed(X, centers, block, order="F")
    held = capacity(centers)
    shared = held * centers[0].nbytes

    def scan() -> None:
        assign[on.blocks, block, 0, shared](on.X, on.centers, held, on.labels, on.changed)

    return round_trip(on, X, centers, scan, rule, max_iter)


@cuda.jit
def assign(X, centers, held, labels, changed):
    """Label every point, a thread a point, and count the changes."""
    staged = cuda.shared.array(0, X.dtype)
    i = cuda.grid(1)
    best = nearest_staged(X, i, centers, staged, held)
    if i < X.shape[0]:
        relabel(labels, i, best, changed)
