"""Runs over few rows of few features, on a GPU: the CPU's bits, from the first fit of a form on."""

from __future__ import annotations

import numpy as np
import pytest

from lloydia import KMeans
from table import answer, blobs, weights_of

torch = pytest.importorskip("torch")


def agree(X, k, weights=None, **parameters):
    """Check that three fits have the CPU's bits: the second and third are of a known form."""
    parameters = {"init": X[:k].copy(), "n_init": 1, "tol": 0.0, **parameters}
    expected = KMeans(k, device="cpu", **parameters).fit(X, sample_weight=weights)
    there = torch.as_tensor(X).cuda()
    parameters["init"] = torch.as_tensor(parameters["init"]).cuda()
    for _ in range(3):
        model = KMeans(k, device="cuda", **parameters).fit(there, sample_weight=weights)
        assert answer(model) == answer(expected)
    return model


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", ["none", "wide"])
@pytest.mark.parametrize(
    ("n", "d", "k"), [(3, 1, 2), (128, 2, 16), (256, 3, 16), (300, 8, 40), (512, 4, 130)]
)
def test_runs_are_the_cpus(n, d, k, dtype, kind):
    for max_iter in (1, 10, 60):
        agree(blobs(n, d, dtype), k, weights_of(kind, n), max_iter=max_iter)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_many_fits_of_a_form(dtype):
    for seed in range(40):
        agree(blobs(256, 2, dtype, seed), 16, max_iter=10)


def test_rows_that_tie_and_rows_of_many_limbs():
    X = np.stack(np.meshgrid(np.arange(16.0), np.arange(16.0)), -1).reshape(-1, 2)
    start = np.array([[2.0, 3.0], [4.0, 3.0], [3.0, 2.0], [3.0, 4.0], [9.5, 9.5]])
    assert agree(X, 5, init=start, max_iter=5).n_rechecked_ > 10
    X[3] *= 2.0**30
    X[4] *= 2.0**-50
    agree(X, 5, init=start, max_iter=5)


@pytest.mark.parametrize("parameters", [{"tol": 1e-3}, {"max_iter": 40}, {"empty": "keep"}])
def test_runs_that_end_by_themselves(parameters):
    X = blobs(250, 2, "float32")
    start = np.concatenate([X[:6], [[900.0, 900.0]]]).astype("float32")
    assert agree(X, 7, init=start, **{"max_iter": 30, **parameters}).n_iter_ < 30
