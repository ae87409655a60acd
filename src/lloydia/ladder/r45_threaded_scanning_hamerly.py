"""Rung 45: Hamerly's method on several threads with T's means.

T puts the same two parallel loops around rung 42.  It bought the first place among T's solvers on
OpenMP.

What changed from rung 42: both loops are parallel, as in rung 43.
"""

from __future__ import annotations

from numpy.typing import NDArray

from lloydia.ladder import r06_threaded_hamerly
from lloydia.ladder.r43_threaded_scanning_lloyd import means
from lloydia.ladder.rung import About, Outcome
from lloydia.stopping import Rule

ABOUT = About(
    "Hamerly, OpenMP, means by scans", "T", "cpu", solves="hamerly", uses=frozenset({"threads"})
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
    """Run Hamerly's method with parallel loops, over clusters for the means."""
    return r06_threaded_hamerly.fit(
        X, centers, rule=rule, max_iter=max_iter, threads=threads, update=means
    )
