"""The memory plan of a fit of chunks: how much it takes, and how many rows stay in memory."""

from __future__ import annotations

import ctypes
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from lloydia import control_groups
from lloydia.imports import load
from lloydia.spelling import option

__all__ = ["Plan", "Purpose", "available", "parse_bytes", "spell"]

# Bytes of the interpreter, the libraries, and kernels during their compilation; measured.
PROGRAM = 450_000_000

# The largest size of a block in bytes, the smallest one if memory is scarce, and the number of
# blocks in memory at once: one in use, one read ahead, one being released, and one result.
LARGEST, SMALLEST, FLOW = 32_000_000, 4_000_000, 4

# Bytes per row: D for the inertia; a label; D to the nearest seed and the notes of k-means++; the
# probabilities from which "random" draws rows with weights.
COST, LABEL, SEEDING, SHARES = 8, 4, 20, 48

# Bytes per row of the bounds of each algorithm for which they do not depend on the shape.
BOUNDS = {"lloyd": 0, "hamerly": 8, "exponion": 12, "auto": 8, "filtering": 8}

# The largest number of features for which auto may use filtering.
FEW = 8

# Bytes per row of filtering with all rows in memory, in addition to a copy of the rows: the order
# of the curve and labels; or, during the sort, keys and two orders.  And rows per node: a node has
# a box and a sum, in as many limbs as most data need.
ORDERED, SORTED, A_NODE, LIMBS = 8, 28, 56, 3

# Bytes of the engine of each block, and per feature.
OWN, OWN_FEATURE = 20_000, 600

UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
UNITS |= {f"{unit}i": 1024 ** (i + 1) for i, unit in enumerate("kmgt")}
AMOUNT = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?(?:e\+?[0-9]{1,2})?)\s*([kmgt]i?|)b?\s*")

# The file in which Linux reports the system's memory.
SYSTEM = Path("/proc/meminfo")


@dataclass(frozen=True)
class Purpose:
    """The purpose of the rows, which decides what is stored for each row.

    Attributes
    ----------
    n_clusters : int
    algorithm, init : str
        As in :class:`lloydia.KMeans`; `init` is "given" if no rows are drawn.
    a_row : int
        Bytes per row of the result.
    keeps : bool
        Whether data are stored for all rows, or only for the rows of one block at a time.
    """

    n_clusters: int = 1
    algorithm: str = "lloyd"
    init: str = "given"
    a_row: int = 0
    keeps: bool = True

    def of_row(self, row: int, weighted: bool) -> int:
        """Return the bytes stored per row in addition to the row itself, of `row` bytes."""
        k = self.n_clusters
        if self.algorithm == "elkan":
            bounds = load("lloydia.algorithms.elkan").bytes_of_row(k)
        elif self.algorithm == "yinyang":
            bounds = load("lloydia.algorithms.yinyang").bytes_of_row(k, row)
        else:
            bounds = BOUNDS[self.algorithm]
        seeding = SHARES if self.init == "random" and weighted else SEEDING
        return max(seeding, bounds + COST) + 2 * LABEL + 16 * weighted + self.a_row

    def at_will(self, d: int, size: int) -> list[int]:
        """Return the possible sizes of auto's bounds in bytes per row, the largest first.

        They apply if all rows are in memory; auto does without bounds that do not fit.
        """
        k, row = self.n_clusters, d * size
        auto, elkan, yinyang = (
            load(f"lloydia.algorithms.{name}") for name in ("auto", "elkan", "yinyang")
        )
        if self.algorithm != "auto" or d <= FEW or not self.keeps or k < auto.MANY:
            return [0]
        single = elkan.bytes_of_row(k)
        wide = d >= auto.WIDE and single <= elkan.TIMES * row
        return [*[single] * wide, yinyang.bytes_of_row(k, row), 0]

    def of_cluster(self, d: int, n_threads: int) -> int:
        """Return the bytes per cluster: sums of each thread, packed centres, candidates."""
        candidates = 10 if self.init in ("k-means||", "k-means++") else 1
        return (d + 1) * 8 * (3 * n_threads + 12 + 4 * candidates) + 300 * candidates


class Planned(Protocol):
    """The attributes of a source that a plan uses; see :class:`lloydia.data.chunks.Chunks`."""

    where: str
    raw: np.dtype
    dtype: np.dtype
    memory: int
    block: int | None
    spill: Path | None

    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def at_once(self) -> int: ...
    @property
    def overhead(self) -> int: ...


