"""Filtering looks at few centres, and never rules out one that is nearest."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from lloydia import KMeans, stopping
from lloydia.algorithms.filtering import FAN, MAX_ROOTS, MIXED, TILE, sizes
from lloydia.backends import choose
from lloydia.backends.cpu.rows.dataset import Dataset
from nasty import FLAVOURS, clusters_of, nasty_rows, nasty_weights, rows_of

pytestmark = pytest.mark.filterwarnings(
    f"ignore::{ConvergenceWarning.__module__}.ConvergenceWarning"
)


def answer(model):
    return (
        model.labels_.tobytes(),
        model.cluster_centers_.tobytes(),
        model.inertia_,
        model.n_iter_,
    )


def fits(k, X, weights=None, n_threads=1, **options):
    """Fit with filtering and by the oracle, from the same start."""
    options = {"n_init": 1, "random_state": 0, **options}
    filtered = KMeans(k, algorithm="filtering", n_threads=n_threads, **options)
    oracle = KMeans(k, device="reference", **options)
    return filtered.fit(X, sample_weight=weights), oracle.fit(X, sample_weight=weights)


def test_the_levels_end_with_few_roots():
    for n in (1, TILE, TILE + 1, TILE * MAX_ROOTS, TILE * MAX_ROOTS + 1, 10**7):
        levels = sizes(n)
        assert (levels[0] - 1) * TILE < n <= levels[0] * TILE
        assert levels[-1] <= MAX_ROOTS
        assert (levels[:-1] > MAX_ROOTS).all()
        assert (levels[1:] == -(-levels[:-1] // FAN)).all()


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("flavour", FLAVOURS)
@pytest.mark.parametrize("shape", [(3000, 2, 17), (700, 3, 40), (40, 1, 7), (900, 5, 3)], ids=str)
def test_the_bits_of_the_oracle(shape, flavour, dtype, monkeypatch):
    monkeypatch.setattr(Dataset, "block", lambda self, cost, n=None: 141)
    n, d, k = shape
    X = rows_of(flavour, n, d, dtype, seed=3)
    rng = np.random.default_rng(1)
    weights = 10.0 ** rng.uniform(-8, 8, size=n) * (rng.random(n) < 0.9)
    for w, threads in ((None, 1), (weights, 3)):
        filtered, oracle = fits(k, X, w, threads)
        assert answer(filtered) == answer(oracle)


@pytest.mark.slow
@given(nasty_rows(most=400, features=9), st.data())
@settings(deadline=None, max_examples=60)
def test_nasty_data(X, data):
    weights = data.draw(nasty_weights(len(X)))
    k = data.draw(clusters_of(len(X), weights, 30))
    options = {
        "init": data.draw(st.sampled_from(["k-means++", "random", "first"])),
        "random_state": data.draw(st.integers(0, 1000)),
        "max_iter": data.draw(st.sampled_from([1, 2, 50])),
        "empty": data.draw(st.sampled_from(["relocate", "keep"])),
    }
    filtered, oracle = fits(k, X, weights, **options)
    assert answer(filtered) == answer(oracle)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_several_levels_of_nodes(dtype):
    """More tiles than roots, few enough centres for nodes to be owned and to change owners."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3 * TILE * MAX_ROOTS + 17, 2)).astype(dtype)
    for k in (1, 2, 12):
        filtered, oracle = fits(k, X, init="first", max_iter=25, n_threads=2)
        assert answer(filtered) == answer(oracle)


def test_ties_of_whole_boxes_go_to_the_lowest_index():
    """Integers, and centres in duplicate and half way between them."""
    grid = np.stack(np.meshgrid(np.arange(60), np.arange(60)), axis=-1).reshape(-1, 2)
    C = np.array([[10.0, 10], [40, 10], [10, 10], [25, 40], [40, 10], [10, 40], [40, 40]])
    for dtype in (np.float32, np.float64):
        filtered, oracle = fits(7, grid.astype(dtype), init=C.astype(dtype), empty="keep")
        assert answer(filtered) == answer(oracle)


@pytest.mark.parametrize("exponent", [2, 8, 14, 20])
def test_rows_so_far_away_that_the_rounding_of_D_decides(exponent):
    """Far boxes near the bisector of two centres: the margin must keep both."""
    rng = np.random.default_rng(exponent)
    C = rng.normal(size=(2, 2))
    along = (C[1] - C[0]) / np.linalg.norm(C[1] - C[0])
    away = np.array([-along[1], along[0]]) * 2.0 ** (exponent + 18)
    steps = 2.0 ** rng.uniform(exponent - 20, exponent + 4, 3000) * rng.choice([-1, 1], 3000)
    X = C.mean(axis=0) + away + along * np.sort(steps)[:, None]
    filtered, oracle = fits(2, X, init=C, max_iter=1, tol=0)
    assert answer(filtered) == answer(oracle)


def test_the_inertia_of_every_iteration_and_emptied_clusters():
    X = np.random.default_rng(0).normal(size=(5000, 2))
    C = np.vstack([X[:10], np.full((3, 2), 50.0) + np.arange(3)[:, None]])
    rule = stopping.Inertia(drop=1e-3) | stopping.Labels(0.001)
    filtered, oracle = fits(13, X, init=C, stop=rule, n_threads=2)
    assert answer(filtered) == answer(oracle)
    assert filtered.inertia_history_ == oracle.inertia_history_


def test_few_distances_and_fewer_later():
    X = np.random.default_rng(0).uniform(size=(50_000, 2))
    engine = choose("cpu", X, None, 1)
    engine.start(X[:200], "filtering")
    for _ in range(5):
        before = engine.n_distances
        engine.iterate(False)
    assert engine.n_distances - before < 0.02 * X.size / 2 * 200
    owners = engine.run.bounds.owner[: sizes(len(X))[0]]
    labels = engine.labels()[engine.run.tiles.order][: len(X) // TILE * TILE].reshape(-1, TILE)
    owned = owners[: len(labels)] != MIXED
    assert owned.mean() > 0.1
    assert (labels[owned] == owners[: len(labels)][owned, None]).all()


def test_the_order_is_found_once_for_all_starts():
    X = np.random.default_rng(0).uniform(size=(1000, 2))
    engine = choose("cpu", X, None, 1)
    engine.start(X[:5], "filtering")
    engine.iterate(False)
    tiles, labels = engine.run.tiles, engine.labels()
    kept = labels.copy()
    engine.start(X[5:10], "filtering")
    engine.iterate(False)
    assert engine.run.tiles is tiles
    assert (labels == kept).all()


def test_sparse_data_are_refused():
    with pytest.raises(ValueError, match="dense"):
        KMeans(2, algorithm="filtering").fit(sp.csr_matrix(np.eye(5)))
