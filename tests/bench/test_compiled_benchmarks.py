"""Benchmarks are of compiled kernels, in which NumPy has no part however small the data are."""

from __future__ import annotations

import numpy as np
import pytest

from lloydia import KMeans
from lloydia.backends import numpy_first
from lloydia.bench import judge
from lloydia.bench.images import contenders
from lloydia.bench.peers import Task
from lloydia.bench.peers.ours import PEERS

X = np.random.default_rng(0).normal(size=(60, 3))


def on_a_device():
    torch = pytest.importorskip("torch")
    from lloydia.bench.device.contenders import OursOnCPU

    rows = torch.as_tensor(X)
    OursOnCPU().fit(rows, Task(4, rows[:4], 5, 0.0, 1))


BENCHMARKS = {
    "picks": lambda: judge.judge_picks(X, 4),
    "photographs": lambda: contenders.CONTENDERS[0].reduce(np.zeros((4, 5, 3), np.uint8), 2, 1),
    "device": on_a_device,
    "fits": lambda: PEERS[0].fit(X, Task(4, X[:4], 5, 0.0, 1)),
    "seedings": lambda: PEERS[-1].fit(X, Task(4, None, 0, 0.0, 1)),
}


@pytest.fixture
def no_numpy(monkeypatch):
    def refuse(*_):
        raise AssertionError("NumPy does the work")

    monkeypatch.setattr(numpy_first, "_budget", numpy_first.Budget(np.inf))
    monkeypatch.setattr(numpy_first, "NumpyFirst", refuse)


@pytest.mark.parametrize("name", BENCHMARKS)
def test_small_data_are_for_kernels(name, no_numpy):
    with pytest.raises(AssertionError, match="NumPy does the work"):
        KMeans(4).fit(X)
    BENCHMARKS[name]()
