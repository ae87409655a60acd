"""Rung 41: Elkan's method on one thread with T's means.

T keeps its means as they are beside the bounds.  It bought a solver that is faster than rung 53 and
slower than rung 42, in both precisions.

What changed from rung 2: the means (rung 53).  The time that bounds save in the assignment
is saved, but the n k comparisons of the means stay, and are soon most of the work.
"""

from __future__ import annotations

from numpy.typing import NDArray

from lloydia.ladder import r02_elkan
from lloydia.ladder.r53_scanning_means import means
from lloydia.ladder.rung import About, Outcome
from lloydia.stopping import Rule

ABOUT = About("Elkan, one thread, means by scans", "T", "cpu", solves="elkan")


def fit(
    X: NDArray,
    centers: NDArray,
    *,
    rule: Rule | None,
    max_iter: int,
    threads: int = 1,
    block: int = 256,
) -> Outcome:
    """Run Elkan's method on one thread, with means by scans."""
    return r02_elkan.fit(X, centers, rule=rule, max_iter=max_iter, threads=threads, update=means)
