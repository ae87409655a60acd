"""The rounds of k-means||: each row is chosen or not by its own random number."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cpu.runtime.compiled import kernel
from lloydia.backends.cpu.scan.tile_scores import AMX
from lloydia.backends.cpu.seeding.protocols import Oversampled
from lloydia.backends.cpu.seeding.weights import TILE, fixed
from lloydia.exact import sums as exact
from lloydia.exact.counter import GOLDEN, MIX
from lloydia.imports import load

__all__ = ["extend", "loads", "sample"]

# Features, and products of a round, from which on rounds use the sketch where there are no matrix
# units: an assignment of fewer takes less than a quarter of a second, or reads rows hardly longer
# than their sketches.
SKETCHED_FEATURES, SKETCHED_PRODUCTS = 96, 1 << 34

# The sketch may leave at most this fraction of the pairs of a row and a candidate to evaluate, in
# the tiles that are tried first and in each block: a D takes as long as the scores of some 25
# pairs.  After a block with more, this and all later rounds are assignments.
MAX_EVALUATED, TRIED_TILES = 0.03, 4


@kernel
def uniform(key, i):
    """Return the random number of row `i`; see :mod:`lloydia.exact.counter`."""
    z = key + np.uint64(i + 1) * np.uint64(GOLDEN)
    z = (z ^ (z >> np.uint64(MIX[0][0]))) * np.uint64(MIX[0][1])
    z = (z ^ (z >> np.uint64(MIX[1][0]))) * np.uint64(MIX[1][1])
    z ^= z >> np.uint64(MIX[2][0])
    return np.float64(z >> np.uint64(11)) * 2.0**-53


@kernel
def choose_rows(nearest, weights, start, stop, low, high, key, before, factor, total, rows):
    """Choose rows as :func:`lloydia.exact.counter.chosen` does; return how many.

    Parameters
    ----------
    nearest, weights : IN, ndarray (n,), float64
        `weights` may be empty.
    start, stop : int
    low, high : float
        Powers of two whose product brings weight times D to its grid.
    key : uint64
    before : int
        Rows of other parts that precede row 0.
    factor, total : float
    rows : OUT, ndarray (stop - start,), int64
    """
    count = 0
    for i in range(start, stop):
        w = weights[i] if len(weights) else 1.0
        term = np.float64(fixed(nearest[i], w, low, high))
        if uniform(key, before + i) * total < factor * term:
            rows[count] = i
            count += 1
    return count


@kernel
def merge(start, stop, labels, D, before, nearest, owners):
    """Lower D of rows, and change their owners, by new seeds that are numbered from `before`."""
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
    seeder: Oversampled, key: int, factor: float, total: int, before: int, grid: tuple[int, int]
) -> NDArray[np.int64]:
    """Return the chosen rows, ascending; `before` rows of other parts precede them."""
    low, high = exact.two_factors(grid[0] - grid[1])
    found: dict[int, NDArray[np.int64]] = {}

    def task(thread: int, start: int, stop: int) -> None:
        rows = np.empty(stop - start, dtype=np.int64)
        count = choose_rows(
            seeder.nearest, seeder.dataset.weights, start, stop, low, high, np.uint64(key), before,
            factor, float(total), rows,
        )  # fmt: skip
        found[start] = rows[:count].copy()

    seeder.dataset.each_block(task, 4.0)
    return np.concatenate([found[start] for start in sorted(found)])


def extend(seeder: Oversampled, centers: NDArray) -> None:
    """Make dense rows of any part seeds, and remember each row's nearest seed."""
    if seeder.n_seeds == 0:
        seeder.owners = np.empty(seeder.dataset.n_samples, dtype=np.int32)
    if not extend_by_sketch(seeder, centers):
        labels, before = seeder.nearest_of(centers), seeder.n_seeds
        D = seeder.dataset.own_distances(labels, centers)
        seeder.dataset.each_block(
            lambda t, a, b: merge(a, b, labels, D, before, seeder.nearest, seeder.owners), 1.0
        )
    seeder.n_seeds += len(centers)
    seeder.stale()


def extend_by_sketch(seeder: Oversampled, centers: NDArray) -> bool:
    """Make rows seeds by the sketch, which excludes them for most rows; return whether it did.

    If it did not, some rows may already have their new D and owner; :func:`merge` gives them the
    same.
    """
    n, d = seeder.dataset.n_samples, seeder.dataset.n_features
    many = seeder.n_seeds > 0 and len(centers) * n * d >= SKETCHED_PRODUCTS
    if AMX or not (many and d >= SKETCHED_FEATURES and seeder.sketch_columns):
        return False
    lower_nearest = load("lloydia.backends.cpu.seeding.sketched").lower_nearest
    if seeder.sketch is None:
        seeder.sketch = load("lloydia.backends.cpu.seeding.sketch").Sketch(
            seeder.dataset, seeder.sketch_columns
        )
        seeder.sketch.pack(seeder.nearest)
    sketch = seeder.sketch
    if not sketch.pays:
        return False
    candidates, error = sketch.load(centers)
    wide = centers.astype(np.float64)
    groups, squares, errors = sketch.rows
    # Each round has its own limits, which follow D.
    limits = sketch.new_limits()
    sketch.write_limits(seeder.nearest, error, limits)
    n_tiles = [0] * seeder.dataset.n_threads

    def task(thread: int, first: int, last: int) -> None:
        # Blocks after one that took too long are skipped.
        if not sketch.pays:
            return
        limit = int(MAX_EVALUATED * len(centers) * TILE * (last - first))
        n_evaluated = lower_nearest(
            seeder.dataset.X, first, last, groups, limits, (squares, errors, sketch.unit, error),
            candidates, wide, seeder.n_seeds, seeder.nearest, seeder.owners, limit,
        )  # fmt: skip
        if n_evaluated > limit:
            sketch.pays = False
        else:
            n_tiles[thread] += last - first

    # A few tiles show whether the others will pay.
    tried = min(TRIED_TILES, seeder.n_tiles)
    task(0, 0, tried)
    seeder.dataset.each_block(
        lambda t, a, b: task(t, a + tried, b + tried),
        len(centers) * TILE * (0.03 * sketch.n_quads + 0.3 * MAX_EVALUATED * d),
        seeder.n_tiles - tried,
    )
    return sum(n_tiles) == seeder.n_tiles


def loads(seeder: Oversampled) -> NDArray[np.int64]:
    """Return the integer sum of the weights of each seed's rows, on the grid of all weights."""
    magnitudes = seeder.dataset.magnitudes()
    bits, exponent = exact.total_grid(magnitudes.n_samples, magnitudes.largest_weight)
    low, high = exact.two_factors(bits - exponent)
    out = np.zeros((seeder.dataset.n_threads, seeder.n_seeds), dtype=np.int64)

    def task(thread: int, start: int, stop: int) -> None:
        of_block = np.zeros(seeder.n_seeds, dtype=np.int64)
        add_loads(seeder.owners, seeder.dataset.weights, start, stop, low, high, of_block)
        out[thread] += of_block

    seeder.dataset.each_block(task, 2.0)
    return out.sum(axis=0)
