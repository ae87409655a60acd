"""What fits compile, counted on a real GPU."""

from __future__ import annotations

from threading import current_thread

import pytest

from lloydia import KMeans
from lloydia.stopping import Labels

torch = pytest.importorskip("torch")

FORMS = ((20_000, 64, 100, "float32"), (20_000, 3, 16, "float32"), (20_000, 3, 16, "float64"))


@pytest.fixture
def compiled(monkeypatch):
    """Return the kernels that are compiled or loaded from disk, and the threads that do it."""
    from lloydia.backends.cuda.runtime import forms

    found, compiled_now = [], forms.compiled_now

    def noted(kernel, *rest):
        found.append((kernel.fn.__name__, current_thread().name))
        return compiled_now(kernel, *rest)

    monkeypatch.setattr(forms, "compiled_now", noted)
    return found


def rows(n, d, dtype, seed=0):
    generator = torch.Generator("cuda").manual_seed(seed)
    return torch.randn(n, d, device="cuda", dtype=getattr(torch, dtype), generator=generator)


@pytest.fixture
def nothing_compiled(monkeypatch):
    """Begin with no kernel."""
    from lloydia.backends.cuda.runtime import forms, relocation

    monkeypatch.setattr(forms, "_found", {})
    monkeypatch.setattr(relocation, "_recorded", {})


@pytest.mark.parametrize("n_d_k_dtype", FORMS, ids=str)
@pytest.mark.parametrize("more", [{}, {"tol": 0.0}, {"init": "random", "n_init": 1}], ids=str)
def test_threads_compile_all_kernels_of_a_fit(nothing_compiled, compiled, n_d_k_dtype, more):
    n, d, k, dtype = n_d_k_dtype
    X = rows(n, d, dtype)
    KMeans(k, random_state=0, max_iter=20, **more).fit(X)
    assert len(compiled) > 5
    assert {thread for _, thread in compiled} == {"lloydia-compiler"}, compiled


@pytest.mark.parametrize("n_d_k_dtype", FORMS, ids=str)
def test_later_fits_compile_nothing(compiled, n_d_k_dtype):
    n, d, k, dtype = n_d_k_dtype
    X = rows(n, d, dtype)
    KMeans(k, random_state=0, max_iter=20).fit(X)
    later = ({}, {"random_state": 1}, {"max_iter": 3}, {"max_iter": 300}, {"tol": 0.0})
    later += {"init": "random", "n_init": 1}, {"init": X[:k]}, {"stop": Labels(0.01)}
    compiled.clear()
    for more in later:
        KMeans(k, **{"random_state": 0, "max_iter": 20, **more}).fit(X)
    KMeans(k, random_state=0, max_iter=20).fit(rows(n - 1_001, d, dtype, seed=1))
    assert compiled == []


@pytest.mark.parametrize(("d", "dtype"), [(3, "float32"), (64, "float32")])
def test_few_kernels_are_compiled_for_another_k(compiled, d, dtype):
    X = rows(20_000, d, dtype)
    before = 64
    KMeans(before, random_state=0, max_iter=10).fit(X)
    compiled.clear()
    for k in (63, 62, 60, 57):
        KMeans(k, random_state=0, max_iter=10).fit(X)
    assert compiled == []
