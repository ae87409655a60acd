from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_blobs

from lloydia import KMeans, assign
from lloydia.backends import choose
from lloydia.backends.cpu.part import CPUPart
from lloydia.backends.group import Here
from lloydia.backends.parts import Parts
from lloydia.exact.counter import chosen, uniforms
from lloydia.seeding import SEEDINGS
from lloydia.seeding.parallel import parallel
from nasty import FLAVOURS, rows_of


def picks(engine, k, seed=0):
    return parallel(engine, k, np.random.RandomState(seed)).tolist()


def in_parts(X, weights, edges):
    return Parts(
        Here(
            [
                CPUPart(X[a:b], None if weights is None else weights[a:b], 1 + a % 2)
                for a, b in pairwise(edges)
            ]
        )
    )


@pytest.mark.parametrize("flavour", FLAVOURS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_engine_and_partition_picks_the_same_rows(flavour, dtype):
    for d, k in ((2, 5), (12, 30)):
        X = rows_of(flavour, 500, d, dtype, seed=3)
        weights = 10.0 ** np.random.default_rng(4).uniform(-3, 3, size=500) if d == 2 else None
        expected = picks(choose("reference", X, weights, None), k)
        assert len(expected) == k
        sparse = sp.csr_matrix(X)
        for threads in (1, 3):
            assert picks(choose("cpu", X, weights, threads), k) == expected
        assert picks(choose("cpu", sparse, weights, 2), k) == expected
        for edges in ([0, 137, 500], [0, 1, 2, 250, 500]):
            assert picks(in_parts(X, weights, edges), k) == expected
            assert picks(in_parts(sparse, weights, edges), k) == expected


def test_a_seeding_is_about_as_good_as_that_of_plusplus():
    X = make_blobs(20_000, 5, centers=40, cluster_std=1.5, random_state=0)[0]

    def cost(name):
        costs = []
        for seed in range(5):
            rows = SEEDINGS[name](choose("cpu", X, None, None), 40, np.random.RandomState(seed))
            costs.append(assign(X, X[rows])[1])
        return np.median(costs)

    assert cost("k-means||") < 1.2 * cost("k-means++")


def test_about_ten_k_distinct_candidates_are_chosen(monkeypatch):
    X = np.random.default_rng(0).normal(size=(30_000, 3))
    engine, reduced = choose("cpu", X, None, None), []
    subset = engine.subset
    monkeypatch.setattr(engine, "subset", lambda *given: reduced.append(given) or subset(*given))
    parallel(engine, 50, np.random.RandomState(0))
    ((rows, _),) = reduced
    assert len(set(rows.tolist())) == len(rows)
    assert 0.8 * 500 < len(rows) < 1.2 * 500


def test_where_the_rounds_choose_too_few_the_rest_are_drawn():
    # Each round finds the next largest row only.
    X = 10.0 ** np.arange(0, 300, 6)[:, None] * 1e-150
    for device in ("cpu", "reference"):
        rows = picks(choose(device, X, None, 1), 12)
        assert len(set(rows)) == 12


def test_a_fit_is_the_oracles():
    X = make_blobs(2000, 6, centers=9, random_state=1)[0].astype(np.float32)
    models = [
        KMeans(9, init="k-means||", random_state=3, device=device).fit(X)
        for device in ("cpu", "reference")
    ]
    assert (models[0].labels_ == models[1].labels_).all()
    assert models[0].inertia_ == models[1].inertia_


def test_numbers_of_rows_are_uniform_and_depend_on_key_and_row_alone():
    u = uniforms(2**64 - 3, 100_000)
    assert (uniforms(2**64 - 3, 10) == u[:10]).all()
    assert u.min() >= 0
    assert u.max() < 1
    counts = np.histogram(u, bins=50, range=(0, 1))[0]
    assert ((counts - 2000) ** 2 / 2000).sum() < 85  # chi-squared, 49 degrees: beyond 0.1 %
    assert abs(np.corrcoef(u, uniforms(5, 100_000))[0, 1]) < 0.02
    assert abs(np.corrcoef(u[1:], u[:-1])[0, 1]) < 0.02


def test_splitmix64_is_the_published_one():
    # The first outputs for the state 1234567, from the authors' reference code.
    expected = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert uniforms(1234567, 3).tolist() == [(z >> 11) * 2.0**-53 for z in expected]


def test_rows_are_chosen_in_proportion_to_their_terms():
    terms = np.array([0, 1, 2, 4, 8, 1000], dtype=np.int64)
    counts = np.zeros(6)
    for key in range(4000):
        counts[chosen(terms, 40, key, 2.0)] += 1
    assert counts[0] == 0
    assert counts[5] == 4000
    expected = 4000 * np.array([1, 2, 4, 8]) * 2 / 40
    assert np.abs(counts[1:5] - expected).max() < 4.5 * np.sqrt(expected.max())
