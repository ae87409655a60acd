"""What one iteration more takes, and what seedings take.

An iteration is a long run minus a short run, divided by the difference of their iterations: what is
done once a run cancels out.  With the times of a contender, its results are given as a hash of
everything that the contract defines.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from rich import box
from rich.console import Console
from rich.table import Table

from lloydia.backends.engine import Engine
from lloydia.data.arrays import on_host
from lloydia.loop.run import Result, run_iterations
from lloydia.seeding import SEEDINGS
from lloydia.stopping import Shift

__all__ = ["SEEDING_HEADS", "Row", "seeded", "seeding_cells", "show", "timed"]

Row = dict[str, Any]

# The seedings, and the key of each one's seconds.
SECONDS = {"k-means++": "plusplus_s", "k-means||": "parallel_s"}
SEEDING_HEADS = tuple(f"{init}, s" for init in SECONDS)


def timed(
    engine: Engine,
    start: NDArray,
    few: int,
    many: int,
    rounds: int,
    counted: Callable[[], int] = lambda: 0,
) -> Row:
    """Return what an iteration takes (`ms`, and how much is `counted`), a run's seconds, its hash.

    Parameters
    ----------
    engine : Engine
    start : ndarray of shape (k, d)
    few, many : int
        Iterations of the two runs.
    rounds : int
        Times that both are done; the figures are medians.
    counted : callable
        Returns what was counted so far, of whatever grows as iterations are done.
    """
    run(engine, start, 2)
    each, counts, seconds, answers = [], [], [], set()
    for _ in range(rounds):
        so_far = [counted()]
        short = run(engine, start, few)
        so_far.append(counted())
        long = run(engine, start, many)
        so_far.append(counted())
        more = max(long[0].n_iter - short[0].n_iter, 1)
        each.append(1e3 * (long[1] - short[1]) / more)
        counts.append((so_far[2] - 2 * so_far[1] + so_far[0]) // more)
        seconds.append(long[1])
        answers.add(digest(long[0]))
    return {
        "ms": median(each), "counted": int(median(counts)), "run_s": median(seconds),
        "answer": " ".join(sorted(answers)),
    }  # fmt: skip


def seeded(engine: Engine, k: int, rounds: int) -> Row:
    """Return what each seeding takes in seconds, the median, and a hash of the rows it chooses."""
    found: Row = {}
    answers = hashlib.sha256()
    for init, key in SECONDS.items():
        seconds = []
        for _ in range(1 + rounds):  # The first compiles.
            began = time.perf_counter()
            picks = SEEDINGS[init](engine, k, np.random.RandomState(0))
            synchronize()
            seconds.append(time.perf_counter() - began)
        answers.update(picks.tobytes())
        found[key] = median(seconds[1:])
    return found | {"picks": answers.hexdigest()[:16]}


def seeding_cells(row: Row) -> list[str]:
    """Return what the seconds of seedings are shown as."""
    return [f"{row[key]:.3f}" for key in SECONDS.values()]


def synchronize() -> None:
    """Wait for all devices."""
    for number in range(torch.cuda.device_count()):
        torch.cuda.synchronize(number)


def run(engine: Engine, start: NDArray, iterations: int) -> tuple[Result, float]:
    """Return a run and its seconds, all devices' work included."""
    began = time.perf_counter()
    result = run_iterations(
        engine, start, algorithm="lloyd", rule=Shift(0.0), max_iter=iterations, empty="keep"
    )
    synchronize()
    return result, time.perf_counter() - began


def digest(result: Result) -> str:
    """Return a hash of labels, centres, inertia and iterations."""
    found = hashlib.sha256()
    for array in (result.labels, result.centers):
        found.update(on_host(array).tobytes())
    found.update(f"{result.inertia!r} {result.n_iter}".encode())
    return found.hexdigest()[:16]


def show(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table."""
    table = Table(box=box.SIMPLE)
    for name in heads:
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(*row)
    Console(width=120).print(table)