@dataclass(frozen=True)
class Plan:
    """A memory plan; :meth:`of` makes one.

    Attributes
    ----------
    memory : int
        Limit on the memory of the process, in bytes.
    rows : int
        Rows per block.
    n_blocks, n_kept : int
        The number of blocks, and how many of them stay in memory after they have been read.
    whole : bool
        Whether all rows are loaded as one array.
    program, state, flow, kept : int
        Bytes of the process itself, of the data stored for rows and clusters, of blocks in flight,
        and of rows that stay in memory.
    spill : Path or None
        The folder for blocks that do not stay in memory, if there are such blocks.
    spare : int
        Bytes per row that auto may use for bounds of many centres; a part of `state`.
    partial : bool
        Whether the source has rows of weight 0, which only get a label.
    """

    memory: int
    rows: int
    n_blocks: int
    n_kept: int
    whole: bool
    program: int
    state: int
    flow: int
    kept: int
    spill: Path | None = None
    spare: int = 0
    partial: bool = False

    @classmethod
    def of(cls, source: Planned, purpose: Purpose, weighted: bool, n_threads: int) -> Plan:
        """Make the plan of a source; see :meth:`lloydia.data.chunks.Chunks.plan`."""
        (n, d), size = source.shape, source.dtype.itemsize
        clusters = purpose.n_clusters * purpose.of_cluster(d, n_threads)
        of_row = purpose.of_row(d * size, weighted)
        left = source.memory - PROGRAM - clusters - of_row * n * purpose.keeps - source.overhead
        target = min(max(left // (4 * FLOW), SMALLEST), LARGEST)
        rows = min(source.block or max(target // (d * size), 1), n)
        n_blocks = -(-n // rows)
        n_rows, n_engines = (n, n_blocks) if purpose.keeps else (rows, 1)
        state = clusters + of_row * n_rows + (OWN + OWN_FEATURE * d) * n_engines
        reading = 2 * source.at_once * d * source.raw.itemsize + source.overhead
        flow = FLOW * rows * d * size + reading
        needed = PROGRAM + state + flow
        if needed > source.memory:
            raise MemoryError(
                f"{source.where} needs at least {spell(needed)} of memory ({spell(PROGRAM)} for "
                f"the program, {spell(state)} for what is kept of {n_rows:,} rows and of the "
                f"clusters, {spell(flow)} for blocks), and may take {spell(source.memory)}: give "
                f"{option('memory', f'{-(-needed // 10**6)}MB')} or more."
            )
        whole = n * d * size * purpose.keeps
        few = purpose.algorithm == "auto" and d <= FEW
        if purpose.keeps and (few or purpose.algorithm == "filtering"):
            whole += n * (d * size + tiles(d, size))
        if needed + whole <= source.memory:
            left = (source.memory - needed - whole) // n
            spare = next(taken for taken in purpose.at_will(d, size) if taken <= left)
            sizes = PROGRAM, state + spare * n, flow, whole
            return cls(source.memory, rows, n_blocks, n_blocks, True, *sizes, spare=spare)
        kept = min((source.memory - needed) // (rows * d * size), n_blocks)
        held = min(kept * rows, n) * d * size
        sizes = PROGRAM, state, flow, held
        spill = source.spill if kept < n_blocks else None
        return cls(source.memory, rows, n_blocks, kept, False, *sizes, spill)

    @property
    def peak(self) -> int:
        """The largest number of bytes that the process takes."""
        return self.program + self.state + self.flow + self.kept

    def __str__(self) -> str:
        parts = (
            f"peak memory {spell(self.peak)} of {spell(self.memory)} ({spell(self.program)} the "
            f"program, {spell(self.state)} what is kept of rows and clusters, {spell(self.flow)} "
            f"blocks on their way, {spell(self.kept)} rows)"
        )
        last = ", and once more for the labels of the rows of weight 0" if self.partial else ""
        if self.whole:
            return f"{parts}: the data are read once{last}"
        again = f"{self.n_blocks - self.n_kept:,} are read in every pass"
        if self.spill is not None:
            again += f", the first time from the data, then from {self.spill}"
        return (
            f"{parts}: {self.n_kept:,} of {self.n_blocks:,} blocks of {self.rows:,} rows stay in "
            f"memory, {again}{last}"
        )


def tiles(d: int, size: int) -> int:
    """Return the bytes per row that filtering stores in addition to a copy of the rows."""
    node = 2 * d * size + 8 * LIMBS * (d + 1)
    return max(SORTED, ORDERED + -(-node // A_NODE))


def parse_bytes(text: int | str) -> int:
    """Return the number of bytes that ``"2GB"``, ``"500 MiB"`` or ``1500000`` means.

    Raises
    ------
    ValueError
        If the text is not an amount of memory.
    """
    found = AMOUNT.fullmatch(str(text).lower())
    if isinstance(text, bool) or found is None or not float(found[1]):
        raise ValueError(
            f"{option('memory', text)} is not an amount of memory: write 2GB, 500MB or 1.5GiB."
        )
    return int(float(found[1]) * UNITS[found[2]])


def spell(count: int) -> str:
    """Return a number of bytes as a text with a unit."""
    for unit, name in ((10**12, "TB"), (10**9, "GB"), (10**6, "MB")):
        if count >= unit:
            return f"{count / unit:.2f} {name}"
    return f"{count / 1000:.0f} kB" if count >= 1000 else f"{count} bytes"


def available() -> int:
    """Return the bytes of memory that this process can still use, within its control groups.

    Containers and jobs on a cluster are control groups.  Pages of the file cache count as free.

    Raises
    ------
    ValueError
        If the system does not report its free memory.
    """
    if SYSTEM.exists():
        found = re.search(r"MemAvailable:\s+(\d+) kB", SYSTEM.read_text())
        free = int(found[1]) * 1024 if found else 0
    elif hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        # The free memory is not reported; assume half of the total.
        free = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    elif sys.platform == "win32":
        free = _free_on_windows()
    else:
        raise ValueError(
            f"this system does not report how much memory is free: give {option('memory', '2GB')}."
        )
    left = control_groups.free_memory()
    return free if left is None else min(free, left)


class _MemoryStatus(ctypes.Structure):
    """MEMORYSTATUSEX of the Windows API."""

    _fields_ = (
        ("length", ctypes.c_uint32),
        ("load", ctypes.c_uint32),
        *((name, ctypes.c_uint64) for name in ("all_memory", "free_memory", "all_pages")),
        *((name, ctypes.c_uint64) for name in ("free_pages", "all_addresses", "free_addresses")),
        ("extended", ctypes.c_uint64),
    )


def _free_on_windows() -> int:
    """Return the bytes of free memory on Windows."""
    status = _MemoryStatus(length=ctypes.sizeof(_MemoryStatus))
    if not ctypes.CDLL("kernel32").GlobalMemoryStatusEx(ctypes.byref(status)):
        raise ValueError(
            f"Windows does not report how much memory is free: give {option('memory', '2GB')}."
        )
    return int(status.free_memory)
