"""The GPU engine against the CPU's, bit for bit, at sizes that fill the device."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from lloydia import KMeans, assign, kmeans_plusplus, stopping
from lloydia.algorithms import ALGORITHMS
from lloydia.backends import choose
from lloydia.data.arrays import on_host
from lloydia.exact import sums
from lloydia.loop.empty import EmptyClusterError
from lloydia.seeding import SEEDINGS
from nasty import FLAVOURS, clusters_of, nasty_rows, nasty_weights, rows_of
from table import INITS, answer, blobs, start_of, weights_of

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings(
    f"ignore::{ConvergenceWarning.__module__}.ConvergenceWarning"
)

TYPES = ("float16", "bfloat16", "float32", "float64")
# For each way to scan: d up to 8, narrow and wide rows, few and many centres, no round number.
SHAPES = ((20_011, 2, 9), (20_011, 3, 300), (20_011, 8, 100), (20_011, 16, 64), (9_973, 33, 1000),
          (5_003, 128, 257), (3_001, 770, 40), (1_009, 2050, 5))  # fmt: skip


def both(X, dtype):
    """Return rows on the GPU in a type, and the same values on the host as the CPU takes them."""
    rows = torch.as_tensor(X).to(getattr(torch, dtype)).cuda()
    return rows, on_host(rows)


def agree(rows, X, k, weights=None, **parameters):
    expected = KMeans(k, device="cpu", **parameters).fit(X, sample_weight=weights)
    model = KMeans(k, **parameters).fit(rows, sample_weight=weights)
    assert answer(model) == answer(expected)
    assert model.converged_ == expected.converged_
    assert model.labels_.device == rows.device
    return model, expected


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("weighting", ["none", "wide"])
@pytest.mark.parametrize("init", INITS)
def test_the_gpu_gives_the_bits_of_the_cpu(shape, dtype, weighting, init):
    n, d, k = shape
    rows, X = both(blobs(n, d, "float32"), dtype)
    common = {"init": start_of(init, X, k), "n_init": 1, "random_state": 4, "max_iter": 20}
    if init == "callable":
        common["init"] = lambda X, k, random_state: on_host(X)[random_state.permutation(n)[:k]]
    model, _ = agree(rows, X, k, weights_of(weighting, n), **common)
    assert (model.predict(rows) == model.labels_).all()


@pytest.mark.parametrize(("n", "d", "k"), [(140_000, 1, 300), (70_000, 1, 40), (300_000, 2, 60)])
@pytest.mark.parametrize("spread", ["grid", "normal"])
def test_rows_that_look_up_cells(n, d, k, spread):
    X = np.random.default_rng(d).normal(scale=30.0, size=(n, d)).astype("float32")
    rows, X = both(np.rint(X * 64) / 64 if spread == "grid" else X, "float32")
    agree(rows, X, k, init=X[:k], max_iter=5, tol=0)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_name_of_the_algorithm_changes_nothing(algorithm):
    rows, X = both(blobs(20_000, 8, "float32"), "float32")
    model, _ = agree(rows, X, 20, algorithm=algorithm, random_state=0)
    assert model.algorithm_ == "lloyd"


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("d", [2, 40])
@pytest.mark.parametrize("empty", ["relocate", "keep", "error"])
def test_empty_clusters(empty, d, dtype):
    rows, X = both(blobs(10_000, d, "float32"), dtype)
    far = np.vstack([X[:9], np.full((7, d), 1e3, dtype=X.dtype)])
    if empty == "error":
        with pytest.raises(EmptyClusterError):
            KMeans(16, init=far, empty=empty).fit(rows)
        return
    for weights in (None, weights_of("wide", len(X))):
        agree(rows, X, 16, weights, init=far, empty=empty)


@pytest.mark.parametrize("empty", ["relocate", "keep"])
def test_more_clusters_than_different_rows(empty):
    rows, X = both(np.repeat(blobs(7, 3, "float32"), 500, axis=0), "float32")
    agree(rows, X, 12, empty=empty, init="random", n_init=3, random_state=0)


@pytest.mark.parametrize("d", [2, 40])
@pytest.mark.parametrize(
    "stop",
    [None, stopping.Labels(), stopping.Labels(0.01), stopping.Inertia(drop=50.0),
     stopping.Centers(1e-3) | stopping.Inertia(drop=1.0)],
    ids=str,
)  # fmt: skip
def test_stop_rules_and_the_history(stop, d):
    rows, X = both(blobs(20_000, d, "float32"), "float32")
    model, expected = agree(rows, X, 30, stop=stop, random_state=0)
    assert getattr(model, "inertia_history_", 0) == getattr(expected, "inertia_history_", 0)


@pytest.mark.parametrize("d", [2, 40])
def test_running_ahead_changes_nothing(d):
    rows, X = both(blobs(20_000, d, "float32"), "float32")
    for max_iter in (*range(1, 14), 25, 100):
        agree(rows, X, 30, max_iter=max_iter, tol=0, random_state=0)
    # With verbose the loop waits for every iteration.
    ahead = KMeans(30, tol=0, random_state=0).fit(rows)
    assert answer(KMeans(30, tol=0, random_state=0, verbose=1).fit(rows)) == answer(ahead)


def test_the_same_bits_again_and_again():
    rows, _ = both(blobs(200_000, 16, "float32"), "float32")
    assert len({answer(KMeans(64, random_state=0).fit(rows)) for _ in range(6)}) == 1


def test_rows_that_the_last_stage_settles_have_their_labels_each_time():
    """All rows go through it, so that warps of a program come there in any order."""
    rows, X = both(rows_of("subnormal", 3000, 130, "float32", seed=130), "float32")
    expected = answer(KMeans(25, device="cpu", random_state=1).fit(X))
    assert all(answer(KMeans(25, random_state=1).fit(rows)) == expected for _ in range(30))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("d", [1, 2, 9, 30, 130])
@pytest.mark.parametrize("flavour", FLAVOURS)
def test_nasty_rows(flavour, d, dtype):
    rows, X = both(rows_of(flavour, 3000, d, dtype, seed=d), dtype)
    for weights in (None, weights_of("wide", len(X))):
        agree(rows, X, 25, weights, random_state=1)


@pytest.mark.parametrize(
    ("fewest", "most"), [*((d, d) for d in range(1, 9)), (9, 16), (17, 24), (25, 32), (33, 40)]
)
@given(st.data())
@settings(deadline=None, max_examples=15)
def test_drawn_rows(fewest, most, data):
    X = data.draw(nasty_rows(most=200, features=most, fewest=fewest))
    rows, X = both(X, str(X.dtype))
    weights = data.draw(nasty_weights(len(X)))
    agree(
        rows, X, data.draw(clusters_of(len(X), weights, 20)), weights,
        init=data.draw(st.sampled_from(sorted(SEEDINGS))),
        n_init=1,
        random_state=data.draw(st.integers(0, 1000)),
        tol=data.draw(st.sampled_from([0, 1e-4])),
        max_iter=data.draw(st.sampled_from([1, 2, 50])),
        empty=data.draw(st.sampled_from(["relocate", "keep"])),
    )  # fmt: skip


@pytest.mark.parametrize("k", [1, 2, 40])
@pytest.mark.parametrize("d", [1, 3, 8, 9, 17, 50])
@pytest.mark.parametrize("n", [1, 7, 40, 300])
def test_odd_shapes(n, d, k):
    rows, X = both(blobs(n, d, "float32", seed=n + d), "float32")
    agree(rows, X, min(n, k), random_state=0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("d", [2, 24, 200])
def test_near_ties(d, dtype):
    """Rows on the bisector of two centres, moved by single units in the last place."""
    rng = np.random.default_rng(0)
    C = rng.normal(size=(2, d)) + 100
    eps = 2 * np.finfo(dtype).eps
    steps = np.linspace(-100 * eps, 100 * eps, 20_001)[:, None]
    rows, X = both(C.mean(axis=0) + steps * (C[1] - C[0]), dtype)
    C = C.astype(dtype)
    expected, inertia = assign(X, C, device="cpu")
    assert 0 < expected.mean() < 1
    labels, cost = assign(rows, C)
    assert (on_host(labels) == expected).all()
    assert cost == inertia


def test_rows_so_far_away_that_the_rounding_of_D_decides():
    rng = np.random.default_rng(0)
    for d in (3, 9, 70):
        C = rng.normal(size=(2, d))
        along = (C[1] - C[0]) / np.linalg.norm(C[1] - C[0])
        away = rng.normal(size=(5000, d))
        away -= (away @ along)[:, None] * along
        away /= np.linalg.norm(away, axis=1)[:, None]
        steps = 2.0 ** rng.uniform(10, 26, 5000) * rng.choice([-1, 1], 5000)
        rows, X = both(C.mean(axis=0) + away * 2.0**38 + along * steps[:, None], "float64")
        expected, _ = assign(X, C, device="cpu")
        assert (on_host(assign(rows, C)[0]) == expected).all()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("d", [3, 40])
def test_distances_and_score(d, dtype):
    rows, X = both(blobs(4000, d, "float32"), dtype)
    model, expected = agree(rows, X, 9, random_state=0)
    weights = weights_of("wide", len(X))
    assert (on_host(model.transform(rows)) == expected.transform(X)).all()
    assert model.score(rows, sample_weight=weights) == expected.score(X, sample_weight=weights)


@pytest.mark.parametrize("weighting", ["none", "wide"])
def test_seeds_are_the_cpus(weighting):
    rows, X = both(blobs(50_000, 16, "float32"), "float32")
    weights = weights_of(weighting, len(X))
    _, picked = kmeans_plusplus(rows, 200, random_state=3, sample_weight=weights)
    _, expected = kmeans_plusplus(X, 200, random_state=3, sample_weight=weights)
    assert (on_host(picked) == expected).all()


def test_very_many_clusters():
    rows, X = both(blobs(200_000, 16, "float32"), "float32")
    agree(rows, X, 20_000, init=X[:20_000], max_iter=3)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_tables_that_are_full_more_than_once_and_limbs_beside_them(dtype):
    # No multiple of the rows that programs look at together; magnitudes that span many limbs.
    n, k = 20_000_001, 32
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n, 4)).astype(dtype)
    X += 5 * rng.integers(0, k, size=(n, 1)).astype(dtype)
    X[::1000] *= 2.0 ** rng.integers(-90, 0, size=(len(X[::1000]), 1)).astype(dtype)
    rows = torch.from_numpy(X).cuda()
    agree(rows, X, k, init=X[1 : k + 1], max_iter=4, tol=0)
    assert sums.Grid.choose(sums.Magnitudes.of(X), X.dtype).n_limbs >= 4


def test_more_values_than_32_bits_count():
    n, d, k = 70_000_003, 32, 5
    rows = torch.randint(-8, 9, (n, d), dtype=torch.int8, device="cuda").half()
    C = rows[:k].float()
    labels, _ = assign(rows, C)
    for part in (slice(0, 1000), slice(n // 2, n // 2 + 1000), slice(n - 1000, n)):
        expected, _ = assign(on_host(rows[part]), on_host(C))
        assert (on_host(labels[part]) == expected).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("d", [2, 12])
def test_limits_beside_a_movement(d, dtype):
    X = blobs(50_000, d, dtype, seed=1)
    engine = choose("cpu", X, None, None)
    engine.start(X[:20].copy(), "lloyd")
    shifts = [engine.iterate(False).result().shift for _ in range(40)]
    for i in (3, 17, 37):
        for away in (-1e-8, 0.0, 1e-8):
            tol = shifts[i] / engine.mean_variance() * (1.0 + away)
            for max_iter in (i + 1, 300):
                parameters = {"init": X[:20], "tol": tol, "max_iter": max_iter}
                oracle = KMeans(20, device="cpu", **parameters).fit(X)
                assert answer(KMeans(20, device="cuda", **parameters).fit(X)) == answer(oracle)
