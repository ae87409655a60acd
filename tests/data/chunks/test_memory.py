"""What memory is free, as Linux tells it."""

from __future__ import annotations

import numpy as np
import pytest

import lloydia
from lloydia import KMeans
from lloydia.algorithms.elkan import Elkan
from lloydia.algorithms.geometry import Padding
from lloydia.algorithms.yinyang import Yinyang
from lloydia.backends.cpu import grouped
from lloydia.data.chunks import memory

GB = 10**9

# Files of the control groups that a process is in, by their names, and what is free, of 50 GB.
CASES = {
    "no limit": ("0::/\n", {}, 50),
    "no groups": ("", {}, 50),
    "a container": ("0::/\n", {".": ("max", 9, 0, 0), "other": (GB, 0, 0, 0)}, 50),
    "its limit": ("0::/\n", {".": (8 * GB, 3 * GB, 0, 0)}, 5),
    "files in its cache": ("0::/\n", {".": (8 * GB, 8 * GB, 3 * GB, 2 * GB)}, 5),
    "nothing left": ("0::/\n", {".": (GB, 2 * GB, 0, 0)}, 0),
    "a job's": ("0::/slurm/job\n", {"slurm/job": (9 * GB, 5 * GB, GB, 0)}, 5),
    "a user's, above the job": (
        "0::/slurm/job\n",
        {"slurm": (6 * GB, 4 * GB, 0, 0), "slurm/job": ("max", 0, 0, 0)},
        2,
    ),
    "another path than the host's": ("0::/docker/abc\n", {".": (4 * GB, GB, 0, 0)}, 3),
    "version 1": (
        "3:cpuset:/\n4:memory:/a/b\n0::/\n",
        {"memory": (1 << 63, 0, 0, 0), "memory/a/b": (8 * GB, 6 * GB, GB, GB)},
        4,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_free(tmp_path, monkeypatch, name):
    own, groups, free = CASES[name]
    (tmp_path / "meminfo").write_text(
        "MemTotal: 9 kB\nMemAvailable:   50000000 kB\nBuffers: 1 kB\n"
    )
    (tmp_path / "own").write_text(own)
    for path, (limit, used, inactive, active) in groups.items():
        folder = tmp_path / "groups" / path
        folder.mkdir(parents=True, exist_ok=True)
        first = path.startswith("memory")
        of_all = "total_" if first else ""
        (folder / ("memory.limit_in_bytes" if first else "memory.max")).write_text(f"{limit}\n")
        (folder / ("memory.usage_in_bytes" if first else "memory.current")).write_text(f"{used}\n")
        (folder / "memory.stat").write_text(
            f"anon 7\n{of_all}inactive_file {inactive}\n{of_all}active_file {active}\nfile 5\n"
        )
    monkeypatch.setattr(memory, "SYSTEM", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "OWN_GROUP", tmp_path / "own")
    monkeypatch.setattr(memory, "GROUPS", tmp_path / "groups")
    assert memory.available() == (free * GB if free < 50 else 50_000_000 * 1024)


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
