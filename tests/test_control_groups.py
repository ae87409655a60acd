"""Limits of control groups, read below a root that stands in for the system's."""

from __future__ import annotations

import os

import pytest

from lloydia import control_groups
from lloydia.backends.cpu.runtime import pool

GB = 10**9

# Lines of mountinfo: what is mounted of each hierarchy, and where.
V2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
V1 = (
    "31 23 0:28 / /sys/fs/cgroup ro - tmpfs tmpfs ro,mode=755\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
)
# A container of version 1 sees its own group where it mounts the hierarchy.
INNER = (
    "32 31 0:29 /docker/ab /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n"
    "35 31 0:32 /docker/ab /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"
)
ELSEWHERE = "30 23 0:26 / /my\\040groups rw - cgroup2 none rw\n"


def system(tmp_path, monkeypatch, own, mounts, files):
    """Write a system's files below a folder, which becomes the root."""
    files = {"proc/self/cgroup": own, "proc/self/mountinfo": mounts, **files}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(control_groups, "ROOT", tmp_path)
    pool._granted.cache_clear()


@pytest.fixture(autouse=True)
def _as_it_was():
    yield
    pool._granted.cache_clear()


def quota(path, value, period=100_000):
    """Return the files of a quota of a group, of either version."""
    if "," in path or path.startswith("sys/fs/cgroup/cpu"):
        names = {"cpu.cfs_quota_us": value, "cpu.cfs_period_us": period}
    else:
        names = {"cpu.max": f"{value} {period}"}
    return {f"{path}/{name}": f"{text}\n" for name, text in names.items()}


GROUPS = "sys/fs/cgroup"
FIRST = f"{GROUPS}/cpu,cpuacct"
# The own groups, the mounts, the files, and the processors that are granted.
QUOTAS = {
    "no groups": ("", "", {}, None),
    "a file that is damaged": ("0::/\n", V2, {f"{GROUPS}/cpu.max": "\n"}, None),
    "no limit": ("0::/\n", V2, quota(GROUPS, "max"), None),
    "one processor": ("0::/\n", V2, quota(GROUPS, 100_000), 1),
    "a part of one": ("0::/\n", V2, quota(GROUPS, 5_000), 0.05),
    "another period": ("0::/\n", V2, quota(GROUPS, 30_000, 20_000), 1.5),
    "nested": (
        "0::/pod/box\n",
        V2,
        {**quota(f"{GROUPS}/pod", 150_000), **quota(f"{GROUPS}/pod/box", 400_000)},
        1.5,
    ),
    "nested, the inner one is the least": (
        "0::/pod/box\n",
        V2,
        {**quota(f"{GROUPS}/pod", 400_000), **quota(f"{GROUPS}/pod/box", 100_000)},
        1,
    ),
    "another's": ("0::/mine\n", V2, quota(f"{GROUPS}/other", 100_000), None),
    "the host's name in a container": ("0::/docker/ab\n", V2, quota(GROUPS, 100_000), 1),
    "outside of the namespace": ("0::/../ab\n", V2, quota(GROUPS, 100_000), 1),
    "mounted elsewhere": ("0::/a\n", ELSEWHERE, quota("my groups/a", 100_000), 1),
    "version 1": ("4:cpu,cpuacct:/\n0::/\n", V1, quota(FIRST, 100_000), 1),
    "version 1, no limit": ("4:cpu,cpuacct:/\n0::/\n", V1, quota(FIRST, -1), None),
    "version 1, nested": (
        "9:cpuset:/\n4:cpuacct,cpu:/a/b\n",
        V1,
        {**quota(f"{FIRST}/a", 100_000), **quota(f"{FIRST}/a/b", -1)},
        1,
    ),
    "version 1, in a container": (
        "4:cpu:/docker/ab/c\n",
        INNER,
        {**quota("sys/fs/cgroup/cpu", 300_000), **quota("sys/fs/cgroup/cpu/c", 100_000)},
        1,
    ),
    "version 1, a group with a colon": (
        "4:cpu,cpuacct:/a:b\n",
        V1,
        quota(f"{FIRST}/a:b", 100_000),
        1,
    ),
}


