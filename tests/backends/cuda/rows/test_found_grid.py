"""The grid that the device finds is the host's."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from lloydia import KMeans
from lloydia.backends import choose
from lloydia.backends.cuda.matmul import run as tensor_run
from lloydia.backends.cuda.matmul.starting import BLOCK
from lloydia.backends.cuda.rows.found_grid import queue_grid, remember_limbs
from lloydia.backends.cuda.rows.magnitudes import queue_bounds
from lloydia.data.arrays import on_host
from lloydia.exact import sums as exact
from lloydia.stopping import Inertia
from table import answer, blobs


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("d", [9, 255, 256, 300])
def test_it_is_that_of_the_host(d, dtype, device):
    rng = np.random.default_rng(d)
    X = (rng.normal(size=(5, d)) * 2.0 ** rng.integers(-12, 12, d)).astype(dtype)
    X[:, 3] = 0.0
    X[:, 4] = np.finfo(dtype).smallest_subnormal
    X[1:, 5] = np.finfo(dtype).tiny
    if dtype != "float16":
        X[2, 6], X[2, 7] = 1e30, 1e-30
    there = torch.as_tensor(X, device=device)
    wide = np.dtype("float64" if dtype == "float64" else "float32")
    grid = exact.Grid.choose(exact.Magnitudes.of(X), wide)
    m = d + 1
    numbers = torch.zeros(5 * m, dtype=torch.int64, device=device)
    rows = SimpleNamespace(X=there, n_samples=len(X), n_features=d)
    queue_grid(rows, queue_bounds(there), numbers)
    found = numbers.cpu().numpy()
    assert found[: 3 * m].view(np.float64).tobytes() == grid.columns.tobytes()
    assert found[4 * m :].tolist() == grid.exponents.tolist()


@pytest.mark.parametrize(("guess", "history"), [(1, False), (2, True), (4, False)])
def test_a_guess_that_is_wrong_changes_nothing(guess, history, device):
    X = blobs(150, 12, "float32")
    X[::7] *= np.float32(1e-6)
    model = KMeans(5, init=X[:5], n_init=1, max_iter=4, tol=0.0, stop=None)
    if history:
        model.set_params(stop=Inertia(drop=0.0))
    expected = answer(model.fit(X))
    there = torch.as_tensor(X, device=device)
    remember_limbs(there, guess)
    model.set_params(device="cuda")
    assert answer(model.fit(there)) == expected
    assert answer(model.fit(there)) == expected


def test_what_is_not_finite_is_refused_as_well(device):
    X = blobs(300, 12, "float32")
    X[250, 3] = np.inf
    there = torch.as_tensor(X, device=device)
    remember_limbs(there, 2)
    with pytest.raises(ValueError, match="infinity"):
        KMeans(5, init=X[:5], n_init=1, max_iter=6, device="cuda").fit(there)
    X[250, 3] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        KMeans(5, init=X[:5], n_init=1, max_iter=6, device="cuda").fit(
            torch.as_tensor(X, device=device)
        )


@pytest.mark.parametrize(("guess", "apart"), [(None, False), (1, True), (2, False), (4, True)])
def test_a_start_on_the_device_is_that_of_the_host(guess, apart, device, monkeypatch):
    X = blobs(100, 12, "float32")
    X[::7] *= np.float32(1e-6)
    model = KMeans(5, init=X[:5], n_init=1, max_iter=3, tol=0.0)
    expected = answer(model.fit(X))
    there = torch.as_tensor(X, device=device)
    if guess:
        remember_limbs(there, guess)
    start = there[:5].clone() if apart else there[:5]
    model.set_params(init=start, device="cuda")
    assert answer(model.fit(there)) == expected
    # Now the grid is known, and the host asked for nothing.
    monkeypatch.setattr(tensor_run, "put", None)
    assert answer(model.fit(there)) == expected


@pytest.mark.parametrize("tol", [0.0, 1e-4])
@pytest.mark.parametrize("guess", [1, 2])
def test_the_spread_before_anything_was_launched_is_not_that_of_a_guess(guess, tol, device):
    X = blobs(100, 12, "float32")
    X[::7] *= np.float32(1e-6)
    there = torch.as_tensor(X, device=device)
    remember_limbs(there, guess)
    engine, oracle = choose("cuda", there, None, None), choose("reference", X, None, None)
    for one, start in (engine, there[:5].clone()), (oracle, X[:5]):
        one.tolerance = tol
        one.start(start, "lloyd", max_iter=3)
    # The first iteration is queued with the start, and launched for the loop later.
    assert engine.run.queued_with_start
    assert engine.iterations.launched == 0
    assert engine.mean_variance() == oracle.mean_variance()
    assert engine.data.queue_variance(tol).n_limbs == engine.data.grid.n_limbs
    reports = [[one.iterate(False).result() for _ in range(3)] for one in (engine, oracle)]
    assert reports[0] == reports[1]
    assert on_host(engine.centers()).tobytes() == oracle.centers().tobytes()


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_starts_are_copied_whole(dtype, device):
    # Of more numbers than a program copies.
    X = torch.as_tensor(blobs(80, 24, "float32")).to(getattr(torch, dtype))
    start = X[:50].float()
    assert start.numel() > BLOCK.value
    expected = answer(KMeans(50, init=start, n_init=1, max_iter=1).fit(X))
    remember_limbs(X, 2)
    model = KMeans(50, init=start.to(device), n_init=1, max_iter=1, device="cuda")
    assert answer(model.fit(X.to(device))) == expected


@pytest.mark.parametrize(("value", "message"), [(np.inf, "infinity"), (np.nan, "NaN")])
def test_a_start_on_the_device_that_is_not_finite_is_refused(value, message, device):
    X = torch.as_tensor(blobs(100, 12, "float32"), device=device)
    start = X[:5].clone()
    start[4, 11] = value
    for guess in (None, 2):
        if guess:
            remember_limbs(X, guess)
        with pytest.raises(ValueError, match=message):
            KMeans(5, init=start, n_init=1, max_iter=3, device="cuda").fit(X)
