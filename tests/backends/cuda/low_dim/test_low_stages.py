"""What a run queues, and how it ends: kernels are interpreted."""

from __future__ import annotations

import numpy as np
import pytest

from lloydia import KMeans
from lloydia.backends.cuda import run_setup
from lloydia.backends.cuda.low_dim import launches
from lloydia.backends.cuda.low_dim.shape import LIMBS
from lloydia.exact.sums import Grid, Magnitudes
from table import answer, blobs, weights_of


@pytest.fixture
def kernels(monkeypatch):
    """Return the names of the kernels of few features that are launched."""
    names = []
    launch = launches.launch

    def named(kernel, *args, **options):
        names.append(kernel.fn.__name__)
        launch(kernel, *args, **options)

    monkeypatch.setattr(launches, "launch", named)
    return names


def agree(X, k, weights=None, **parameters):
    """Check that a fit has the oracle's bits; return it."""
    parameters = {"init": X[:k].copy(), "tol": 0, **parameters}
    oracle = KMeans(k, device="reference", **parameters).fit(X, sample_weight=weights)
    model = KMeans(k, device="cuda", **parameters).fit(X, sample_weight=weights)
    assert answer(model) == answer(oracle)
    return model


ITERATION = ["assign_kernel", "recheck_kernel", "update_kernel", "means_kernel"]
LAST = ["assign_kernel", "recheck_kernel", "end_kernel"]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("n", "d", "k"), [(3, 1, 2), (128, 2, 16), (129, 3, 5), (256, 8, 40), (513, 4, 130)]
)
def test_a_run_is_measured_once_and_an_iteration_is_four_launches(n, d, k, dtype, kernels):
    agree(blobs(n, d, dtype), k, max_iter=3)
    assert kernels == ["measure_kernel", "tabulate_kernel", *3 * ITERATION, *LAST]


def test_a_limit_is_no_other_kernel_but_for_what_it_is_found_by(kernels):
    agree(blobs(300, 2, "float32"), 4, max_iter=2, tol=1e-3)
    assert kernels == ["measure_kernel", "tabulate_kernel", *2 * ITERATION, *LAST]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", ["none", "wide"])
def test_rows_of_more_limbs_than_are_added_at_once(dtype, kind):
    X = blobs(200, 2, dtype)
    X[3] *= 2.0**30
    X[4] *= 2.0**-50
    n_limbs = Grid.choose(Magnitudes.of(X), X.dtype).n_limbs
    assert 2 < n_limbs <= LIMBS
    agree(X, 5, weights_of(kind, len(X)), max_iter=4)


def test_rows_that_tie_are_settled_canonically():
    # Every row is as far from one centre as from another.
    X = np.stack(np.meshgrid(np.arange(16.0), np.arange(16.0)), -1).reshape(-1, 2)
    start = np.array([[2.0, 3.0], [4.0, 3.0], [3.0, 2.0], [3.0, 4.0], [9.5, 9.5]])
    model = agree(X, 5, init=start, max_iter=5)
    assert model.n_rechecked_ > 10


@pytest.mark.parametrize("parameters", [{"tol": 1e-3}, {"max_iter": 40}, {"empty": "keep"}])
def test_runs_that_end_by_themselves(parameters):
    X = blobs(250, 2, "float32")
    start = np.concatenate([X[:6], [[900.0, 900.0]]]).astype("float32")
    model = agree(X, 7, init=start, **{"max_iter": 30, **parameters})
    assert model.n_iter_ < 30


def test_labels_are_kept_from_launch_to_launch(monkeypatch, kernels):
    X = blobs(200, 2, "float32")
    # Two iterations are launched at a time.
    monkeypatch.setattr(run_setup, "lag_of", lambda data, k: 1)
    model = agree(X, 6, max_iter=40)
    assert model.n_iter_ > 4
    two = 2 * ITERATION
    begin = ["measure_kernel", "tabulate_kernel", *two, "end_kernel", *two, "end_kernel"]
    assert kernels[: len(begin)] == begin
