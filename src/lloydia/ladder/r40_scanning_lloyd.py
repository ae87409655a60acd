"""Rung 40: Lloyd's method on one thread with T's means.

T finds a cluster's mean by a loop over all points that adds up those of the cluster, once for each
cluster.  It bought T a program that is slower than scikit-learn, and that everything else in the
thesis is compared with.

What changed from rung 1: the means (:mod:`scanning`).  They read n k labels where one pass over the
points reads n, so they take as long as the assignment does, or longer once bounds skip most of its
distances.
"""

from __future__ import annotations

from numpy.typing import NDArray

from lloydia.ladder import r01_lloyd
from lloydia.ladder.rung import About, Outcome
from lloydia.ladder.scanning import means
from lloydia.stopping import Rule

ABOUT = About("Lloyd, one thread, means by scans", "T", "cpu")


def fit(
    X: NDArray,
    centers: NDArray,
    *,
    rule: Rule | None,
    max_iter: int,
    threads: int = 1,
    block: int = 256,
) -> Outcome:
    """Run Lloyd's method on one thread, with means by scans."""
    return r01_lloyd.fit(X, centers, rule=rule, max_iter=max_iter, threads=threads, update=means)
