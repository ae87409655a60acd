"""The table of tests/backends/test_engines.py for the GPU engine, small: kernels are interpreted.

tests/gpu has the large one, for a real device.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from lloydia import KMeans, assign, stopping
from lloydia.loop.empty import EmptyClusterError
from nasty import FLAVOURS, rows_of
from table import INITS, answer, blobs, start_of, weights_of

pytestmark = pytest.mark.filterwarnings(
    f"ignore::{ConvergenceWarning.__module__}.ConvergenceWarning"
)

# (n, d, k, dtype): one of each type for each way to scan.
SHAPES = (
    (50, 2, 4, "float32"),
    (40, 3, 3, "float64"),
    (40, 12, 4, "float32"),
    (40, 9, 3, "float64"),
)

# Seedings by distances; the others take rows by number, whatever their type.
BY_DISTANCE = ("k-means++", "farthest", "k-means||")
CASES = [
    (shape, init)
    for shape in SHAPES
    for init in INITS
    if shape[-1] == "float32" or init in BY_DISTANCE
]


def agree(X, k, weights=None, **parameters):
    oracle = KMeans(k, device="reference", **parameters).fit(X, sample_weight=weights)
    model = KMeans(k, device="cuda", **parameters).fit(X, sample_weight=weights)
    assert answer(model) == answer(oracle)
    assert model.converged_ == oracle.converged_
    return model, oracle


@pytest.mark.parametrize(("shape", "init"), CASES, ids=str)
def test_the_engine_gives_the_bits_of_the_oracle(shape, init):
    n, d, k, dtype = shape
    X = blobs(n, d, dtype)
    # Weights for every other start.
    weights = weights_of("none" if INITS.index(init) % 2 else "wide", n)
    start = start_of(init, X, k)
    model, _ = agree(X, k, weights, init=start, n_init=1, random_state=4, max_iter=4)
    assert (model.predict(X) == model.labels_).all()


@pytest.mark.parametrize("empty", ["relocate", "keep", "error"])
def test_empty_clusters(empty):
    X = blobs(30, 2, "float64")
    far = np.vstack([X[:3], np.full((2, 2), 1e3)])
    if empty == "error":
        for device in ("reference", "cuda"):
            with pytest.raises(EmptyClusterError):
                KMeans(5, init=far, empty=empty, device=device).fit(X)
        return
    agree(X, 5, weights_of("wide", 30), init=far, empty=empty, max_iter=4)


@pytest.mark.parametrize("d", [2, 10])
def test_empty_clusters_that_nobody_can_fill_do_not_stop_a_watched_run(d):
    # Every row coincides with a centre, and a watched run is never ahead of the host.
    X = np.repeat(blobs(3, d, "float32"), 5, axis=0)
    X[7] += 0.5
    start = np.vstack([X[[0, 5, 10]], X[:1]])
    agree(X, 4, init=start, stop=stopping.Inertia(drop=0.0), max_iter=4)
    agree(X, 4, init=start, verbose=1, max_iter=4, tol=0)


@pytest.mark.parametrize(
    "stop",
    [stopping.Labels(0.05), stopping.Inertia(drop=1.0) | stopping.Labels(), stopping.Centers(1e-3)],
    ids=str,
)
def test_stop_rules(stop):
    model, oracle = agree(blobs(40, 2, "float32"), 4, stop=stop, random_state=0)
    assert getattr(model, "inertia_history_", None) == getattr(oracle, "inertia_history_", None)


@pytest.mark.parametrize("max_iter", [1, 2, 12])
def test_iterations_end_where_they_should_however_far_ahead_the_device_is(max_iter):
    agree(blobs(40, 2, "float32"), 4, max_iter=max_iter, tol=0, random_state=0)


@pytest.mark.parametrize("d", [2, 10])
def test_the_tolerance_is_found_in_a_run(d):
    X = blobs(40, d, "float32")
    model, _ = agree(X, 3, weights_of("wide", 40), tol=0.05, max_iter=9, random_state=0)
    assert 1 < model.n_iter_ < 9


@pytest.mark.parametrize("d", [2, 10])
@pytest.mark.parametrize("flavour", FLAVOURS)
def test_nasty_rows(flavour, d):
    """In float64; whole fits in float32 are in test_pruning."""
    X = rows_of(flavour, 24, d, "float64", seed=d)
    agree(X, 3, init=X[:3], max_iter=2)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_distances_and_score(dtype):
    X = blobs(30, 10, dtype)
    model, oracle = agree(X, 3, init=X[:3], max_iter=2)
    weights = weights_of("wide", 30)
    assert (model.transform(X) == oracle.transform(X)).all()
    assert model.score(X, sample_weight=weights) == oracle.score(X, sample_weight=weights)
    expected = assign(X, X[:5], device="reference")
    labels, inertia = assign(X, X[:5], device="cuda")
    assert (labels == expected[0]).all()
    assert inertia == expected[1]
