"""A rehearsal compiles the forms of kernels that the fit launches, and no others."""

from __future__ import annotations

from collections import Counter
from contextlib import nullcontext

import numpy as np
import pytest
import torch

from lloydia import KMeans
from lloydia.backends.cuda.engine import CUDA
from lloydia.backends.cuda.rehearsal import absent, forms_of
from lloydia.backends.cuda.runtime import launching
from lloydia.backends.engine import ExpectedRun
from lloydia.stopping import Inertia, Shift


@pytest.fixture
def launched(monkeypatch):
    """Return the forms that a fit launches after its rehearsal, and those that it rehearses."""
    forms, rehearsed, queue = {}, {}, launching._queue

    def noted(form, grid, places):
        if launching.collected() is None:
            forms[id(form.kernel), form.key] = form
        queue(form, grid, places)

    def expecting(engine, run):
        forms.clear()
        rehearsed.update(forms_of(engine.data, run))
        return nullcontext()

    monkeypatch.setattr(launching, "_queue", noted)
    monkeypatch.setattr(CUDA, "expecting", expecting)
    return forms, rehearsed


def names(forms):
    return Counter(form.kernel.fn.__name__ for form in forms)


def rows(n, d, k, dtype):
    """Return rows in which a row changes its cluster in some iterations."""
    rng = np.random.default_rng(0)
    X = 4 * rng.random((k, d))[rng.integers(k, size=n)] + rng.normal(size=(n, d))
    return X.astype(dtype)


@pytest.mark.parametrize(
    ("d", "k", "dtype"), [(3, 5, "float32"), (16, 20, "float32"), (16, 20, "float64")]
)
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"tol": 0.0, "weighted": True},
        {"init": "k-means||"},
        {"n_init": 2, "stop": Shift(1e-3)},
        {"init": "random", "n_init": 1, "empty": "keep", "max_iter": 2},
        {"init": "random", "n_init": 1, "stop": Inertia(0.01)},
    ],
    ids=str,
)
def test_a_fit_launches_what_was_rehearsed(launched, d, k, dtype, more):
    forms, rehearsed = launched
    options = {"max_iter": 4, "random_state": 0, **more}
    weights = np.random.default_rng(1).random(300) if options.pop("weighted", False) else None
    X = rows(300, d, k, dtype)
    KMeans(k, device="cuda", **options).fit(X, sample_weight=weights)
    late = names(form for key, form in forms.items() if key not in rehearsed)
    unused = names(form for key, form in rehearsed.items() if key not in forms)
    # How many candidates a round of k-means|| draws is not known before.
    drawn = {"frame_kernel", "recheck_all_kernel"} if more.get("init") == "k-means||" else set()
    assert set(late) | set(unused) <= drawn


def test_what_is_rehearsed_has_the_alignment_of_the_rows():
    x = torch.zeros(65, dtype=torch.float32)[1:].view(16, 4)
    for one in (x, x.view(-1)[3:15].view(3, 4), torch.zeros(3, 4)):
        other = absent(one)
        assert (other.shape, other.dtype) == (one.shape, one.dtype)
        assert other.data_ptr() % 16 == one.data_ptr() % 16


def test_a_rehearsal_leaves_nothing_for_later_fits(launched):
    from lloydia.backends.cuda.rows import found_grid
    from lloydia.backends.cuda.runtime import relocation

    X = rows(300, 16, 5, "float32")
    before = dict(relocation._recorded), dict(found_grid._limbs)
    expected = ExpectedRun(lambda engine: X[:5], 1e-4, False, True, 4)
    assert forms_of(CUDA(X, None, "cuda").data, expected)
    assert (relocation._recorded, found_grid._limbs) == before
