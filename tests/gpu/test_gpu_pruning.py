"""Iterations by bounds, on a GPU: the CPU's bits, whether rows are scored or spared."""

from __future__ import annotations

import numpy as np
import pytest

from lloydia import KMeans
from lloydia.backends.cuda import dispatch
from lloydia.backends.cuda.matmul.pruning import run as pruning
from table import answer

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    """Have runs of a few thousand rows leave rows out once a tenth of them changes."""
    monkeypatch.setattr(dispatch, "MIN_PRUNED_PRODUCTS", 1e8)
    monkeypatch.setattr(pruning, "ROWS_PER_CHANGE", 10)


def clusters(n, d, k, dtype, seed=0):
    rng = np.random.default_rng(seed)
    means = rng.normal(size=(k, d)) * 2.0
    means[: k // 4] = means[0] + 0.3 * rng.normal(size=(k // 4, d))
    return (means[rng.integers(k, size=n)] + rng.normal(size=(n, d))).astype(dtype)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("d", "k", "dtype", "tol"),
    [
        (12, 1500, "float32", 0.0),
        (40, 300, "float64", 1e-6),
        (100, 700, "float32", 1e-7),
        (200, 400, "float32", 0.0),
        (300, 260, "float32", 0.0),
        (300, 260, "float64", 1e-6),
        (2000, 257, "float32", 0.0),
    ],
)
def test_runs_are_the_cpus(d, k, dtype, tol, weighted):
    X = clusters(20_000 if d < 1000 else 3000, d, k, dtype)
    weights = np.linspace(0.5, 2.0, len(X)) if weighted else None
    parameters = {"init": X[:k].copy(), "n_init": 1, "tol": tol, "max_iter": 60}
    expected = KMeans(k, device="cpu", **parameters).fit(X, sample_weight=weights)
    there = torch.as_tensor(X).cuda()
    # The second and third have recorded launches, and are begun before anything is made of them.
    for _ in range(3):
        model = KMeans(k, **parameters).fit(there, sample_weight=weights)
        assert answer(model) == answer(expected)
        assert model.n_distances_ < (model.n_iter_ + 1) * len(X) * k


def test_empty_clusters_and_runs_that_begin_again():
    k, d = 300, 24
    X = clusters(20_000, d, k, "float32", seed=3)
    start = np.concatenate([X[: k - 5], X[:5] + 100.0])
    for empty in ("relocate", "keep"):
        parameters = {"init": start, "n_init": 1, "tol": 0.0, "max_iter": 40, "empty": empty}
        expected = KMeans(k, device="cpu", **parameters).fit(X)
        for _ in range(2):
            model = KMeans(k, **parameters).fit(torch.as_tensor(X).cuda())
            assert answer(model) == answer(expected)


def test_a_whole_run_of_many_rows(monkeypatch):
    """By the limits as they are: what is scanned and what is spared differ in nothing else."""
    monkeypatch.undo()
    n, d, k = 2_000_000, 128, 512
    generator = torch.Generator(device="cuda").manual_seed(5)
    means = torch.randn(k, d, device="cuda", generator=generator) * 1.5
    which = torch.randint(k, (n,), device="cuda", generator=generator)
    X = means[which] + torch.randn(n, d, device="cuda", generator=generator)
    model = KMeans(k, init=X[:k].clone(), n_init=1, tol=1e-5, max_iter=80).fit(X)
    monkeypatch.setattr(dispatch, "MIN_PRUNED_PRODUCTS", float("inf"))
    scanned = KMeans(k, init=X[:k].clone(), n_init=1, tol=1e-5, max_iter=80).fit(X)
    assert model.n_distances_ < 0.9 * scanned.n_distances_
    assert answer(model) == answer(scanned)
