"""Tables in shared memory, on a device that has some: what they leave of it to the cache."""

from __future__ import annotations

from ctypes import byref, c_int, c_void_p

import pytest

from lloydia import KMeans

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_tables_do_not_need_is_left_to_the_cache(dtype):
    from lloydia.backends.cuda import launching
    from lloydia.backends.cuda.driver import SHARED, driver
    from lloydia.backends.cuda.table_layout import Table, Tiling
    from lloydia.backends.cuda.table_sums import table_kernel

    X = torch.randn(4_000, 16, device="cuda", dtype=getattr(torch, dtype))
    k, itemsize = 20, X.element_size()
    KMeans(k, init=X[:k], n_init=1, max_iter=3, tol=0.0).fit(X)
    cut = Tiling.choose(itemsize, 16)
    taken = Table.of(k, itemsize, 16).shared(cut.resident)
    expected = launching.ceil_div(100 * taken, launching.shared_memory(X.device))
    assert 0 < expected < 100
    found = set()
    for (kernel, _, _), compiled in launching._found.items():
        if kernel == id(table_kernel):
            percent, function = c_int(), c_void_p(compiled.function)
            assert not driver().cuFuncGetAttribute(byref(percent), SHARED, function)
            found.add(percent.value)
    assert expected in found
