from __future__ import annotations

import numpy as np
import pytest

from lloydia.backends.cpu.engine import CPU
from lloydia.backends.cpu.rows.placed import ABREAST
from lloydia.backends.cpu.update import sums
from lloydia.exact.sums import Magnitudes, join, total, total_grid


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize(("n", "d"), [(1, 1), (ABREAST**2 + 77, 1), (6001, 3), (300, 70)])
def test_magnitudes_are_found_several_rows_at_a_time(n, d, n_threads):
    rng = np.random.default_rng(d)
    X = rng.normal(size=(n, d)) * np.ldexp(1.0, rng.integers(-30, 30, size=(n, d)))
    X[rng.random((n, d)) < 0.1] = 0.0
    X[-1, 0] = 2.0**40
    found, expected = CPU(X, None, n_threads).magnitudes(), Magnitudes.of(X)
    assert (found.largest == expected.largest).all()
    assert (found.smallest == expected.smallest).all()


@pytest.mark.parametrize("weighted", [False, True])
def test_limbs_of_a_total_are_the_definitions(weighted):
    rng = np.random.default_rng(0)
    D, w = rng.exponential(size=999) * 2.0 ** rng.integers(-60, 20, 999), rng.random(999)
    values = w * D if weighted else D
    bits, exponent = total_grid(len(D), float(values.max()))
    limbs = np.zeros(3, dtype=np.int64)
    weights = w if weighted else np.empty(0)
    sums.total_terms(D, weights, 0, 999, 2.0**-exponent, 1.0, 2.0**bits, limbs)
    assert join(limbs.tolist(), bits, exponent) == total(values)
