"""One assignment by each algorithm, as a step to be applied to every block of rows.

A step assigns the rows ``start`` to ``stop``, moves those that changed in its thread's sums, and
returns how many did.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lloydia.algorithms.filtering import FAN, TILE
from lloydia.algorithms.geometry import Geometry
from lloydia.backends.cpu import bounds
from lloydia.backends.cpu.centers import pack
from lloydia.backends.cpu.distances import own_distances, squared_distances
from lloydia.backends.cpu.filtering import search
from lloydia.backends.cpu.low_scan import LOW, tile_scan
from lloydia.backends.cpu.placed import NONE
from lloydia.backends.cpu.rows import EVERY
from lloydia.backends.cpu.scan import certified_scan
from lloydia.backends.cpu.sparse_scan import sparse_scan

if TYPE_CHECKING:
    from lloydia.backends.cpu import CPU

__all__ = ["STEPS", "Tally"]

Step = Callable[[int, int, int], int]


class Tally:
    """What the threads count, and their scratch for a block's labels.

    Attributes
    ----------
    changed, evaluated, rechecked : ndarray of shape (n_threads,), int64
    fresh : ndarray of shape (n_threads, block), int32
    """

    def __init__(self, n_threads: int, block: int) -> None:
        self.changed, self.evaluated, self.rechecked = np.zeros((3, n_threads), dtype=np.int64)
        self.fresh = np.empty((n_threads, block), dtype=np.int32)


def scanner(engine: CPU) -> Callable[..., int]:
    """Return the scan for the engine's data and centres.

    It takes (rows, start, stop, fresh, best, second) and returns the rows in doubt.
    """
    wide = engine.used.astype(np.float64)
    X: Any = engine.X
    if engine.sparse:
        columns = np.ascontiguousarray(wide.T)
        squares = np.square(wide).sum(axis=1)
        halves, reach = 0.5 * squares, float(np.sqrt(squares.max())) * (1 + 2.0**-20)
        return lambda rows, start, stop, *out: sparse_scan(
            X, rows, start, stop, columns, halves, reach, *out
        )
    if engine.n_features <= LOW:
        kernel = tile_scan(engine.n_features)
        return lambda rows, start, stop, *out: kernel(X, rows, start, stop, wide, *out)
    p = pack(wide)
    fixed = (p.panels, p.halves, p.origin, p.scale, p.terms, p.columns)
    return lambda rows, start, stop, *out: certified_scan(X, rows, start, stop, *fixed, *out)


def lloyd(engine: CPU, before: NDArray, tally: Tally) -> Step:
    """Scan every row."""
    scan_rows, k = scanner(engine), len(engine.used)

    def step(t: int, start: int, stop: int) -> int:
        tally.rechecked[t] += scan_rows(EVERY, start, stop, tally.fresh[t], NONE, NONE)
        tally.evaluated[t] += (stop - start) * k
        return engine.move(t, EVERY, start, stop, tally.fresh[t])

    return step


def geometry(engine: CPU, before: NDArray) -> Geometry:
    """Measure how far the centres moved, and their distances to each other."""
    old, new = before.astype(np.float64), engine.used.astype(np.float64)
    k = len(new)
    moved, gaps = np.empty(k), np.empty((k, k))
    own_distances(new, 0, k, np.arange(k, dtype=np.int32), old, moved)
    columns = np.ascontiguousarray(new.T)
    engine.each_block(
        lambda t, a, b: squared_distances(new, a, b, columns, gaps, a), 0.3 * new.size, k
    )
    return Geometry.of(moved, gaps, engine.bounds.padding, engine.bounds.pairs)


def hamerly(engine: CPU, before: NDArray, tally: Tally) -> Step:
    """Scan the rows whose two bounds do not settle them."""
    scan_rows, k, b = scanner(engine), len(engine.used), engine.bounds
    centers, g = engine.used.astype(np.float64), geometry(engine, before)
    order = np.argsort(g.moved)
    # The centre that moved most, how far it did, and how far the next did.
    largest = (int(order[-1]), g.moved[order[-1]], g.moved[order[-2]] if k > 1 else 0.0)
    padding = b.padding.as_tuple()
    active = np.empty(tally.fresh.shape, dtype=np.int64)
    best, second = np.empty(active.shape), np.empty(active.shape)

    def step(t: int, start: int, stop: int) -> int:
        n_active, n_distances = bounds.hamerly_select(
            engine.X, start, stop, engine.assigned, centers, g.moved, largest, g.half_nearest,
            b.upper, b.lower, padding, active[t],
        )  # fmt: skip
        tally.rechecked[t] += scan_rows(active[t], 0, n_active, tally.fresh[t], best[t], second[t])
        tally.evaluated[t] += n_distances + n_active * k
        bounds.hamerly_bounds(active[t], n_active, best[t], second[t], b.upper, b.lower, padding)
        return engine.move(t, active[t], 0, n_active, tally.fresh[t])

    return step


def elkan(engine: CPU, before: NDArray, tally: Tally) -> Step:
    """Evaluate the distances that the k bounds of a row do not settle."""
    b, k = engine.bounds, len(engine.used)
    centers, g = engine.used.astype(np.float64), geometry(engine, before)
    padding = b.padding.as_tuple()
    tally.evaluated[0] += k * (k - 1) // 2

    def step(t: int, start: int, stop: int) -> int:
        tally.evaluated[t] += bounds.elkan(
            engine.X, start, stop, engine.assigned, centers, g.moved, g.half_nearest, g.half_gaps,
            b.upper, b.lower, padding, tally.fresh[t],
        )  # fmt: skip
        return engine.move(t, EVERY, start, stop, tally.fresh[t])

    return step


def filtering(engine: CPU, before: NDArray, tally: Tally) -> Step:
    """Search from the roots whose first row, in the order of the curve, lies in the block."""
    tiles, b = engine.tiles, engine.bounds
    centers, axes = engine.used.astype(np.float64), tuple(range(engine.n_features))
    rows = TILE * FAN ** (len(tiles.levels) - 1)

    def step(t: int, start: int, stop: int) -> int:
        changed, evaluated = search(
            axes, -(-start // rows), -(-stop // rows), tiles.levels,
            tiles.firsts, tiles.low, tiles.high, tiles.x,
            tiles.weights, tiles.sums, engine.n_samples, centers, b.owner, b.held,
            engine.lattice, engine.sums[t], engine.last,
        )  # fmt: skip
        tally.evaluated[t] += evaluated
        return changed

    engine.behind = True
    return step


STEPS = {"lloyd": lloyd, "hamerly": hamerly, "elkan": elkan, "filtering": filtering}
