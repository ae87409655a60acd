"""Rung 50: rung 11 until no label changes, with the changes counted on the GPU, as C tried first.

What changed from rung 11: the kernel of the minimum compares each label with the one before, and a
thread whose label changes adds 1 to one number by an atomic addition.  The host reads that number,
not the centres.

Why it should help: four bytes cross the bus in an iteration.  But all changes queue at one address,
and a warp waits for those of its threads that change.

C counted so to end when no point changes its cluster, and dropped it: comparing the centres on the
host, as in rung 11, was as a rule slightly faster.
"""

from __future__ import annotations

from numpy.typing import NDArray

from lloydia.ladder.r11_distance_matrix import Steps
from lloydia.ladder.rung import About, Outcome
from lloydia.stopping import Labels, Rule

ABOUT = About(
    "distance matrix, changes counted on the GPU",
    "C",
    "cuda",
    uses=frozenset({"block"}),
    stop=Labels(),
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
    """Run rung 11 with a count of changes."""
    steps = Steps(X, centers, block, counting=True)
    return steps.on.descend(steps.assign, steps.means, rule, max_iter)
