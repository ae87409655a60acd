"""Rows of weight 0 change nothing on a GPU either; kernels are interpreted."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.exceptions import ConvergenceWarning

from lloydia import KMeans, MiniBatchKMeans, k_means_batched
from lloydia.backends.cuda.runtime import devices
from table import answer, blobs

pytestmark = pytest.mark.filterwarnings(
    f"ignore::{ConvergenceWarning.__module__}.ConvergenceWarning"
)


def rows_and_weights(d, dtype):
    X = blobs(70, d, dtype)
    weights = np.random.default_rng(1).integers(0, 4, size=70) * 0.3
    weights[[0, -1]] = 0.0
    X[weights == 0] *= 1e5
    return X, weights, weights > 0


def agree(X, weights, kept, device, **parameters):
    """Check a fit on a device with the oracle's of the rows of positive weight."""
    oracle = KMeans(4, device="reference", **parameters).fit(X[kept], sample_weight=weights[kept])
    model = KMeans(4, device=device, **parameters).fit(X, sample_weight=weights)
    assert answer(model)[1:] == answer(oracle)[1:]
    assert np.array_equal(model.labels_[kept], oracle.labels_)
    assert np.array_equal(model.labels_, oracle.predict(X))


@pytest.mark.parametrize("device", ["cuda", "cuda:all"])
@pytest.mark.parametrize(
    ("d", "dtype", "init"),
    [(2, "float32", "k-means||"), (2, "float64", "random"), (9, "float32", "k-means++")],
)
def test_a_fit_without_rows_of_weight_0_is_the_same(d, dtype, init, device, monkeypatch):
    monkeypatch.setattr(devices, "_count", lambda: 2)
    X, weights, kept = rows_and_weights(d, dtype)
    agree(X, weights, kept, device, init=init, n_init=1, random_state=2, tol=0.05)


def test_a_row_of_weight_0_beyond_the_range():
    X, weights, kept = rows_and_weights(2, "float64")
    X[0] = 1e200
    model = KMeans(3, init=X[kept][:3], device="cuda").fit(X, sample_weight=weights)
    oracle = KMeans(3, init=X[kept][:3]).fit(X[kept], sample_weight=weights[kept])
    assert np.array_equal(model.labels_[kept], oracle.labels_)
    assert model.labels_[0] == 0


def test_batches_without_rows_of_weight_0_are_the_same():
    X, weights, kept = rows_and_weights(2, "float32")
    options = {"random_state": 0, "batch_size": 20, "max_iter": 2, "n_init": 1, "tol": 1e-3}
    model = MiniBatchKMeans(3, device="cuda", **options).fit(X, sample_weight=weights)
    oracle = MiniBatchKMeans(3, **options).fit(X[kept], sample_weight=weights[kept])
    assert answer(model)[1:] == answer(oracle)[1:]
    assert np.array_equal(model.labels_, oracle.predict(X))


def test_members_without_rows_of_weight_0_are_the_same(device):
    X, weights, _ = rows_and_weights(2, "float32")
    X, weights = np.stack([X, X[::-1]]), np.stack([weights, weights[::-1]])
    options = {"init": X[:, 3:6], "tol": 0.05, "sample_weight": weights}
    found = k_means_batched(torch.from_numpy(X).to(device), 3, **options)
    expected = k_means_batched(X, 3, device="cpu", **options)
    for a, b in zip(found, expected, strict=True):
        assert np.array_equal(np.asarray(torch.as_tensor(a).cpu()), b)
