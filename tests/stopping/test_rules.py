from __future__ import annotations

import numpy as np
import pytest

from lloydia import KMeans, stopping
from lloydia.backends.reports import Report


def report(**changes):
    plain = {
        "iteration": 2,
        "n_samples": 1000,
        "n_changed": 5,
        "n_empty": 0,
        "shift": 0.1,
        "move": 0.2,
    }
    return Report(**{**plain, **changes})


def test_labels_stops_at_the_fraction():
    assert stopping.Labels(0.005)(report())
    assert not stopping.Labels(0.0049)(report())
    assert not stopping.Labels()(report(n_changed=1))


def test_inertia_stops_when_it_falls_by_less():
    rule = stopping.Inertia(drop=1.0)
    assert not rule(report(inertia=10.0))
    assert not rule(report(inertia=9.0, drop=1.0))
    assert rule(report(inertia=8.5, drop=0.5))


def test_centers_looks_at_single_coordinates():
    assert stopping.Centers(atol=0.2)(report())
    assert not stopping.Centers(atol=0.19)(report())


def test_rules_combine():
    rule = stopping.Labels(0.001) | stopping.Centers(0.5) | stopping.Inertia(1.0)
    assert rule.needs_inertia
    assert rule(report(inertia=1.0))
    assert rule.reason(report(inertia=1.0)) == "Centers(atol=0.5)"
    assert not (stopping.Labels() | stopping.Centers(0.1)).needs_inertia
    with pytest.raises(TypeError):
        stopping.Labels() | 3


@pytest.mark.parametrize("value", ["a", None, -1.0, float("nan")])
@pytest.mark.parametrize("rule", [stopping.Labels, stopping.Inertia, stopping.Centers])
def test_what_is_no_number_is_refused_with_its_name(rule, value):
    with pytest.raises(ValueError, match=rf"{rule.__name__}\(\w+={value!r}\): .* must be a number"):
        rule(value)


def test_the_rules_of_the_five_systems_stop_a_fit():
    X = np.random.default_rng(0).normal(size=(2000, 2))
    common = {"n_clusters": 20, "init": "first", "max_iter": 300}
    strict = KMeans(**common, stop=stopping.Labels()).fit(X)
    assert strict.converged_
    for rule in (
        stopping.Labels(0.01),
        stopping.Inertia(drop=1.0),
        stopping.Centers(atol=0.01),
        stopping.Labels(0.02) | stopping.Inertia(0.1),
    ):
        model = KMeans(**common, stop=rule).fit(X)
        assert 1 < model.n_iter_ < strict.n_iter_
        assert model.converged_
        assert (model.labels_ == model.predict(X)).all()
    fixed = KMeans(**common, stop=stopping.Labels(1.0)).fit(X)
    assert fixed.n_iter_ == 1
    ended = KMeans(**{**common, "max_iter": 3}, stop=stopping.Labels()).fit(X)
    assert ended.n_iter_ == 3
    assert not ended.converged_


def test_tol_zero_runs_to_strict_convergence():
    X = np.random.default_rng(1).normal(size=(500, 3))
    model = KMeans(7, tol=0, random_state=0, max_iter=1000).fit(X)
    means = np.array([X[model.labels_ == j].mean(axis=0) for j in range(7)])
    assert np.allclose(model.cluster_centers_, means, rtol=1e-14, atol=1e-15)
