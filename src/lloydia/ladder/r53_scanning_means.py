"""Rung 53: rung 1 with means that scan all points once a cluster, as in T's and C's programs.

What changed from rung 1: the loop over clusters is outside, and that over points inside.  A cluster
goes through the labels of all points, and adds up those that are its own.

Why it does not help: the update then reads n k labels instead of n, nearly as many numbers as the
assignment computes distances.  It is here because C's speed-ups are over this program, so that ours
are over the same.

C wrote the two loops as the formula of the mean has them; its parallel version became 16 to 36
times as fast as this one.  T did the same, in float64 and in float32; it was slower than
scikit-learn, and all other solvers of T are compared with it.  C adds in float32; sums here are
float64, as in rung 1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lloydia.ladder.compiled import kernel
from lloydia.ladder.descent import descend
from lloydia.ladder.r01_lloyd import assign
from lloydia.ladder.rung import About, Outcome
from lloydia.stopping import Centers, Rule

ABOUT = About("Lloyd, one thread, means that scan all points", "TC", "cpu", stop=Centers(5e-6))


def fit(
    X: NDArray,
    centers: NDArray,
    *,
    rule: Rule | None,
    max_iter: int,
    threads: int = 1,
    block: int = 256,
) -> Outcome:
    """Run Lloyd's method with a scan of all points for each mean."""
    return descend(
        X,
        centers,
        lambda centers, labels: assign(X, centers, labels),
        lambda labels, old: means(X, labels, old),
        rule,
        max_iter,
    )


@kernel
def means(X, labels, centers):
    """Return the mean of every cluster, the old centre where it is empty."""
    new = centers.copy()
    total = np.zeros(X.shape[1])
    for j in range(len(centers)):
        total[:] = 0
        count = 0
        for i in range(len(X)):
            if labels[i] == j:
                count += 1
                for f in range(X.shape[1]):
                    total[f] += X[i, f]
        if count > 0:
            for f in range(X.shape[1]):
                new[j, f] = total[f] / count
    return new
