"""The spread of rows, and runs that the device ends by it: kernels are interpreted."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from lloydia import KMeans, k_means_batched
from lloydia.backends import choose
from lloydia.backends.cuda import run_setup
from lloydia.backends.cuda.device_functions.run_state import ASSIGNED, ITERATION, STOPPED
from lloydia.data.arrays import on_host
from lloydia.loop.run import run_iterations
from lloydia.loop.tolerance import Tolerance
from lloydia.stopping import Rule
from table import answer, blobs


def nasty(n, d, dtype):
    """Return rows whose features are of different sizes, one of them constant."""
    X = blobs(n, d, "float64") * 2.0 ** (np.arange(d) % 8 - 3) + 100.0
    X[:, 0] = 7.0
    X[1, -1] = 0.0
    return X.astype(dtype)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "float64"])
@pytest.mark.parametrize("d", [1, 8, 9])
def test_the_spread_is_that_of_the_reference(d, dtype, weighted):
    X = nasty(90, d, dtype)
    weights = np.linspace(0.0, 3.0, 90) if weighted else None
    wide = X.astype("float32") if dtype == "float16" else X
    expected = choose("reference", wide, weights, None).mean_variance()
    engine = choose("cuda", torch.from_numpy(X), weights, None)
    assert engine.mean_variance() == expected
    # In a run that is launched, and in one that is not.
    engine = choose("cuda", torch.from_numpy(X), weights, None)
    engine.tolerance = 1e-3
    engine.start(wide[:4].copy(), "lloyd")
    assert engine.mean_variance() == expected
    engine.iterate(False).result()
    assert engine.mean_variance() == expected


def test_the_spread_may_need_more_limbs_than_a_run_has_room_for():
    X = blobs(40, 2, "float32")
    X[3], X[4] = 1e30, 1e-30
    parameters = {"init": X[:3], "tol": 1e-3}
    oracle = KMeans(3, device="reference", **parameters).fit(X)
    assert answer(KMeans(3, device="cuda", **parameters).fit(X)) == answer(oracle)
    # Asked for before anybody has looked at what the run found.
    for again in (False, True):
        engine = choose("cuda", X, None, None)
        engine.tolerance = 1e-3
        engine.start(X[:3].copy(), "lloyd")
        engine.iterate(False).begin()
        if again:
            engine.start(X[:3].copy(), "lloyd")
        assert engine.mean_variance() == choose("reference", X, None, None).mean_variance()


def together(monkeypatch, lag):
    """Have runs of few features be launched a few iterations at a time, before others are read."""
    monkeypatch.setattr(run_setup, "lag_of", lambda data, k: lag)
    monkeypatch.setattr(run_setup, "SMALL_FIT_ROWS", 0)


@pytest.mark.parametrize(
    ("d", "lag", "empty", "tol"),
    [
        (2, 0, "keep", 1e-3),
        (2, 4, "relocate", 1e-3),
        (2, 4, "relocate", 0.3),
        (12, 0, "keep", 0.3),
        (12, 4, "relocate", 1e-3),
    ],
)
def test_runs_that_the_device_ends_have_the_answer_of_the_reference(
    d, lag, empty, tol, monkeypatch
):
    together(monkeypatch, lag)
    X = blobs(90, d, "float32") * 0.5
    parameters = {"init": X[:6], "tol": tol, "empty": empty}
    oracle = KMeans(6, device="reference", **parameters).fit(X)
    # Also where the end was queued with the iteration that ends it, or after.
    for more in (290, 0, 1):
        parameters["max_iter"] = oracle.n_iter_ + more
        expected = KMeans(6, device="reference", **parameters).fit(X)
        assert answer(KMeans(6, device="cuda", **parameters).fit(X)) == answer(expected)


@pytest.mark.parametrize("d", [2, 12])
def test_a_device_that_ended_a_run_changes_nothing_more(d):
    X = blobs(120, d, "float32") * 0.5
    tol = 1e-2
    n_iter = KMeans(6, init=X[:6], tol=tol, device="reference").fit(X).n_iter_
    engine = choose("cuda", X, None, None)
    engine.tolerance = tol
    engine.start(X[:6].copy(), "lloyd")
    limit = tol * engine.mean_variance()
    waiting = [engine.iterate(False) for _ in range(n_iter + 3)]
    shifts = [late.result().shift for late in waiting[:n_iter]]
    assert shifts[-1] <= limit < shifts[-2]
    engine.iterations.status(n_iter)
    waiting[-1].begin()
    run_state = engine.run.memory.run_state.tolist()
    assert run_state[ITERATION.value] == n_iter
    assert run_state[STOPPED.value] == (ASSIGNED.value if d == 2 else 1)


@pytest.mark.parametrize("d", [2, 12])
def test_several_runs_have_the_limit_of_the_first(d):
    X = blobs(60, d, "float64")
    parameters = {"init": "random", "n_init": 2, "random_state": 4, "tol": 0.05}
    oracle = KMeans(5, device="reference", **parameters).fit(X)
    assert answer(KMeans(5, device="cuda", **parameters).fit(X)) == answer(oracle)


@pytest.mark.parametrize("d", [2, 12])
def test_the_limit_is_by_weights(d):
    X, weights = blobs(200, d, "float32"), np.linspace(0.1, 2.0, 200)
    # Without weights they would raise the limit so far that the first iteration is the last.
    X[:10], weights[:10] = 1e5, 1e-9
    parameters = {"init": X[:5], "tol": 1e-2}
    oracle = KMeans(5, device="reference", **parameters).fit(X, sample_weight=weights)
    model = KMeans(5, device="cuda", **parameters).fit(X, sample_weight=weights)
    assert answer(model) == answer(oracle)
    assert model.n_iter_ > 2


@pytest.mark.parametrize("d", [2, 12])
def test_a_run_that_is_watched_is_not_ended_by_the_device(d, capsys):
    X = blobs(200, d, "float32")
    parameters = {"init": X[:5], "tol": 1e-2, "verbose": 1}
    oracle = KMeans(5, device="reference", **parameters).fit(X)
    told = capsys.readouterr().out
    model = KMeans(5, device="cuda", **parameters).fit(X)
    assert answer(model) == answer(oracle)
    assert model.inertia_history_ == oracle.inertia_history_
    assert capsys.readouterr().out == told


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("d", [2, 12])
def test_the_limit_is_nearly_that_of_the_rule(d, weighted):
    X = blobs(30, d, "float32")
    engine = choose("cuda", X, np.linspace(0.1, 3.0, 30) if weighted else None, None)
    engine.tolerance = 1e-2
    engine.start(X[:3].copy(), "lloyd")
    engine.iterate(False).result()
    found = float(engine.data.limit(engine.tolerance, 3))
    assert abs(found - 1e-2 * engine.mean_variance()) <= 2.0**-45 * found


@pytest.mark.parametrize("scale", [1e-160, 1e150])
@pytest.mark.parametrize("d", [2, 12])
def test_where_squares_underflow_or_overflow_the_rule_decides(d, scale):
    X = blobs(60, d, "float64") * scale
    parameters = {"init": X[:4], "tol": 1e-2}
    oracle = KMeans(4, device="reference", **parameters).fit(X)
    assert answer(KMeans(4, device="cuda", **parameters).fit(X)) == answer(oracle)


class Third(Rule):
    """Somebody's own rule, which has a tolerance of another kind."""

    tolerance = 0.5

    def __call__(self, report):
        return report.iteration == 3


