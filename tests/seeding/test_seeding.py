from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.cluster
from sklearn.datasets import load_digits, load_iris, make_blobs

from lloydia import KMeans, kmeans_plusplus
from lloydia.backends import choose
from lloydia.seeding import SEEDINGS


def picks(name, X, k, seed, weights=None, device="cpu", threads=2):
    engine = choose(device, X, weights, threads)
    return SEEDINGS[name](engine, k, np.random.RandomState(seed))


@pytest.mark.parametrize("name", SEEDINGS)
@pytest.mark.parametrize("weighted", [False, True])
def test_every_engine_picks_the_same_rows(name, weighted):
    X = make_blobs(3000, 7, centers=12, random_state=0)[0].astype(np.float32)
    weights = np.random.default_rng(0).random(3000) if weighted else None
    for seed in range(5):
        expected = picks(name, X, 12, seed, weights, "reference").tolist()
        assert len(set(expected)) == 12
        for threads in (1, 2, 3):
            assert picks(name, X, 12, seed, weights, threads=threads).tolist() == expected
        assert picks(name, sp.csr_matrix(X), 12, seed, weights).tolist() == expected


@pytest.mark.parametrize("load", [load_iris, load_digits])
@pytest.mark.parametrize("init", ["k-means++", "random"])
def test_the_same_seed_starts_where_scikit_learn_starts(load, init):
    X = load().data
    for seed in range(5):
        common = {"n_clusters": 6, "init": init, "n_init": 1, "random_state": seed}
        ours = KMeans(**common).fit(X)
        theirs = sklearn.cluster.KMeans(**common).fit(X)
        assert ours.n_iter_ == theirs.n_iter_
        assert (ours.labels_ == theirs.labels_).all()
        assert ours.inertia_ == pytest.approx(theirs.inertia_, rel=1e-12)


def test_kmeans_plusplus_agrees_with_scikit_learn():
    X = make_blobs(500, 4, centers=9, random_state=3)[0]
    for trials in (None, 1, 5):
        _, ours = kmeans_plusplus(X, 9, random_state=1, n_local_trials=trials)
        _, theirs = sklearn.cluster.kmeans_plusplus(X, 9, random_state=1, n_local_trials=trials)
        assert ours.tolist() == theirs.tolist()


@pytest.mark.parametrize("name", SEEDINGS)
def test_rows_of_weight_zero_are_never_picked(name):
    X = np.random.default_rng(0).normal(size=(60, 2))
    weights = np.zeros(60)
    weights[10:20] = 1.0
    for seed in range(20):
        for k in (1, 5, 10):
            chosen = picks(name, X, k, seed, weights)
            assert set(chosen.tolist()) <= set(range(10, 20))
            assert len(set(chosen.tolist())) == k
        # More clusters than rows with a weight: they recur.
        assert set(picks(name, X, 15, seed, weights).tolist()) == set(range(10, 20))


@pytest.mark.parametrize("name", SEEDINGS)
@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_fewer_distinct_rows_than_clusters(name, device):
    X = np.repeat(np.arange(3.0)[:, None], 5, axis=0)
    chosen = picks(name, X, 7, 0, device=device)
    assert len(chosen) == 7
    assert name == "first" or len(set(X[chosen].ravel())) >= 2


def test_farthest_is_the_farthest_and_the_lowest_of_equals():
    X = np.array([[0.0], [10.0], [-10.0], [4.0]])
    seed = next(s for s in range(100) if picks("farthest", X, 1, s)[0] == 0)
    assert picks("farthest", X, 3, seed).tolist() == [0, 1, 2]


def test_plusplus_draws_in_proportion_to_weight_times_distance():
    X = np.array([[0.0], [1.0], [3.0]])
    weights = np.array([1.0, 4.0, 1.0])
    counts = np.zeros(3)
    for seed in range(3000):
        _, rows = kmeans_plusplus(X, 2, sample_weight=weights, random_state=seed, n_local_trials=1)
        if rows[0] == 0:
            counts[rows[1]] += 1
    share = counts[2] / counts.sum()
    assert counts[0] == 0
    assert share == pytest.approx(9 / 13, abs=4 * np.sqrt(9 / 13 * 4 / 13 / counts.sum()))


def test_a_far_outlier_does_not_drown_the_others():
    X = np.random.default_rng(0).normal(size=(200, 2))
    X[17] = 1e140
    chosen = picks("k-means++", X, 6, 0)
    assert 17 in chosen
    assert len(set(chosen.tolist())) == 6
