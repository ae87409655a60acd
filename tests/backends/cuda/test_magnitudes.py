"""Rows whose squared distances overflow are refused, also where they are measured on the way."""

from __future__ import annotations

import numpy as np
import pytest

import lloydia
from lloydia import KMeans


def rows(d: int, largest: float) -> np.ndarray:
    X = np.random.default_rng(d).normal(size=(60, d))
    X[41, d - 1] = -largest
    return X


def fit(X: np.ndarray, device: str) -> None:
    KMeans(3, init=X[:3].copy(), n_init=1, device=device).fit(X)


def seed(X: np.ndarray, device: str) -> None:
    lloydia.kmeans_plusplus(X, 3, random_state=0, device=device)


def assign(X: np.ndarray, device: str) -> None:
    lloydia.assign(X, X[:3].copy(), device=device)


def predict(X: np.ndarray, device: str) -> None:
    model = KMeans(3, init=X[:3].copy(), n_init=1, device=device).fit(rows(X.shape[1], 1.0))
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
        with pytest.raises(ValueError, match=r"magnitude 1e\+170 is too large"):
            KMeans(3, init=start, n_init=1, device="cuda").fit(X)
