from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from lloydia.backends.cpu.engine import CPU
from lloydia.backends.cpu.rows.dataset import NUMBERS_AT_ONCE, Dataset
from lloydia.exact.sums import Magnitudes


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize(("n", "d"), [(1, 1), (NUMBERS_AT_ONCE**2 + 77, 1), (6001, 3), (300, 70)])
def test_magnitudes_are_found_several_rows_at_a_time(n, d, n_threads):
    rng = np.random.default_rng(d)
    X = rng.normal(size=(n, d)) * np.ldexp(1.0, rng.integers(-30, 30, size=(n, d)))
    X[rng.random((n, d)) < 0.1] = 0.0
    X[-1, 0] = 2.0**40
    found, expected = Dataset(X, None, n_threads).magnitudes(), Magnitudes.of(X)
    assert (found.largest == expected.largest).all()
    assert (found.smallest == expected.smallest).all()


@pytest.mark.parametrize("made", [copy.deepcopy, pickle.dumps])
def test_engines_are_not_copied(made):
    engine = CPU(np.eye(3), None, 1)
    with pytest.raises(TypeError, match="cannot be copied or pickled"):
        made(engine)
