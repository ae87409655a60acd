"""One table: every algorithm, type, thread count, start and weighting against the oracle."""

from __future__ import annotations

import itertools
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from lloydia import KMeans, assign, stopping
from lloydia.algorithms import hamerly
from lloydia.algorithms.auto import Auto
from lloydia.backends.cpu.rows.dataset import Dataset
from lloydia.backends.cpu.scan import scanners, tile_scores
from lloydia.seeding import SEEDINGS
from nasty import FLAVOURS, clusters_of, nasty_rows, nasty_weights, rows_of
from table import INITS, answer, blobs, start_of, weights_of

pytestmark = pytest.mark.filterwarnings(
    f"ignore::{ConvergenceWarning.__module__}.ConvergenceWarning"
)


@pytest.fixture(autouse=True, scope="module")
def small_blocks():
    """Hand out a few rows at a time, so that threads share the work of small data too.

    Bounds are kept from the start, though they would not pay.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Dataset, "block", lambda self, cost, n=None: 41)
        patch.setattr(hamerly, "COST", -np.inf)
        yield


ALGORITHMS = ("lloyd", "elkan", "hamerly", "exponion", "yinyang", "filtering", "auto")
THREADS = (1, 2, 3, 7)
SHAPES = ((1500, 2, 9), (1500, 12, 9))  # few features and more


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("weighting", [pytest.param("none", marks=pytest.mark.slow), "wide"])
@pytest.mark.parametrize("init", INITS)
def test_every_engine_gives_the_bits_of_the_oracle(shape, dtype, weighting, init):
    n, d, k = shape
    X = blobs(n, d, dtype)
    weights = weights_of(weighting, n)
    common = {"init": start_of(init, X, k), "n_init": 1, "random_state": 4, "max_iter": 30}
    oracle = KMeans(k, device="reference", **common).fit(X, sample_weight=weights)
    assert oracle.n_iter_ > 3
    for algorithm, threads in itertools.product(ALGORITHMS, THREADS):
        model = KMeans(k, algorithm=algorithm, n_threads=threads, **common)
        model.fit(X, sample_weight=weights)
        assert answer(model) == answer(oracle), (algorithm, threads)
        assert (model.predict(X) == model.labels_).all()
    for algorithm in set(ALGORITHMS) - {"filtering"}:
        sparse = sp.csr_matrix(X)
        model = KMeans(k, algorithm=algorithm, n_threads=2, **common)
        assert answer(model.fit(sparse, sample_weight=weights)) == answer(oracle), algorithm


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("d", [2, 12])
@pytest.mark.parametrize("seed", range(4))
def test_a_run_may_change_its_algorithm_at_any_time(seed, d, dtype, monkeypatch):
    choices = np.random.default_rng(seed)
    used = set()

    def after(self, seconds, moving):
        used.add(chosen := str(choices.choice(ALGORITHMS[:-1])))
        return chosen

    monkeypatch.setattr(Auto, "after", after)
    X, weights = blobs(1200, d, dtype), weights_of("wide", 1200)
    common = {"init": X[:11], "stop": stopping.Labels(), "random_state": 0}
    oracle = KMeans(11, device="reference", **common).fit(X, sample_weight=weights)
    model = KMeans(11, n_threads=3, **common).fit(X, sample_weight=weights)
    assert answer(model) == answer(oracle)
    assert len(used) > 2


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_units_that_multiply_pairs_change_nothing(algorithm, dtype, monkeypatch):
    # Too many rows to be held.
    X = blobs(3100, 65, dtype)
    common = {"init": X[:50], "n_init": 1, "max_iter": 6, "tol": 0}
    expected = answer(KMeans(50, device="reference", **common).fit(X))
    seen = []
    leading = scanners.prefiltered_scanner
    monkeypatch.setattr(scanners, "prefiltered_scanner", lambda *a: seen.append(1) or leading(*a))
    monkeypatch.setattr(scanners, "PREFILTER_NUMBERS", 0)
    assert answer(KMeans(50, algorithm=algorithm, **common).fit(X)) == expected
    if algorithm in ("lloyd", "hamerly", "exponion", "auto"):
        assert bool(seen) == tile_scores.AVAILABLE
    monkeypatch.setattr(scanners, "PREFILTER_NUMBERS", 10**9)
    assert answer(KMeans(50, algorithm=algorithm, **common).fit(X)) == expected


@pytest.mark.skipif(not tile_scores.AMX, reason="this processor has no tiles")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("d", [1, 2, 15, 32, 129])
def test_tiles_and_vectors_give_the_same_bits(d, dtype, monkeypatch):
    monkeypatch.setattr(scanners, "TILED_CENTERS", 1)
    for flavour in FLAVOURS:
        X = rows_of(flavour, 400, d, dtype, seed=d)
        oracle = assign(X, X[:40], device="reference")
        for least in (1, 1000):
            monkeypatch.setattr(scanners, "TILED_FEATURES", least)
            labels, inertia = assign(X, X[:40])
            assert (labels == oracle[0]).all(), (flavour, least)
            assert inertia == oracle[1]


@pytest.mark.slow
@pytest.mark.parametrize(("layout", "dtype"), [("Fortran", "float32"), ("sliced", "float64")])
def test_any_layout_gives_the_same_bits_without_a_copy(layout, dtype):
    X = blobs(700, 11, dtype)
    other = {
        "Fortran": np.asfortranarray(X),
        "sliced": np.repeat(np.repeat(X[::-1], 2, axis=0), 3, axis=1)[::-2, ::3],
    }[layout]
    assert (other == X).all()
    assert not other.flags.c_contiguous
    expected = answer(KMeans(6, random_state=0).fit(X))
    for algorithm in ALGORITHMS:
        assert answer(KMeans(6, random_state=0, algorithm=algorithm).fit(other)) == expected


def test_no_layout_is_copied():
    X = np.asfortranarray(blobs(200_000, 8, "float32"))
    # Compiling takes memory too, and which kernels there are depends on the layout and the rows.
    KMeans(3, random_state=0, max_iter=2).fit(X)
    tracemalloc.start()
    KMeans(3, random_state=0, max_iter=2).fit(X)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 24 * len(X) + 2_000_000


@pytest.mark.slow
@given(nasty_rows(most=60, features=12), st.data())
@settings(deadline=None, max_examples=120)
def test_nasty_data_give_the_bits_of_the_oracle(X, data):
    weights = data.draw(nasty_weights(len(X)))
    k = data.draw(clusters_of(len(X), weights, 8))
    common = {
        "init": data.draw(st.sampled_from(sorted(SEEDINGS))),
        "n_init": 1,
        "random_state": data.draw(st.integers(0, 1000)),
        "tol": data.draw(st.sampled_from([0, 1e-4])),
        "max_iter": data.draw(st.sampled_from([1, 2, 50])),
        "empty": data.draw(st.sampled_from(["relocate", "keep"])),
    }
    oracle = KMeans(k, device="reference", **common).fit(X, sample_weight=weights)
    for algorithm in ALGORITHMS if k > 1 else ("lloyd",):
        model = KMeans(k, algorithm=algorithm, n_threads=2, **common).fit(X, sample_weight=weights)
        assert answer(model) == answer(oracle), algorithm
        assert (model.predict(X) == model.labels_).all()
    sparse = KMeans(k, n_threads=2, **common).fit(sp.csr_matrix(X), sample_weight=weights)
    assert answer(sparse) == answer(oracle)


def test_threads_do_share_the_work(monkeypatch):
    from lloydia.backends.cpu.runtime import pool

    used = set()
    run = pool.run

    def noted(task, n, size, n_threads, least=None):
        def noting(thread, start, stop):
            used.add(thread)
            task(thread, start, stop)

        run(noting, n, size, n_threads, least)

    monkeypatch.setattr(pool, "run", noted)
    KMeans(9, n_threads=3, random_state=0).fit(blobs(20_000, 12, "float32"))
    assert used == {0, 1, 2}


@pytest.mark.parametrize("k", [1, 2, 40])
@pytest.mark.parametrize("d", [1, 3, 9, 50])
@pytest.mark.parametrize("n", [1, 7, 40, 300])
def test_odd_shapes(n, d, k):
    k = min(n, k)
    X = blobs(n, d, "float32", seed=n + d)
    oracle = KMeans(k, random_state=0, device="reference").fit(X)
    for algorithm in ALGORITHMS if k > 1 else ("lloyd", "hamerly", "exponion"):
        assert answer(KMeans(k, random_state=0, algorithm=algorithm).fit(X)) == answer(oracle)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("d", [2, 30])
def test_many_blocks_and_the_history(d, dtype):
    X = blobs(5000, d, dtype)
    rule = stopping.Inertia(drop=1e-3) | stopping.Labels(0.001)
    oracle = KMeans(20, random_state=1, stop=rule, device="reference").fit(X)
    for threads in (1, 3):
        model = KMeans(20, random_state=1, stop=rule, n_threads=threads).fit(X)
        assert answer(model) == answer(oracle)
        assert model.inertia_history_ == oracle.inertia_history_
    assert len(oracle.inertia_history_) == oracle.n_iter_
    assert (np.diff(oracle.inertia_history_) <= 0).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("flavour", ["offset", "grid", "outlier", "duplicates"])
def test_rows_in_doubt_are_settled_as_the_oracle_does(flavour, dtype):
    X = rows_of(flavour, 800, 16, dtype, seed=3)
    oracle = KMeans(12, random_state=2, device="reference").fit(X)
    model = KMeans(12, random_state=2).fit(X)
    assert answer(model) == answer(oracle)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_near_ties_at_the_edge_of_the_certificate(algorithm):
    """Rows on the bisector of two centres, moved by single units in the last place."""
    rng = np.random.default_rng(0)
    d = 24
    C = rng.normal(size=(2, d)).astype(np.float32)
    middle = C.mean(axis=0, dtype=np.float64)
    along = (C[1] - C[0]).astype(np.float64)
    steps = np.linspace(-1e-6, 1e-6, 2001)[:, None]
    X = (middle + steps * along).astype(np.float32)
    oracle = KMeans(2, init=C, max_iter=1, device="reference").fit(X)
    model = KMeans(2, init=C, max_iter=1, algorithm=algorithm).fit(X)
    assert answer(model) == answer(oracle)
    assert algorithm != "lloyd" or model.n_rechecked_ > 100


def test_rows_so_far_away_that_the_rounding_of_D_decides():
    """2**38 from two near centres, the canonical D are rounded more than their difference."""
    rng = np.random.default_rng(0)
    C = rng.normal(size=(2, 9))
    along = (C[1] - C[0]) / np.linalg.norm(C[1] - C[0])
    away = rng.normal(size=(5000, 9))
    away -= (away @ along)[:, None] * along
    away /= np.linalg.norm(away, axis=1)[:, None]
    steps = 2.0 ** rng.uniform(10, 26, 5000) * rng.choice([-1, 1], 5000)
    X = C.mean(axis=0) + away * 2.0**38 + along * steps[:, None]
    expected, _ = assign(X, C, device="reference")
    assert 0 < expected.mean() < 1
    assert (assign(X, C)[0] == expected).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_distances_and_score_are_the_oracles(dtype):
    X = blobs(400, 10, dtype)
    model = KMeans(5, random_state=0).fit(X)
    model.set_params(device="reference")
    expected, score = model.transform(X), model.score(X, sample_weight=weights_of("wide", 400))
    model.set_params(device="auto")
    assert (model.transform(X) == expected).all()
    assert (model.transform(sp.csr_matrix(X)) == expected).all()
    assert model.score(X, sample_weight=weights_of("wide", 400)) == score
    assert (np.diag(model.transform(model.cluster_centers_)) == 0).all()
