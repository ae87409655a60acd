"""Rows whose squared distances overflow are refused, also where they are measured on the way."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import lloydia
from lloydia import KMeans, MiniBatchKMeans
from lloydia.backends.cuda.engine import CUDA
from lloydia.backends.magnitudes import check_range


def rows(d: int, largest: float) -> np.ndarray:
    X = np.random.default_rng(d).normal(size=(60, d))
    X[41, d - 1] = -largest
    return X


def fit(X: np.ndarray, device: str) -> None:
    KMeans(3, init=X[:3].copy(), n_init=1, max_iter=3, device=device).fit(X)


def seed(X: np.ndarray, device: str) -> None:
    lloydia.kmeans_plusplus(X, 3, random_state=0, device=device)


def assign(X: np.ndarray, device: str) -> None:
    lloydia.assign(X, X[:3].copy(), device=device)


def predict(X: np.ndarray, device: str) -> None:
    model = KMeans(3, init=X[:3].copy(), n_init=1, max_iter=3, device=device).fit(
        rows(X.shape[1], 1.0)
    )
    model.predict(X)


@pytest.mark.parametrize("d", [2, 12])
@pytest.mark.parametrize("work", [fit, seed, assign, predict])
def test_they_are_refused_as_on_the_cpu(work, d):
    X = rows(d, 1e160)
    with pytest.raises(ValueError, match="too large: squared distances overflow") as expected:
        work(X, "cpu")
    # The second time, kernels of this shape are known, and nobody waits for its magnitudes.
    for largest in (1.0, 1.0, 1e160):
        if largest == 1.0:
            work(rows(d, largest), "cuda")
        else:
            with np.errstate(all="ignore"), pytest.raises(ValueError, match="too large") as found:
                work(X, "cuda")
    assert str(found.value) == str(expected.value)


@pytest.mark.parametrize("d", [2, 12])
def test_starts_are_refused_too(d):
    X = rows(d, 1.0)
    start = X[:3].copy()
    start[1, 0] = 1e170
    for _ in range(2):
        with pytest.raises(ValueError, match=r"magnitude 1e\+170 in the centres is too large"):
            KMeans(3, init=start, n_init=1, device="cuda").fit(X)


def begun(X: np.ndarray, start: np.ndarray) -> CUDA:
    """Return an engine that has iterated once from a start that is beside its rows."""
    engine = CUDA(X, None, "cuda")
    there = torch.from_numpy(start).to(engine.device)
    check_range(engine, None, there, later=True)
    engine.start(there, "lloyd", max_iter=1)
    late = engine.iterate(False)
    late.begin()
    late.result()
    return engine


@pytest.mark.parametrize("d", [2, 12])
@pytest.mark.parametrize("value", [1e170, -1e170, np.nan, np.inf])
def test_starts_beside_the_rows_are_refused_too(d, value):
    X = rows(d, 1.0)
    start = X[:3].copy()
    engine = begun(X, start)
    expected = KMeans(3, init=start, n_init=1, max_iter=1, tol=0, device="cpu").fit(X)
    np.testing.assert_array_equal(engine.centers().cpu().numpy(), expected.cluster_centers_)
    start[2, d - 1] = value
    message = "too large: squared" if np.isfinite(value) else "NaN|infinity"
    for _ in range(2):
        with np.errstate(all="ignore"), pytest.raises(ValueError, match=message):
            begun(X, start)


@pytest.mark.parametrize("d", [2, 12])
def test_refused_rows_draw_nothing_and_leave_no_model(d):
    X, good = rows(d, 1e160), rows(d, 1.0)
    for model in (KMeans(3, init="random", n_init=1, device="cuda"),
                  MiniBatchKMeans(3, init="random", n_init=1, batch_size=20, tol=0.0,
                                  compute_labels=False, device="cuda")):  # fmt: skip
        model.set_params(random_state=np.random.RandomState(5))
        with pytest.raises(ValueError, match="too large: squared"):
            model.fit(X)
        assert not hasattr(model, "cluster_centers_")
        assert model.random_state.randint(1 << 30) == np.random.RandomState(5).randint(1 << 30)
        model.fit(good)