@pytest.mark.parametrize("name", QUOTAS)
def test_processors_that_are_granted(tmp_path, monkeypatch, name):
    own, mounts, files, granted = QUOTAS[name]
    system(tmp_path, monkeypatch, own, mounts, files)
    assert control_groups.processors() == granted


@pytest.mark.parametrize(
    ("granted", "affinity", "threads"),
    [(100_000, 8, 1), (5_000, 8, 1), (150_000, 8, 2), (400_000, 3, 3), ("max", 3, 3)],
)
def test_threads_are_the_least_of_affinity_and_quota(
    tmp_path, monkeypatch, granted, affinity, threads
):
    system(tmp_path, monkeypatch, "0::/\n", V2, quota(GROUPS, granted))
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(affinity)), raising=False)
    monkeypatch.setattr(os, "process_cpu_count", lambda: 64, raising=False)
    assert pool.available_threads() == pool.threads_of(None) == threads
    assert pool.threads_of(7) == 7


def test_threads_are_not_more_than_python_is_told(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    monkeypatch.setattr(os, "process_cpu_count", lambda: 3, raising=False)
    monkeypatch.setattr(pool, "_granted", lambda: None)
    assert pool.available_threads() == 3


def memory(path, limit, used, inactive=0, active=0, high="max"):
    """Return the files of a group's memory, of either version."""
    first = path.startswith(f"{GROUPS}/memory")
    total = "total_" if first else ""
    stat = f"anon 7\n{total}inactive_file {inactive}\n{total}active_file {active}\nfile 5"
    names = {
        "memory.limit_in_bytes" if first else "memory.max": limit,
        "memory.usage_in_bytes" if first else "memory.current": used,
        "memory.stat": stat,
    }
    names |= {} if first else {"memory.high": high}
    return {f"{path}/{name}": f"{text}\n" for name, text in names.items()}


# The own groups, the mounts, the files, and what is free.
MEMORY = {
    "no groups": ("", "", {}, None),
    "no limit": ("0::/\n", V2, memory(GROUPS, "max", 9), None),
    "its limit": ("0::/\n", V2, memory(GROUPS, 8 * GB, 3 * GB), 5 * GB),
    "where it is slowed down": ("0::/\n", V2, memory(GROUPS, 8 * GB, GB, high=4 * GB), 3 * GB),
    "files in its cache": ("0::/\n", V2, memory(GROUPS, 8 * GB, 8 * GB, 3 * GB, 2 * GB), 5 * GB),
    "nothing left": ("0::/\n", V2, memory(GROUPS, GB, 2 * GB), 0),
    "a job's": ("0::/slurm/job\n", V2, memory(f"{GROUPS}/slurm/job", 9 * GB, 5 * GB, GB), 5 * GB),
    "a user's, above the job": (
        "0::/slurm/job\n",
        V2,
        {**memory(f"{GROUPS}/slurm", 6 * GB, 4 * GB), **memory(f"{GROUPS}/slurm/job", "max", 0)},
        2 * GB,
    ),
    "the host's name in a container": ("0::/docker/ab\n", V2, memory(GROUPS, 4 * GB, GB), 3 * GB),
    "version 1": (
        "3:cpuset:/\n4:memory:/a/b\n0::/\n",
        V1,
        {
            **memory(f"{GROUPS}/memory", 1 << 63, 0),
            **memory(f"{GROUPS}/memory/a/b", 8 * GB, 6 * GB, GB, GB),
        },
        4 * GB,
    ),
    "version 1, in a container": (
        "4:memory:/docker/ab\n",
        INNER,
        memory(f"{GROUPS}/memory", 4 * GB, GB),
        3 * GB,
    ),
}


@pytest.mark.parametrize("name", MEMORY)
def test_memory_that_is_left(tmp_path, monkeypatch, name):
    own, mounts, files, free = MEMORY[name]
    system(tmp_path, monkeypatch, own, mounts, files)
    assert control_groups.free_memory() == free
