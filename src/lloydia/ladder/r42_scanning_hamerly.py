"""Rung 42: Hamerly's method on one thread with T's means.

T keeps its means here too, which also find the largest movement of a centre.  It bought the fastest
of T's sequential solvers, still slower than scikit-learn.

What changed from rung 3: the means (rung 53), as in rung 41.
"""

from __future__ import annotations

from numpy.typing import NDArray

from lloydia.ladder import r03_hamerly
from lloydia.ladder.r53_scanning_means import means
from lloydia.ladder.rung import About, Outcome
from lloydia.stopping import Rule

ABOUT = About("Hamerly, one thread, means by scans", "T", "cpu", solves="hamerly")


def fit(
    X: NDArray,
    centers: NDArray,
    *,
    rule: Rule | None,
    max_iter: int,
    threads: int = 1,
    block: int = 256,
) -> Outcome:
    """Run Hamerly's method on one thread, with means by scans."""
    return r03_hamerly.fit(X, centers, rule=rule, max_iter=max_iter, threads=threads, update=means)
