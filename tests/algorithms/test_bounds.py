"""Bounds skip work, and hold even where rounding is worst."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_blobs

from lloydia import KMeans
from lloydia.algorithms import hamerly
from lloydia.algorithms.geometry import Padding
from lloydia.backends import choose
from nasty import FLAVOURS, nasty_rows, rows_of


@pytest.fixture
def always_bounds(monkeypatch):
    monkeypatch.setattr(hamerly, "COST", -np.inf)


def test_blind_iterations_come_before_bounds():
    X, _ = make_blobs(4000, 12, centers=50, cluster_std=6.0, random_state=0)
    engine = choose("cpu", X, None, 1)
    engine.start(X[:50], "hamerly")
    oracle = choose("reference", X, None, 1)
    oracle.start(X[:50], "lloyd")
    known = []
    for _ in range(40):
        engine.iterate(False)
        oracle.iterate(False)
        assert (engine.labels() == oracle.labels()).all()
        known.append(engine.run.bounds.known)
        if known[-1]:
            check_bounds(engine, X, slice(None, None, 1000))
    assert not all(known)
    assert known[0]
    assert known[-1]


@pytest.mark.parametrize("algorithm", ["elkan", "hamerly", "exponion"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("d", [2, 20])
def test_bounds_skip_distances(algorithm, dtype, d):
    X, _ = make_blobs(4000, d, centers=15, cluster_std=0.5, random_state=0)
    X = X.astype(dtype)
    common = {"init": "random", "n_init": 1, "random_state": 1, "tol": 0}
    all_of_them = KMeans(15, algorithm="lloyd", **common).fit(X)
    few = KMeans(15, algorithm=algorithm, **common).fit(X)
    # The last assignment is needed only if the run did not end by strict convergence.
    assert all_of_them.n_distances_ == 4000 * 15 * all_of_them.n_iter_
    assert few.n_distances_ < 0.5 * all_of_them.n_distances_


def test_elkan_evaluates_fewer_than_hamerly_with_many_centres():
    X, _ = make_blobs(4000, 8, centers=50, cluster_std=2.0, random_state=0)
    counts = {
        name: KMeans(50, init="random", n_init=1, random_state=0, algorithm=name)
        .fit(X)
        .n_distances_
        for name in ("elkan", "hamerly")
    }
    assert counts["elkan"] < counts["hamerly"]


@given(nasty_rows(most=30, features=14), st.data())
@settings(
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_bounds_bound_the_true_distances(always_bounds, X, data):
    """After every assignment, against rational arithmetic."""
    k = data.draw(st.integers(2, 5))
    # Near ties, so that bounds have little room.
    X = np.vstack([X, (X[:1] + X[-1:]) / 2]).astype(X.dtype)
    if len(X) < k:
        return
    for name in ("elkan", "hamerly", "exponion"):
        engine = choose("cpu", X, None, 1)
        engine.start(X[:k], name)
        for _ in range(4):
            engine.iterate(False)
            check_bounds(engine, X)


@pytest.mark.parametrize("algorithm", ["hamerly", "exponion"])
@pytest.mark.parametrize("scale", [5e-324, 1.56e-168, 1.0, 1e150])
@pytest.mark.parametrize("n", [1, 3])
def test_infinite_bounds_of_a_single_cluster_cause_no_warning(always_bounds, algorithm, scale, n):
    X = scale * np.arange(1.0, n + 1)[:, None]
    engine = choose("cpu", X, None, 1)
    engine.start(X[:1], algorithm)
    for _ in range(3):
        engine.iterate(False)
        assert engine.run.bounds.known
    assert (engine.labels() == 0).all()


def check_bounds(engine, X, rows=slice(None)):
    bounds = engine.run.bounds
    upper, lowers = bounds.now(engine.run.assigned)
    unit = Fraction(bounds.padding.unit)
    for i in np.arange(len(X))[rows]:
        squares = [
            sum((Fraction(float(a)) - Fraction(float(b))) ** 2 for a, b in zip(X[i], c))
            for c in engine.run.used
        ]
        label = engine.run.assigned[i]
        if np.isfinite(upper[i]):
            assert (Fraction(float(upper[i])) / unit) ** 2 >= squares[label]
        for j, square in enumerate(squares):
            lower = lowers[i] if lowers.ndim == 1 else lowers[i, j]
            if np.isfinite(lower) and (lowers.ndim == 2 or j != label):
                assert (Fraction(max(0.0, float(lower))) / unit) ** 2 <= square


@pytest.mark.parametrize("scale", [2.0**-60, 1.0, 2.0**60])
def test_padding_covers_the_roundings_of_float32(scale):
    padding = Padding.of(np.full(100, scale), np.dtype(np.float32))
    values = np.random.default_rng(0).uniform(scale, 2 * scale, size=1000) * padding.unit
    assert (np.float32(padding.upper_bound(values)).astype(float) > values).all()
    assert (np.float32(padding.lower_bound(values)).astype(float) < values).all()
    assert padding.lower_bound(2.0**-60) == 0
    assert padding.lower_bound(np.inf) == np.inf


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("flavour", FLAVOURS)
def test_squares_of_distances_in_the_unit_are_float32(flavour, dtype):
    X = rows_of(flavour, 50, 7, dtype, seed=1)
    padding = Padding.of(np.abs(X).max(axis=0).astype(float), X.dtype)
    assert np.isfinite(X.dtype.type(padding.unit))
    assert np.frexp(padding.unit)[0] == 0.5
    with np.errstate(over="raise", under="ignore"):
        y = ((X[:, None].astype(float) - X[None]) * padding.unit).astype(np.float32)
        assert np.isfinite(np.square(y).sum(axis=2)).all()
