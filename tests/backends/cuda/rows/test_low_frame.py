"""The frame of float32 scores: the device finds what the host does, whatever is far away."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from lloydia import KMeans
from lloydia.backends import choose
from lloydia.backends.cuda.rows.frame import frame_of
from table import answer


def rows(n, d, dtype, kind):
    """Return rows about 100, of which some are far away, or that are all alike, or sorted."""
    X = np.random.default_rng(n + d).normal(100.0, 3.0, size=(n, d))
    if kind == "far":
        X[:: max(n // 3, 1)] = 1e6
    elif kind == "alike":
        X[:] = 7.0
    elif kind == "sorted":
        X = np.sort(X, axis=0) * 1e2
    return np.minimum(X, 6e4 if dtype == "float16" else np.inf).astype(dtype)


@pytest.mark.parametrize("kind", ["near", "far", "alike", "sorted"])
@pytest.mark.parametrize(
    ("n", "d", "dtype"),
    [(1, 2, "float32"), (31, 3, "float16"), (5000, 1, "float64"), (300, 3, "float32")],
)
def test_the_device_finds_that_of_the_host(n, d, dtype, kind):
    X = rows(n, d, dtype, kind)
    engine = choose("cuda", X, None, None)
    engine.start(X[:1].astype(engine.dtype), "lloyd")
    engine.iterate(False).result()
    found = engine.run.launches.numbers.cpu().numpy().view(np.float64)[3 * (d + 1) : 4 * (d + 1)]
    expected = frame_of(torch.from_numpy(X), np.abs(X).max(axis=0).astype("float64"), engine.dtype)
    np.testing.assert_array_equal(found, expected)


def test_pictures_are_not_looked_at_in_one_column():
    rng = np.random.default_rng(0)
    X = rng.integers(256, size=(128, 128)).astype("float32")
    X[:, :4] = rng.integers(4, size=(128, 4))
    rows = X.reshape(-1, 1)
    origin, scale = frame_of(torch.from_numpy(rows), np.array([255.0]), rows.dtype)
    assert (np.abs(rows - origin) * scale <= 1.0).all()


@pytest.mark.parametrize("kind", ["near", "far", "sorted"])
def test_most_rows_are_near_one(kind):
    X = rows(1000, 2, "float64", kind)
    *origin, scale = frame_of(torch.from_numpy(X), np.abs(X).max(axis=0), X.dtype)
    reach = np.abs(X - origin).max(axis=1) * scale
    assert np.mean(reach <= 1.0) > 0.98
    assert np.quantile(reach, 0.9) > 2**-6


@pytest.mark.parametrize("d", [1, 2, 3, 8])
def test_rows_far_away_make_no_others_uncertain(d):
    X = np.random.default_rng(d).normal(5.0, 1.0, size=(1000, d)).astype("float32")
    start = X[20:60]
    near = KMeans(len(start), init=start, max_iter=1, tol=0, device="cuda").fit(X)
    far = np.array([1e6, -3e5, 2e7], dtype="float32")[:, None] * np.ones(d, dtype="float32")
    X[[7, 300, 800]] = far
    parameters = {"init": np.concatenate([far, start]), "max_iter": 1, "tol": 0}
    model = KMeans(len(start) + 3, device="cuda", **parameters).fit(X)
    assert answer(model) == answer(KMeans(len(start) + 3, device="reference", **parameters).fit(X))
    # Of two assignments.
    assert model.n_rechecked_ <= 2 * near.n_rechecked_ + 10


@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
@pytest.mark.parametrize(
    ("d", "dtype"),
    [(1, "float32"), (2, "float32"), (2, "float64"), (3, "float64"), (8, "float32")],
)
def test_rows_between_centers_of_any_norm_have_the_bits_of_the_oracle(d, dtype):
    """Next to the middle of two centres, some as near as float32 can be."""
    rng = np.random.default_rng(d)
    k, n = 40, 600
    centers = rng.normal(size=(k, d)) * 10.0 ** rng.uniform(-3, 5, size=(k, 1))
    pairs = rng.integers(k, size=(n, 2))
    across = centers[pairs[:, 1]] - centers[pairs[:, 0]]
    beside = 0.5 + rng.normal(size=(n, 1)) * 10.0 ** rng.uniform(-9, -3, size=(n, 1))
    X = (centers[pairs[:, 0]] + beside * across).astype(dtype)
    parameters = {"init": centers.astype(dtype), "max_iter": 1, "tol": 0}
    model = KMeans(k, device="cuda", **parameters).fit(X)
    assert answer(model) == answer(KMeans(k, device="reference", **parameters).fit(X))


@pytest.mark.parametrize("huge", [1e12, 1e19, 1e30])
def test_centers_that_no_score_can_hold_win_only_what_is_checked_again(huge):
    X = np.random.default_rng(0).normal(size=(400, 2)).astype("float32")
    X[:5] = np.float32(huge)
    start = np.concatenate([X[:1] * np.float32(0.9), X[10:30], X[:1]])
    parameters = {"init": start, "max_iter": 2, "tol": 0}
    model = KMeans(len(start), device="cuda", **parameters).fit(X)
    assert answer(model) == answer(KMeans(len(start), device="reference", **parameters).fit(X))
    assert model.n_rechecked_ < 0.1 * 3 * len(X)
