"""Rung 43: Lloyd's method on several threads with T's means.

T puts one parallel loop around the points of the assignment, and one around the clusters of the
means, each in equal static ranges.  It bought a gain over rung 40 with 4, 8 and 12 threads, and
over scikit-learn with 8 and 12.

What changed from rung 40: both loops are parallel (:mod:`scanning`).  Each of k clusters is one
thread's, so no sums are shared; but all threads read all labels.
"""

from __future__ import annotations

from numpy.typing import NDArray

from lloydia.ladder import r04_threaded_lloyd
from lloydia.ladder.rung import About, Outcome
from lloydia.ladder.scanning import threaded_means
from lloydia.stopping import Rule

ABOUT = About("Lloyd, OpenMP, means by scans", "T", "cpu", uses=frozenset({"threads"}))


def fit(
    X: NDArray,
    centers: NDArray,
    *,
    rule: Rule | None,
    max_iter: int,
    threads: int = 1,
    block: int = 256,
) -> Outcome:
    """Run Lloyd's method with parallel loops, over clusters for the means."""
    return r04_threaded_lloyd.fit(
        X, centers, rule=rule, max_iter=max_iter, threads=threads, update=threaded_means
    )
