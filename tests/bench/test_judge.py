from __future__ import annotations

import numpy as np
import pytest

from lloydia import KMeans
from lloydia.bench import judge
from lloydia.bench.judge import Refused
from lloydia.bench.peers import Peer, Task

NAMES = ("labels_", "cluster_centers_", "inertia_", "n_iter_")


@pytest.fixture(params=["float32", "float64"])
def X(request):
    return np.random.default_rng(0).normal(size=(3_000, 5)).astype(request.param)


def fit(X, iterations, tol=0.0):
    fitted = KMeans(7, init=X[:7], n_init=1, max_iter=iterations, tol=tol).fit(X)
    return {name: getattr(fitted, name) for name in NAMES}


def test_what_is_right_passes(X, monkeypatch):
    task = Task(7, X[:7], 6, 0.0, 1)
    kept = fit(X, 6)
    assert judge.judge_whole(X, task, kept)
    judge.judge_labels(X, kept)
    assert judge.judge_update(X, fit(X, 5), kept)
    monkeypatch.setattr(judge, "BLOCK", 64)  # blocks change no bit
    assert judge.judge_update(X, fit(X, 5), kept)
    judge.judge_labels(X, kept)
    monkeypatch.setattr(judge, "AFFORDABLE", 0)
    assert not judge.judge_whole(X, task, kept)


def test_one_bit_is_refused(X):
    kept, before = fit(X, 6), fit(X, 5)
    centers = kept["cluster_centers_"].copy()
    centers[3, 2] = np.nextafter(centers[3, 2], X.dtype.type(9))
    with pytest.raises(Refused, match="exact means"):
        judge.judge_update(X, before, {**kept, "cluster_centers_": centers})
    with pytest.raises(Refused, match="cluster_centers_ differs"):
        judge.judge_whole(X, Task(7, X[:7], 6, 0.0, 1), {**kept, "cluster_centers_": centers})
    with pytest.raises(Refused, match="inertia"):
        judge.judge_labels(X, {**kept, "inertia_": np.nextafter(kept["inertia_"], 0)})
    labels = kept["labels_"].copy()
    labels[::2] = 0
    with pytest.raises(Refused, match="labels"):
        judge.judge_labels(X, {**kept, "labels_": labels})


def test_relocated_rows_are_left_out():
    X = np.arange(12.0).reshape(6, 2)
    before = {"labels_": np.array([0, 0, 0, 1, 1, 1])}
    assert not judge.judge_update(X, before, {"cluster_centers_": np.zeros((3, 2))})


def test_a_peer_from_the_same_start_may_be_off_by_one_in_a_thousand():
    exact, loose = Peer(), Peer()
    loose.exact = False
    assert judge.compare(exact, 1.0009, lambda: 9.0) == ""
    assert judge.compare(loose, 1.5, lambda: 9.0) == ""
    for inertia, early in ((1.0011, 1.0011), (0.9985, 0.9), (1.03, 1.0), (np.nan, 1.0)):
        with pytest.raises(Refused, match="times Lloydia's"):
            judge.compare(exact, inertia, lambda early=early: early)
    assert "another optimum" in judge.compare(exact, 0.99, lambda: 1.0001)


def test_an_objective_covers_all_rows():
    judge.judge_objective(None, 1.0)
    judge.judge_objective(1.2, 1.0)
    with pytest.raises(Refused, match="it left out rows"):
        judge.judge_objective(0.5, 1.0)


def test_picks(X):
    judge.judge_picks(X, 7)
