"""Bounds of elkan and yinyang where a few centres are very far away: they hold, and skip work."""

from __future__ import annotations

import numpy as np
import pytest

from lloydia import KMeans
from lloydia.backends import choose
from lloydia.backends.cpu.scan.grouped import arrange
from lloydia.exact.distance import squared_distances

BOTH = pytest.mark.parametrize("algorithm", ["elkan", "yinyang"])


def losing(dtype):
    """Return rows whose scores lose most of their products, and centres, two of them far away.

    Each product but the first is less than half a unit in the last place of the sum that it joins:
    the scores are off by as many of those, all on one side.
    """
    center = np.full(1000, 0.01 / np.sqrt(999))
    center[0] = np.sqrt(1 - 0.01**2)
    far = 40.0 * np.eye(1000)[:1]
    # Each is there often, so some are not the label; amid opposite centres the origin is 0.
    centers = np.vstack([far, -far] + 13 * [center, -center])
    X = np.zeros((6, 1000))
    X[:, 0] = np.repeat([1.0, 0.0, -1.0], 2)
    X[:, 1:] = 2.0**-27 / center[1] * np.array([1.0, -1.0] * 3)[:, None]
    return X.astype(dtype), centers.astype(dtype)


def turned_away(dtype):
    """Return such rows, near the origin, their scores too low and too high, and centres."""
    X, centers = losing(dtype)
    near = np.repeat(centers[2:3], 13, axis=0)
    near[:, 0] = -1.02
    near[0, 0] *= 0.98
    other = np.zeros((14, 1000))
    other[:, 0] = 1.04
    far = np.roll(centers[:2], 1, axis=1)
    return X[2:4], np.vstack([far, near, other]).astype(dtype)


def check(X, centers, algorithm):
    """Return the bounds over the distances that they are of."""
    assert arrange(centers.astype(float), np.arange(len(centers)), 16).errors.own[1] == 0.0
    engine = choose("cpu", X, None, 1)
    engine.start(centers, algorithm)
    engine.iterate(False)
    upper, lower = engine.run.bounds.now(engine.run.assigned)
    D = squared_distances(X, centers)
    assert (engine.run.assigned == D.argmin(axis=1)).all()
    D = np.sqrt(D) * engine.run.bounds.padding.unit
    upper, lower = upper / D[np.arange(len(X)), engine.run.assigned], lower / D
    assert (upper >= 1 - 1e-12).all()
    assert (lower <= 1 + 1e-12).all()
    return upper, lower[:, 2:]


@BOTH
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_bounds_hold_where_scores_are_off_by_much(algorithm, dtype):
    upper, lower = check(*losing(dtype), algorithm)
    # They are bounds, not just numbers that are small enough; rows 2 and 3 are near the origin.
    assert (upper[2:4] < 1.001).all()
    assert (lower[2:4] > 0.999).any(axis=1).all()
    upper, lower = check(*turned_away(dtype), algorithm)
    assert (upper < 1.001).all()
    assert (lower > 0.999).any()


def test_only_far_centres_leave_the_others_their_own_errors():
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(30, 20))
    usual = arrange(centers, np.arange(30), 16).errors
    assert usual.factors == (1.0, 1.0)
    assert usual.own == usual.terms
    centers[3] *= 1e4
    apart = arrange(centers, np.arange(30), 16).errors
    assert apart.own[1] == 0.0
    assert 0.99 < apart.factors[0] < 1.0 < apart.factors[1] < 1.01


@BOTH
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("far", [1e3, 1e6, 1e9])
@pytest.mark.parametrize(("d", "k"), [(3, 40), (40, 60)])
def test_far_centres_cost_no_more_than_others(algorithm, d, k, far, dtype):
    rng = np.random.default_rng(0)
    C = 3.0 * rng.normal(size=(k, d))
    X = (C[rng.integers(k, size=6000)] + rng.normal(size=(6000, d))).astype(dtype)
    of = {"n_clusters": k, "n_init": 1, "max_iter": 8, "tol": 0.0, "algorithm": algorithm}
    usual = KMeans(**of, init=X[:k]).fit(X)
    X[:3] *= np.array(far, dtype=dtype)
    found = KMeans(**of, init=X[:k]).fit(X)
    lloyd = KMeans(**{**of, "algorithm": "lloyd"}, init=X[:k]).fit(X)
    assert (found.labels_ == lloyd.labels_).all()
    assert (found.cluster_centers_ == lloyd.cluster_centers_).all()
    assert found.n_distances_ < 1.2 * usual.n_distances_
    assert found.n_rechecked_ < usual.n_rechecked_ + 100


@pytest.mark.parametrize("algorithm", ["elkan", "hamerly", "exponion", "yinyang"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_bounds_hold_and_skip_work_after_a_centre_went_far_away(algorithm, dtype):
    rng = np.random.default_rng(0)
    C = 3.0 * rng.normal(size=(40, 16))
    X = (C[rng.integers(40, size=6000)] + rng.normal(size=(6000, 16))).astype(dtype)
    assert evaluated_last(X, X[100:140], algorithm) < 2 * len(X)
    X[:3] = 1e6 * rng.normal(size=(3, 16))
    assert evaluated_last(X, X[100:140], algorithm) < 2 * len(X)


def evaluated_last(X, centers, algorithm):
    """Return the distances of four iterations when few rows still move, and look at all bounds."""
    engine = choose("cpu", X, None, 1)
    engine.start(centers, algorithm)
    after = 0
    for iteration in range(20):
        engine.iterate(False)
        after = after if iteration >= 16 else engine.n_distances
        D = squared_distances(X, engine.run.used)
        assert (engine.run.assigned == D.argmin(axis=1)).all()
        b, D = engine.run.bounds, np.sqrt(D) * engine.run.bounds.padding.unit
        if getattr(b, "known", True):
            upper, lower = b.now(engine.run.assigned)
            own = np.arange(len(X)), engine.run.assigned
            assert (upper >= D[own] * (1 - 1e-12)).all()
            if lower.ndim == 1:
                D[own] = np.inf
                assert (lower <= D.min(axis=1) * (1 + 1e-12)).all()
            else:
                assert (lower <= D * (1 + 1e-12)).all()
    return engine.n_distances - after
