"""Data and starts of the table-driven tests of engines, and the results that must be equal."""

from __future__ import annotations

import numpy as np

from lloydia.data.arrays import on_host

__all__ = ["INITS", "answer", "blobs", "start_of", "weights_of"]

INITS = ("k-means++", "random", "first", "farthest", "k-means||", "array", "callable")


def some_rows(X, n_clusters, random_state):
    """Return different rows, drawn at random: a callable `init`."""
    return X[random_state.permutation(X.shape[0])[:n_clusters]]


def start_of(init, X, k):
    """Return the parameter `init` for a name of INITS."""
    if init == "array":
        return np.ascontiguousarray(X[np.linspace(0, len(X) - 1, k).astype(int)])
    return some_rows if init == "callable" else init


def answer(model):
    """Return everything that is part of the contract, as bytes."""
    return (
        on_host(model.labels_).tobytes(),
        on_host(model.cluster_centers_).tobytes(),
        model.inertia_,
        model.n_iter_,
    )


def blobs(n, d, dtype, seed=0):
    """Return overlapping blobs with a few exact duplicates and ties."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * 1.5 + 4 * rng.integers(-1, 2, size=(n, d))
    X[: n // 10] = np.round(X[: n // 10])
    return np.ascontiguousarray(X.astype(dtype))


def weights_of(kind, n):
    """Return no weights, or "wide" ones: 16 orders of magnitude, and zeros for a tenth of rows."""
    if kind == "none":
        return None
    if kind != "wide":
        raise ValueError(f"There are no weights of the kind {kind!r}: use 'none' or 'wide'.")
    rng = np.random.default_rng(5)
    return 10.0 ** rng.uniform(-8, 8, size=n) * (rng.random(n) < 0.9)
