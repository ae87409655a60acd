"""What memory is free, as Linux tells it."""

from __future__ import annotations

import numpy as np
import pytest

import lloydia
from lloydia import KMeans
from lloydia.algorithms.elkan import Elkan
from lloydia.algorithms.geometry import Padding
from lloydia.algorithms.yinyang import Yinyang
from lloydia.backends.cpu.scan import grouped
from lloydia.data.chunks import memory

GB = 10**9


@pytest.mark.parametrize(("left", "free"), [(None, 51_200_000_000), (7 * GB, 7 * GB), (0, 0)])
def test_what_is_free_is_the_least_of_the_system_and_its_groups(tmp_path, monkeypatch, left, free):
    (tmp_path / "meminfo").write_text(
        "MemTotal: 9 kB\nMemAvailable:   50000000 kB\nBuffers: 1 kB\n"
    )
    monkeypatch.setattr(memory, "SYSTEM", tmp_path / "meminfo")
    monkeypatch.setattr(memory.control_groups, "free_memory", lambda: left)
    assert memory.available() == free


@pytest.mark.parametrize("answers", [True, False])
def test_windows_is_asked_for_free_memory(tmp_path, monkeypatch, answers):
    class Kernel32:
        def __init__(self, name):
            assert name == "kernel32"

        def GlobalMemoryStatusEx(self, argument):
            status = argument._obj
            assert status.length == 64  # the size that the Windows API documents
            status.all_memory, status.free_memory = 8 * GB, 3 * GB
            return answers

    monkeypatch.setattr(memory, "SYSTEM", tmp_path / "missing")
    monkeypatch.setattr(memory.control_groups, "ROOT", tmp_path)
    monkeypatch.delattr(memory.os, "sysconf")
    monkeypatch.setattr(memory.ctypes, "CDLL", Kernel32)
    monkeypatch.setattr(memory.sys, "platform", "win32")
    if answers:
        assert memory.available() == 3 * GB
    else:
        with pytest.raises(ValueError, match="memory='2GB'"):
            memory.available()


def test_a_system_without_any_of_these_asks_the_user(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "SYSTEM", tmp_path / "missing")
    monkeypatch.delattr(memory.os, "sysconf")
    monkeypatch.setattr(memory.sys, "platform", "somewhere")
    with pytest.raises(ValueError, match="memory='2GB'"):
        memory.available()


def test_macos_counts_half_of_its_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "SYSTEM", tmp_path / "missing")
    monkeypatch.setattr(memory.control_groups, "ROOT", tmp_path)
    monkeypatch.setattr(memory.os, "sysconf", {"SC_PHYS_PAGES": 1000, "SC_PAGE_SIZE": 4096}.get)
    assert memory.available() == 2_048_000


def bounds_of(kind, n, d, k):
    """Return the bytes a row of an algorithm's bounds of rows in float32."""
    bounds = kind(n, k, Padding.of(np.ones(d), np.dtype(np.float32)))
    if kind is Yinyang:
        width = grouped.vectors(k) * grouped.LANES
        bounds.divide(np.random.default_rng(0).normal(size=(k, d)), width, 4 * d)
    parts = [part for part in vars(bounds).values() if isinstance(part, np.ndarray)]
    return sum(part.nbytes for part in parts if n in part.shape) // n


@pytest.mark.parametrize(
    ("k", "d", "algorithm", "more"),
    [
        (127, 300, "auto", []),
        (128, 300, "lloyd", []),
        (128, 8, "auto", []),
        (128, 9, "auto", [Yinyang]),
        (1000, 255, "auto", [Yinyang]),
        (700, 256, "auto", [Yinyang]),
        (128, 300, "auto", [Elkan, Yinyang]),
        (500, 300, "auto", [Elkan, Yinyang]),
    ],
)
def test_what_auto_may_take_is_planned_where_there_is_room(k, d, algorithm, more):
    n = 2003
    source = lloydia.chunks(np.zeros((n, d), np.float32))
    model = KMeans(k, algorithm=algorithm)
    taken = [*(bounds_of(kind, n, d, k) for kind in more), 0]
    ample = source.meant_for(model, reset=True).plan(False, 1)
    assert ample.whole
    assert ample.spare == taken[0]
    least = ample.peak - n * taken[0]
    for spare in (0, *taken, *(one - 1 for one in taken if one)):
        tight = lloydia.chunks(np.zeros((n, d), np.float32), memory=least + n * spare)
        plan = tight.meant_for(model, reset=True).plan(False, 1)
        assert plan.whole
        assert plan.spare == max(one for one in taken if one <= spare)
        assert plan.peak == least + n * plan.spare


@pytest.mark.parametrize(
    ("init", "weighted", "a_row"),
    [("random", False, 28), ("first", False, 28), ("k-means++", True, 44), ("random", True, 72)],
)
def test_probabilities_are_planned_where_there_are_weights(init, weighted, a_row):
    states = []
    for n in (1000, 3000):
        source = lloydia.chunks(np.zeros((n, 3), np.float32))
        model = KMeans(5, init=init, algorithm="lloyd")
        states.append(source.meant_for(model, reset=True).plan(weighted, 1).state)
    assert states[1] - states[0] == 2000 * a_row


@pytest.mark.parametrize(
    ("d", "dtype"), [(2, "f4"), (8, "f4"), (64, "f4"), (64, "f8"), (256, "f4")]
)
@pytest.mark.parametrize("n", [1_000, 3_000])
def test_filtering_keeps_what_plans_count(n, d, dtype):
    from lloydia.backends.cpu.accelerated.tiles import Tiles
    from lloydia.backends.cpu.rows.dataset import Dataset

    X = np.random.default_rng(0).normal(size=(n, d)).astype(dtype)
    made = Tiles.of(Dataset(X, None, 1))
    kept = sum(part.nbytes for part in vars(made).values())
    # A few nodes that are not full.
    spare = 4 * (2 * d * X.itemsize + 8 * 4 * (d + 1)) + 64 * d * X.itemsize
    assert kept <= X.nbytes + n * memory.tiles(d, X.itemsize) + spare
