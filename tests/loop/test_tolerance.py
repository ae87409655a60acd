from __future__ import annotations

import numpy as np

from lloydia.backends.reports import Report
from lloydia.exact.sums import Magnitudes
from lloydia.loop.tolerance import Tolerance


def report(shift):
    return Report(iteration=1, n_samples=50, n_changed=1, n_empty=0, shift=shift, move=1.0)


def test_tolerance_asks_for_the_variance_only_near_the_limit():
    X = np.random.default_rng(0).normal(size=(50, 3)) + 2.0
    asked = []

    def mean_variance():
        asked.append(1)
        return 0.5

    rule = Tolerance(0.1, mean_variance, lambda: Magnitudes.of(X))
    assert not rule(report(0.11 * float(np.square(X).max())))
    assert rule(report(0.0))
    assert not asked
    assert rule(report(0.05))
    assert not rule(report(0.051))
    assert asked == [1]
