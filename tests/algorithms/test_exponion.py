"""Rows compared with the centres in a ball get the oracle's labels, and bounds that hold."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from test_bounds import check_bounds

from lloydia import KMeans
from lloydia.algorithms import hamerly
from lloydia.backends import choose
from lloydia.backends.cpu.steps import exponion as steps
from nasty import nasty_rows

pytestmark = pytest.mark.filterwarnings(
    f"ignore::{ConvergenceWarning.__module__}.ConvergenceWarning"
)


@pytest.fixture(autouse=True)
def always_balls(monkeypatch):
    monkeypatch.setattr(steps, "worthwhile", lambda *_: True)
    monkeypatch.setattr(hamerly, "COST", -np.inf)


def islands(n, d, dtype, seed=0):
    """Return groups of overlapping groups, far apart."""
    rng = np.random.default_rng(seed)
    X = 100 * rng.integers(-2, 3, size=(n, 1)) + 5 * rng.integers(-1, 2, size=(n, d))
    return (X + rng.normal(size=(n, d)) * 2).astype(dtype)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("d", [1, 2, 9, 40])
@pytest.mark.parametrize("threads", [1, 3])
def test_balls_give_the_bits_of_the_oracle(d, dtype, threads):
    X = islands(3000, d, dtype)
    common = {"init": "random", "n_init": 1, "random_state": 0, "tol": 0}
    oracle = KMeans(60, device="reference", **common).fit(X)
    model = KMeans(60, algorithm="exponion", n_threads=threads, **common).fit(X)
    assert (model.labels_ == oracle.labels_).all()
    assert (model.cluster_centers_ == oracle.cluster_centers_).all()
    assert model.n_iter_ == oracle.n_iter_ > 3
    rest = KMeans(60, algorithm="hamerly", **common).fit(X)
    assert model.n_distances_ < rest.n_distances_


@pytest.mark.slow
@given(nasty_rows(most=300), st.integers(2, 24), st.integers(0, 100))
@settings(
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_nasty_balls_give_the_bits_of_the_oracle(X, k, seed):
    common = {"init": "random", "n_init": 1, "random_state": seed}
    k = min(k, len(X))
    oracle = KMeans(k, device="reference", **common).fit(X)
    model = KMeans(k, algorithm="exponion", **common).fit(X)
    assert (model.labels_ == oracle.labels_).all()
    assert (model.cluster_centers_ == oracle.cluster_centers_).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("offset", [0, 2.0**12])
def test_bounds_hold_after_balls(dtype, offset):
    X = islands(200, 3, dtype) + np.dtype(dtype).type(offset)
    engine = choose("cpu", X, None, 1)
    engine.start(X[:20], "exponion")
    for _ in range(6):
        engine.iterate(False)
        check_bounds(engine, X)