@pytest.mark.parametrize("d", [2, 12])
def test_a_rule_of_its_own_is_not_taken_for_ours(d):
    X = blobs(200, d, "float32")
    parameters = {"init": X[:5], "stop": Third()}
    oracle = KMeans(5, device="reference", **parameters).fit(X)
    assert oracle.n_iter_ == 3
    assert answer(KMeans(5, device="cuda", **parameters).fit(X)) == answer(oracle)


@pytest.mark.parametrize(("d", "kind"), [(2, float), (2, np.float16), (12, float)])
def test_limits_beside_a_movement(d, kind):
    X = blobs(90, d, "float32", seed=1)
    shifts = []
    engine = choose("reference", X, None, None)
    engine.start(X[:6].copy(), "lloyd")
    for _ in range(8):
        shifts.append(engine.iterate(False).result().shift)
    for shift in shifts[3 : 7 if d == 2 else 4 : 3]:
        for away in (-1e-8, 1e-8):
            # 1e-8 is less than float32 tells apart, and more than the margin.
            tol = kind(shift / engine.mean_variance() * (1.0 + away))
            parameters = {"init": X[:6], "tol": tol}
            oracle = KMeans(6, device="reference", **parameters).fit(X)
            assert answer(KMeans(6, device="cuda", **parameters).fit(X)) == answer(oracle)


@pytest.mark.parametrize("d", [2, 12])
def test_each_run_of_an_engine_has_its_own_limit(d):
    X = blobs(120, d, "float32") * 0.5
    engine = choose("cuda", X, None, None)
    engine.tolerance = 0.3
    # Begun, and left before anything was launched.
    engine.start(X[:6].copy(), "lloyd")
    for tol in (0.3, 1e-3, 0.3):
        oracle = KMeans(6, init=X[:6], tol=tol, device="reference").fit(X)
        rule = Tolerance(tol, engine.mean_variance, engine.magnitudes)
        options = {"algorithm": "lloyd", "rule": rule, "max_iter": 300, "empty": "relocate"}
        result = run_iterations(engine, X[:6].copy(), **options)
        assert (result.n_iter, result.inertia) == (oracle.n_iter_, oracle.inertia_)
        assert (on_host(result.labels) == oracle.labels_).all()


def test_rows_that_follow_may_need_more_limbs(device):
    X = np.stack([blobs(60, 12, "float32", seed=b) for b in range(3)]) * 0.5
    # Smaller from item to item, and sums have as many more places.
    X[:, 3, :] = 1.23456 * 2.0 ** (-26.0 * np.arange(3)[:, None])
    # A centre far away has no row, so items are fitted one after the other.
    starts = X[:, :6].copy()
    starts[:, 5] = 1000.0
    found = k_means_batched(torch.from_numpy(X).to(device), 6, init=starts, tol=0.3)
    expected = k_means_batched(X, 6, init=starts, tol=0.3, device="cpu")
    for a, b in zip(found, expected):
        assert np.array_equal(np.asarray(a.cpu() if isinstance(a, torch.Tensor) else a), b)
