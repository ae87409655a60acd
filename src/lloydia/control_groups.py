"""Linux control groups: the limits on processor time and memory of a container or a job.

A process belongs to one group of each hierarchy (``/proc/self/cgroup``).  The limits of its group
and of all groups above it apply.  ``/proc/self/mountinfo`` lists where the hierarchies are mounted
and which part of each the process can see (proc(5), cgroups(7)).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

__all__ = ["free_memory", "processors"]

# The root of the file system; tests replace it.
ROOT = Path("/")

# The octal escapes of mountinfo, for a space, a tab, a line break and a backslash.
ESCAPE = re.compile(r"\\([0-7]{3})")


def processors() -> float | None:
    """Return the number of processors that the groups grant; None if there is no limit."""
    found = []
    for group in _groups("cpu", 2):
        words = _read(group / "cpu.max").split()
        if len(words) == 2 and words[0].isdigit() and words[1].isdigit():
            found.append(int(words[0]) / int(words[1]))
    for group in _groups("cpu", 1):
        quota, period = (_read(group / f"cpu.cfs_{name}_us") for name in ("quota", "period"))
        if quota.isdigit() and period.isdigit() and int(period):
            found.append(int(quota) / int(period))
    return min(found, default=None)


def free_memory() -> int | None:
    """Return the bytes of memory that the groups leave to this process; None without a limit.

    Pages in a group's file cache count as free.
    """
    found = []
    for group in _groups("memory", 2):
        # The kernel throttles a group that uses more than memory.high.
        for limit in ("memory.max", "memory.high"):
            found.append(_left(group, limit, "memory.current", ""))
    for group in _groups("memory", 1):
        found.append(_left(group, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_"))
    return min((left for left in found if left is not None), default=None)


def _left(group: Path, limit: str, used: str, prefix: str) -> int | None:
    """Return the bytes that a group may still allocate; None if it has no limit."""
    most, now = _read(group / limit), _read(group / used)
    if not (most.isdigit() and now.isdigit()):
        return None
    lines = rf"^{prefix}(?:in)?active_file (\d+)$"
    cached = re.findall(lines, _read(group / "memory.stat"), re.M)
    return max(int(most) - int(now) + sum(map(int, cached)), 0)


def _groups(controller: str, version: int) -> Iterator[Path]:
    """Yield the folders of the process's group and of all visible groups above it."""
    own = _own_group(controller, version)
    if own is None:
        return
    for root, mounted in _mounts(controller, version):
        # If the group is outside the mounted part (a container with the host's group names), the
        # mount itself is the nearest visible group.
        inside = own.relative_to(root) if own.is_relative_to(root) else PurePosixPath()
        inside = PurePosixPath() if ".." in inside.parts else inside
        yield from (mounted / path for path in (inside, *inside.parents))


def _own_group(controller: str, version: int) -> PurePosixPath | None:
    """Return the path of the process's group in its hierarchy."""
    for line in _read(ROOT / "proc/self/cgroup").splitlines():
        number, controllers, path = [*line.split(":", 2), "", ""][:3]
        first = version == 1 and controller in controllers.split(",")
        if first or (version == 2 and number == "0" and not controllers):
            return PurePosixPath(path)
    return None


def _mounts(controller: str, version: int) -> Iterator[tuple[PurePosixPath, Path]]:
    """Yield the mounts of a hierarchy: the group that is mounted, and the folder."""
    for line in _read(ROOT / "proc/self/mountinfo").splitlines():
        left, _, right = line.partition(" - ")
        fields, kinds = left.split(" "), right.split(" ")
        if len(fields) < 5 or len(kinds) < 3:
            continue
        first = version == 1 and kinds[0] == "cgroup" and controller in kinds[2].split(",")
        if first or (version == 2 and kinds[0] == "cgroup2"):
            root, mounted = (ESCAPE.sub(_unescaped, fields[i]) for i in (3, 4))
            yield PurePosixPath(root), ROOT / mounted.lstrip("/")


def _unescaped(found: re.Match[str]) -> str:
    return chr(int(found[1], 8))


def _read(path: Path) -> str:
    """Return the text of a system file, or "" if it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read().strip()
    except OSError:
        return ""
