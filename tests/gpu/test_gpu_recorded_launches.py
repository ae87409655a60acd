"""Fits whose launches were replay by others before, on a real GPU."""

from __future__ import annotations

import gc
from threading import Thread

import numpy as np
import pytest

from lloydia import KMeans, assign
from lloydia.backends import choose
from lloydia.data.arrays import on_host
from table import answer, blobs

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("d", [2, 12])
@pytest.mark.parametrize("weighted", [False, True])
def test_fits_of_the_same_shape_on_other_rows(d, weighted):
    n = 4000
    weights = np.linspace(0.5, 2.0, n) if weighted else None
    every = blobs(3 * n + 1, d, "float32")
    # The last ones begin where no 16 bytes do, in memory of their own or not.
    for rows in (every[:n], every[n : 2 * n], every[2 * n : 3 * n], every[1 : n + 1]):
        model = KMeans(7, init=rows[:7], n_init=1, max_iter=40, tol=0.0)
        expected = answer(model.fit(rows, sample_weight=weights))
        there = torch.as_tensor(every).cuda()[int(np.flatnonzero((every == rows[0]).all(1))[0]) :]
        assert answer(model.fit(there[:n], sample_weight=weights)) == expected


@pytest.mark.parametrize("d", [2, 12])
@pytest.mark.parametrize("n", [8, 5000])
def test_starts_that_lie_in_the_rows_or_elsewhere(n, d):
    rows = blobs(n, d, "float32")
    there = torch.as_tensor(rows).cuda()
    for first in (0, 100, None, 3, None):
        start = there.flip(0)[:8].clone() if first is None else there[first % n :][:8]
        if len(start) < 8 or (n == 8 and first == 0):
            start = there
        model = KMeans(8, init=on_host(start), n_init=1, max_iter=20, tol=0.0)
        expected = answer(model.fit(rows))
        assert answer(model.set_params(init=start).fit(there)) == expected


@pytest.mark.parametrize("d", [2, 12])
def test_a_thread_whose_first_act_is_a_launch(d):
    rows = blobs(4000, d, "float32")
    expected, _ = assign(rows, rows[:7], device="cpu")
    for _ in range(2):  # the second time by recorded launches
        engine = choose("cuda", rows, None, None)
        engine.start(rows[:7], "lloyd")
        thread = Thread(target=engine.assign)
        thread.start()
        thread.join()
        assert (on_host(engine.labels()) == expected).all()


@pytest.mark.parametrize("warmed", [False, True])
@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize("d", [2, 12])
def test_no_fit_is_captured_and_those_after_it_are_sound(d, beside, warmed):
    rows = blobs(3000, d, "float32")
    there, model = torch.as_tensor(rows).cuda(), KMeans(5, init=rows[:5].copy(), max_iter=20)
    expected = answer(model.fit(rows))
    if beside:
        model.init = there[:5].clone()
    stream = torch.cuda.Stream()
    if warmed:
        with torch.cuda.stream(stream):
            assert answer(model.fit(there)) == expected
    with (
        torch.cuda.graph(torch.cuda.CUDAGraph(), stream=stream),
        pytest.raises(RuntimeError, match="cannot be used while a CUDA graph is captured"),
    ):
        model.fit(there)
    with torch.cuda.stream(stream):
        assert answer(model.fit(there)) == expected
    assert answer(model.fit(there)) == expected


@pytest.mark.parametrize("beside", [False, True])
def test_streams_and_threads_that_fit_at_once(beside):
    rows = blobs(40_000, 2, "float32")
    there, refused = torch.as_tensor(rows).cuda(), torch.as_tensor(rows).cuda()
    refused[-1, 1] = torch.nan
    start, found = rows[:7].copy(), []
    expected = answer(KMeans(7, init=start, max_iter=20).fit(rows))
    if beside:
        start = there[:7].clone()
    torch.cuda.synchronize()

    def fits(stream):
        with torch.cuda.stream(stream):
            for _ in range(20):
                with pytest.raises(ValueError, match="NaN"):
                    KMeans(7, init=start).fit(refused)
                found.append(answer(KMeans(7, init=start, max_iter=20).fit(there)))

    shared = torch.cuda.Stream()
    streams = shared, shared, torch.cuda.Stream(), torch.cuda.default_stream()
    threads = [Thread(target=fits, args=(stream,)) for stream in streams]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 80


@pytest.mark.parametrize(
    ("dtype", "d", "max_iter"),
    [
        ("float32", 2, 6),
        ("float32", 2, 40),
        ("float64", 3, 6),
        ("float32", 12, 6),
        ("float32", 12, 40),
    ],
)
def test_what_comes_first_of_many_fits_at_once(dtype, d, max_iter):
    """Each thread its own rows and starts, of one form; some runs are over with what came first."""
    cases, found = [], {}
    for seed in range(4):
        rows = blobs(30_000, d, dtype, seed)
        model = KMeans(6, init=rows[:6].copy(), n_init=1, tol=0.0, max_iter=max_iter)
        there = torch.as_tensor(rows).cuda()
        cases.append((there, there[:6].clone(), answer(model.fit(rows))))
    torch.cuda.synchronize()

    def fits(number, stream):
        with torch.cuda.stream(stream):
            for i in range(24):
                there, start, expected = cases[(number + i) % len(cases)]
                model = KMeans(6, init=start, n_init=1, tol=0.0, max_iter=max_iter).fit(there)
                found[number, i] = answer(model) == expected

    shared = torch.cuda.Stream()
    streams = shared, shared, torch.cuda.Stream(), torch.cuda.default_stream()
    threads = [Thread(target=fits, args=case) for case in enumerate(streams)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 96
    assert all(found.values())


def test_nothing_waits_for_the_collector():
    X = torch.as_tensor(blobs(20000, 12, "float32")).cuda()
    gc.collect()
    gc.disable()
    try:
        used = []
        for _ in range(3):
            KMeans(7, init=X[:7], n_init=1, max_iter=5, tol=0.0).fit(X)
            used.append(torch.cuda.memory_allocated())
        assert used[1] == used[2]
    finally:
        gc.enable()
