"""Sums by tables in shared memory, on a device that has some."""

from __future__ import annotations

from concurrent.futures import Future
from ctypes import byref, c_int, c_void_p

import pytest

from lloydia import KMeans
from lloydia.data.arrays import on_host
from table import answer

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_tables_do_not_need_is_left_to_the_cache(dtype, monkeypatch):
    from lloydia.backends.cuda.runtime import forms, launching
    from lloydia.backends.cuda.runtime.driver import CARVEOUT, driver
    from lloydia.backends.cuda.update.table_layout import Table, Tiling
    from lloydia.backends.cuda.update.table_sums import table_kernel

    monkeypatch.setattr(forms, "_found", {})
    # No fit was like this one: nothing of it is known.
    X = torch.randn(4_003, 16, device="cuda", dtype=getattr(torch, dtype))
    k, itemsize = 20, X.element_size()
    KMeans(k, init=X[:k], n_init=1, max_iter=3, tol=0.0).fit(X)
    cut = Tiling.choose(itemsize, True)
    taken = Table.of(k, itemsize, True).shared(cut.resident)
    expected = launching.percent_of(taken, X.device)
    assert 0 < expected < 100
    found = set()
    for (kernel, _, _), compiled in forms._found.items():
        if kernel == id(table_kernel):
            # A form that only later fits need may still be compiled by a thread.
            one = compiled.result() if isinstance(compiled, Future) else compiled
            percent, function = c_int(), c_void_p(one.function)
            assert not driver().cuFuncGetAttribute(byref(percent), CARVEOUT, function)
            found.add(percent.value)
    assert found == {expected}


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("k", [30, 348])
def test_rows_may_begin_anywhere_in_memory(dtype, k):
    n, d = 20_011, 32
    X = torch.randn(n * d + 1, device="cuda").to(getattr(torch, dtype))[1:].view(n, d)
    start = X[:k].clone()
    assert X.data_ptr() % 16
    parameters = {"init": start, "n_init": 1, "max_iter": 5, "tol": 0.0}
    expected = KMeans(k, **parameters | {"init": on_host(start)}, device="cpu").fit(on_host(X))
    assert answer(KMeans(k, **parameters).fit(X)) == answer(expected)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("d", "k"), [(16, 64), (64, 256)])
def test_programs_add_many_tiles(d, k, dtype):
    X = 50 * torch.randn(300_007, d, device="cuda", dtype=getattr(torch, dtype))
    parameters = {"n_init": 1, "max_iter": 4, "tol": 0.0}
    expected = KMeans(k, init=on_host(X[:k]), **parameters, device="cpu").fit(on_host(X))
    assert answer(KMeans(k, init=X[:k], **parameters).fit(X)) == answer(expected)
