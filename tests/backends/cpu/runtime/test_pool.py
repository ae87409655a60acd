from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from lloydia import KMeans
from lloydia.backends.cpu.runtime import pool


@pytest.mark.parametrize("n_threads", [1, 2, 5])
@pytest.mark.parametrize("n", [0, 1, 7, 1000])
def test_every_row_is_done_once(n, n_threads):
    done = np.zeros(n, dtype=int)
    busy = [False] * n_threads

    def task(thread, start, stop):
        assert not busy[thread]
        busy[thread] = True
        done[start:stop] += 1
        busy[thread] = False

    pool.run(task, n, 3, n_threads)
    assert (done == 1).all()


@pytest.mark.parametrize("n_threads", [1, 2, 4])
def test_an_error_stops_the_rest_and_is_raised(n_threads):
    started = []

    def task(thread, start, stop):
        started.append(start)
        if start == 20:
            raise KeyError("block 20")

    with pytest.raises(KeyError, match="block 20"):
        pool.run(task, 10**5, 10, n_threads)
    assert len(started) < 10**4
    pool.run(lambda *_: None, 100, 1, n_threads)


def test_callers_on_several_threads_do_not_wait_for_each_other_forever():
    X = np.random.default_rng(0).normal(size=(20_000, 8))
    expected = KMeans(6, random_state=0, n_threads=1).fit(X).inertia_
    found = []

    def work():
        found.append(KMeans(6, random_state=0, n_threads=2).fit(X).inertia_)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert found == [expected] * 4


# Prints the nanoseconds that each thread but the first spends on fits with `n_threads=1`: with a
# sketch of the rows, with groups of centres, and with many features.
ONE_THREAD = """
import os
from pathlib import Path
import numpy as np
from lloydia import KMeans

def taken():
    paths = Path("/proc/self/task").glob("*/schedstat")
    return {path.parent.name: int(path.read_text().split()[0]) for path in paths}

rng, before = np.random.default_rng(0), taken()
for n, d, k, method in (
    (3000, 200, 600, {"init": "k-means++"}),
    (6000, 200, 3000, {"init": "random", "algorithm": "yinyang"}),
    (60, 20_000, 3, {"init": "random"}),
):
    X = rng.standard_normal((n, d), np.float32)
    KMeans(k, **method, n_init=1, max_iter=2, n_threads=1, random_state=0).fit(X)
print(*(time - before.get(thread, 0) for thread, time in taken().items()
        if thread != str(os.getpid())))
"""


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="threads have no times here")
def test_one_thread_is_the_only_one_with_work():
    """Libraries of linear algebra have threads of their own, which `n_threads` does not limit."""
    child = subprocess.run(
        [sys.executable, "-c", ONE_THREAD], capture_output=True, text=True, check=True
    )
    # A thread that shares in a matrix product takes some milliseconds.
    assert all(int(nanoseconds) < 10**6 for nanoseconds in child.stdout.split())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_can_fit():
    X = np.random.default_rng(0).normal(size=(50_000, 8))
    expected = KMeans(6, random_state=0, n_threads=2).fit(X).inertia_
    child = os.fork()
    if child == 0:  # pragma: no cover
        same = KMeans(6, random_state=0, n_threads=2).fit(X).inertia_ == expected
        os._exit(0 if same else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_threads_follow_the_environment(monkeypatch):
    available = pool.available_threads()
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert pool.default_threads() == pool.threads_of(None) == available
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert pool.default_threads() == 1
    monkeypatch.setenv("OMP_NUM_THREADS", "100000")
    assert pool.default_threads() == available


@pytest.mark.parametrize(
    ("n", "size", "least", "n_threads"), [(10**6, 65536, 5000, 2), (7, 3, 1, 4)]
)
def test_the_last_blocks_are_the_smallest(n, size, least, n_threads):
    found = pool.blocks(n, size, least, n_threads)
    lengths = [stop - start for start, stop in found]
    assert [start for start, _ in found] == np.cumsum([0, *lengths])[:-1].tolist()
    assert sum(lengths) == n
    assert lengths[0] <= size
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[-2] == least


def test_blocks_are_equal_where_none_may_be_smaller():
    assert pool.blocks(10, 4, 4, 2) == [(0, 4), (4, 8), (8, 10)]


def test_of_very_many_threads_some_are_used(monkeypatch):
    for available, used in ((2, 64), (100, 100)):
        monkeypatch.setattr(pool, "available_threads", lambda count=available: count)
        assert pool.threads_of(10**30) == used
    assert [pool.threads_of(count) for count in (1, 3, 64, 99)] == [1, 3, 64, 99]
