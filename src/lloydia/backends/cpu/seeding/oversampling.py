"""k-means||'s rounds: rows chosen by numbers of their own, and added as seeds all at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cpu.runtime.compiled import kernel
from lloydia.backends.cpu.seeding.protocols import Oversampled
from lloydia.backends.cpu.seeding.weights import fixed
from lloydia.exact import sums as exact
from lloydia.exact.counter import GOLDEN, MIX

__all__ = ["extend", "loads", "sample"]


@kernel
def uniform(key, i):
    """Return row i's number; see :mod:`lloydia.exact.counter`."""
    z = key + np.uint64(i + 1) * np.uint64(GOLDEN)
    z = (z ^ (z >> np.uint64(MIX[0][0]))) * np.uint64(MIX[0][1])
    z = (z ^ (z >> np.uint64(MIX[1][0]))) * np.uint64(MIX[1][1])
    z ^= z >> np.uint64(MIX[2][0])
    return np.float64(z >> np.uint64(11)) * 2.0**-53


@kernel
def choose_rows(nearest, weights, start, stop, low, high, key, before, factor, total, rows):
    """Write the rows that :func:`lloydia.exact.counter.chosen` would return; count them."""
    count = 0
    for i in range(start, stop):
        w = weights[i] if len(weights) else 1.0
        term = np.float64(fixed(nearest[i], w, low, high))
        if uniform(key, before + i) * total < factor * term:
            rows[count] = i
            count += 1
    return count


@kernel
def fold(start, stop, labels, D, before, nearest, owners):
    """Take the nearest of new seeds where it is nearer; they are numbered from `before` on."""
    for i in range(start, stop):
        if before == 0 or D[i] < nearest[i]:
            nearest[i] = D[i]
            owners[i] = before + labels[i]


@kernel
def add_loads(owners, weights, start, stop, low, high, out):
    """Add each row's weight, as an integer, to its owner."""
    for i in range(start, stop):
        out[owners[i]] += fixed(1.0, weights[i] if len(weights) else 1.0, low, high)


def sample(
    engine: Oversampled, key: int, factor: float, total: int, before: int, grid: tuple[int, int]
) -> NDArray[np.int64]:
    """Return the chosen rows, ascending; `before` rows of other parts come first."""
    low, high = exact.two_factors(grid[0] - grid[1])
    found: dict[int, NDArray[np.int64]] = {}

    def task(thread: int, start: int, stop: int) -> None:
        rows = np.empty(stop - start, dtype=np.int64)
        count = choose_rows(
            engine.nearest, engine.weights, start, stop, low, high, np.uint64(key), before,
            factor, float(total), rows,
        )  # fmt: skip
        found[start] = rows[:count].copy()

    engine.each_block(task, 4.0)
    return np.concatenate([found[start] for start in sorted(found)])


def extend(engine: Oversampled, centers: NDArray) -> None:
    """Make rows of any part, dense, seeds; remember which is nearest to each row."""
    if engine.n_seeds == 0:
        engine.owners = np.empty(engine.n_samples, dtype=np.int32)
    engine.classify(centers)
    labels, before = engine.labels(), engine.n_seeds
    D = engine.own_distances(labels, centers)
    engine.each_block(
        lambda t, a, b: fold(a, b, labels, D, before, engine.nearest, engine.owners), 1.0
    )
    engine.n_seeds += len(centers)
    engine.stale()


def loads(engine: Oversampled) -> NDArray[np.int64]:
    """Return the integer sum of the weights of each seed's rows, on the grid of all weights."""
    whole = engine.magnitudes()
    bits, exponent = exact.total_grid(whole.n_samples, whole.largest_weight)
    low, high = exact.two_factors(bits - exponent)
    out = np.zeros((engine.n_threads, engine.n_seeds), dtype=np.int64)

    def task(thread: int, start: int, stop: int) -> None:
        own = np.zeros(engine.n_seeds, dtype=np.int64)
        add_loads(engine.owners, engine.weights, start, stop, low, high, own)
        out[thread] += own

    engine.each_block(task, 2.0)
    return out.sum(axis=0)
