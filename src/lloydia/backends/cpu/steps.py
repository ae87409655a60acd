"""One assignment by each algorithm, as a step to be applied to every block of rows.

A step assigns the rows ``start`` to ``stop``, moves those that changed in its thread's sums, and
returns how many did.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lloydia.algorithms.filtering import FAN, TILE
from lloydia.backends.cpu.distances import own_distances
from lloydia.backends.cpu.elkan import bound_rows
from lloydia.backends.cpu.elkan import elkan as elkan_rows
from lloydia.backends.cpu.exponion import REACH, group, scan_balls, worthwhile
from lloydia.backends.cpu.filtering import labels_by_place, search
from lloydia.backends.cpu.grouped import Grouped, arrange, vectors
from lloydia.backends.cpu.hamerly import renew, tighten, unsettled
from lloydia.backends.cpu.micro import LANES
from lloydia.backends.cpu.placed import NONE
from lloydia.backends.cpu.rows import EVERY
from lloydia.backends.cpu.scanners import dense_scanner, scanner
from lloydia.backends.cpu.yinyang import yinyang as yinyang_rows
from lloydia.exact.certificate import error_terms

if TYPE_CHECKING:
    from lloydia.backends.cpu import CPU

__all__ = ["STEPS", "Tally"]

# A distance that is taken alone costs what about this many of a scan's do.  Those to the rows' own
# centres are taken of a part of the rows first, and of the rest if they settle enough.
ALONE = 20

# Rows scanned at a time where bounds follow: what the scan writes stays in the cache.
PIECE = 8192

Step = Callable[[int, int, int], int]


class Tally:
    """What the threads count, and their scratch for a block's labels.

    Attributes
    ----------
    changed, evaluated, rechecked : list of int
        A number for each thread.
    fresh : ndarray of shape (n_threads, block), int32
    """

    def __init__(self, n_threads: int, block: int) -> None:
        # Lists: to add to an element of an array takes longer than some blocks.
        self.changed, self.evaluated, self.rechecked = ([0] * n_threads for _ in range(3))
        self.fresh = np.empty((n_threads, block), dtype=np.int32)


def lloyd(engine: CPU, before: NDArray, tally: Tally) -> Step:
    """Scan every row."""
    scan_rows, k = scanner(engine), len(engine.used)

    def step(t: int, start: int, stop: int) -> int:
        tally.rechecked[t] += scan_rows(EVERY, start, stop, tally.fresh[t], NONE, NONE)
        tally.evaluated[t] += (stop - start) * k
        return engine.move(t, EVERY, start, stop, tally.fresh[t])

    return step


def moves(engine: CPU, before: NDArray) -> NDArray[np.float64]:
    """Return upper bounds on how far the centres moved, in the unit of the bounds."""
    k, padding = len(before), engine.bounds.padding
    D = np.empty(k)
    own_distances(engine.used, 0, k, np.arange(k, dtype=np.int32), before.astype(np.float64), D)
    return padding.raised(np.sqrt(D) * padding.unit)


def half_nearest(engine: CPU) -> NDArray[np.float64]:
    """Return lower bounds on half the distance from each centre to its nearest other.

    The scan of the centres themselves: whatever is not the label is a centre's second nearest.
    """
    k, padding = len(engine.used), engine.bounds.padding
    scan = dense_scanner(engine, engine.used)
    fresh, best, second = np.empty(k, dtype=np.int32), np.empty(k), np.empty(k)
    engine.each_block(
        lambda t, a, b: scan(EVERY, a, b, fresh[a:b], best[a:b], second[a:b]),
        engine.used.size / 40.0, k,
    )  # fmt: skip
    return 0.5 * padding.lowered(np.sqrt(second) * padding.unit)


class Tests:
    """The tests of Hamerly in one assignment, once the centres' move is accounted for."""

    def __init__(self, engine: CPU, half: NDArray, tally: Tally) -> None:
        b = engine.bounds
        self.engine, self.tally, self.k = engine, tally, len(engine.used)
        self.tests, self.padding = b.tests(half), b.padding.as_tuple()
        self.bounds, self.totals = (b.upper, b.lower), (b.moved, b.passed)
        self.scaled = engine.used * engine.dtype.type(b.padding.unit)
        self.scan = scanner(engine)
        # Whether every row must be scanned, after which its bounds are known.
        self.first, b.known = not b.known, True

    def failing(self, t: int, start: int, stop: int, rows: NDArray) -> int:
        """List the rows of a block that no test settles; return how many."""
        labels = self.engine.assigned
        n = unsettled(start, stop, labels, *self.bounds, *self.tests[:2], rows)
        fixed = (labels, self.scaled, self.bounds, self.tests, self.padding)
        part = n // 16
        m = tighten(self.engine.X, rows, 0, part, *fixed, 0)
        if (part - m) * self.k > part * ALONE:
            part, m = n, tighten(self.engine.X, rows, part, n, *fixed, m)
        rows[m : m + n - part] = rows[part:n]
        self.tally.evaluated[t] += part
        return m + n - part

    def renewed(self, t: int, rows: NDArray, start: int, stop: int, fresh: NDArray) -> None:
        """Scan a range of a list of rows, and set their bounds."""
        best, second = np.empty((2, PIECE))
        for at in range(start, stop, PIECE):
            end = min(at + PIECE, stop)
            out = (fresh[at - start :], best, second)
            self.tally.rechecked[t] += self.scan(rows, at, end, *out)
            renew(rows, at, end, *out, self.bounds, self.totals, self.padding)
        self.tally.evaluated[t] += (stop - start) * self.k


def hamerly(engine: CPU, before: NDArray, tally: Tally) -> Step:
    """Scan the rows whose two bounds do not settle them."""
    half = half_nearest(engine)
    if not engine.bounds.move(moves(engine, before), half, engine.assigned):
        return lloyd(engine, before, tally)
    return hamerly_step(engine, Tests(engine, half, tally), tally)


def hamerly_step(engine: CPU, tests: Tests, tally: Tally) -> Step:
    """Return the step that scans whatever fails."""
    listed = np.empty(tally.fresh.shape, dtype=np.int64)

    def step(t: int, start: int, stop: int) -> int:
        rows = EVERY if tests.first else listed[t]
        if not tests.first:
            start, stop = 0, tests.failing(t, start, stop, rows)
        tests.renewed(t, rows, start, stop, tally.fresh[t])
        return engine.move(t, rows, start, stop, tally.fresh[t])

    return step


def grouped(engine: CPU, tests: Tests) -> NDArray[np.int64]:
    """List the failing rows of the whole data by label."""
    n = engine.n_samples
    listed = np.empty(n, dtype=np.int32 if n < 2**31 else np.int64)
    lengths: dict[int, int] = {}

    def task(t: int, start: int, stop: int) -> None:
        lengths[start] = tests.failing(t, start, stop, listed[start:stop])

    engine.each_block(task, 5.0 + 0.2 * engine.width)
    order = np.empty(sum(lengths.values()), dtype=np.int64)
    starts, sizes = (np.array(list(part)) for part in (lengths.keys(), lengths.values()))
    ends = np.zeros(len(engine.used), dtype=np.int64)
    group(listed, starts, sizes, engine.assigned, ends, order)
    return order


def exponion(engine: CPU, before: NDArray, tally: Tally) -> Step:
    """Scan the rows that fail Hamerly's tests among the centres in a ball."""
    half, b = half_nearest(engine), engine.bounds
    if not b.move(moves(engine, before), half, engine.assigned):
        return lloyd(engine, before, tally)
    tests = Tests(engine, half, tally)
    columns, labels = np.ascontiguousarray(tests.scaled.T), engine.assigned
    # CSR rows are compared with all centres.
    balls = not (tests.first or engine.sparse)
    if not (balls and worthwhile(columns, labels, b.upper, b.moved, tests.padding)):
        return hamerly_step(engine, tests, tally)
    order = grouped(engine, tests)
    n, m, unit = engine.n_samples, len(order), b.padding.unit
    wide = engine.used.astype(np.float64)
    # No ball's scale is larger.
    terms = error_terms(engine.n_features, REACH, min(unit * 2.0**50, 2.0**1000))

    def step(t: int, start: int, stop: int) -> int:
        # As large a part of the list as the block is of all rows.
        start, stop = start * m // n, stop * m // n
        fresh, rest = tally.fresh[t], np.empty(stop - start, dtype=np.int64)
        n_rest, n_distances, n_rechecked = scan_balls(
            engine.X, order, start, stop, labels, wide, columns, tests.bounds, tests.totals,
            terms, tests.padding, fresh, rest,
        )  # fmt: skip
        tally.evaluated[t] += n_distances
        tally.rechecked[t] += n_rechecked
        rest = rest[:n_rest]
        others = np.empty(n_rest, dtype=np.int32)
        tests.renewed(t, order[rest], 0, n_rest, others)
        fresh[rest - start] = others
        return engine.move(t, order, start, stop, fresh)

    return step


def half_gaps(engine: CPU, centers: Grouped) -> NDArray[np.float32]:
    """Return lower bounds on half the distances between centres: shape (k, k or more).

    Infinite on the diagonal and where there is no centre.
    """
    k, width = len(centers.rows), len(centers.halves)
    gaps, padding = np.empty((k, width), dtype=np.float32), engine.bounds.padding.as_tuple()
    upper, nearest = np.empty((2, k), dtype=np.float32)
    still, none = np.zeros(width, dtype=np.float32), np.float32(0.0)
    rows, labels = np.arange(k), np.empty(k, dtype=np.int32)

    def task(t: int, start: int, stop: int) -> None:
        bound_rows(
            engine.used, rows[start:stop], stop - start, centers, still, none, upper, nearest,
            gaps, padding, labels,
        )  # fmt: skip

    engine.each_block(task, engine.used.size / 40.0, k)
    gaps *= np.float32(0.5)
    gaps[rows, rows] = np.inf
    gaps[:, k:] = np.inf
    return gaps


def elkan(engine: CPU, before: NDArray, tally: Tally) -> Step:
    """Evaluate the distances that the k bounds of a row do not settle."""
    b, k = engine.bounds, len(engine.used)
    wide = engine.used.astype(np.float64)
    moved = moves(engine, before)
    b.move(moved)
    centers, padding = arrange(wide, np.arange(k), LANES), b.padding.as_tuple()
    gaps, scaled = half_gaps(engine, centers), engine.used * engine.dtype.type(b.padding.unit)
    rows, drifts = np.empty(tally.fresh.shape, dtype=np.int64), (b.drift, b.passed)
    fixed = (centers, wide, scaled, *drifts, moved.astype(np.float32), gaps, gaps.min(axis=1))
    tally.evaluated[0] += k * (k - 1) // 2

    def step(t: int, start: int, stop: int) -> int:
        n_rows, evaluated, rechecked = elkan_rows(
            engine.X, start, stop, engine.assigned, *fixed, b.upper, b.nearest, b.lower, padding,
            rows[t], tally.fresh[t],
        )  # fmt: skip
        tally.evaluated[t] += evaluated
        tally.rechecked[t] += rechecked
        return engine.move(t, rows[t], 0, n_rows, tally.fresh[t])

    return step


def yinyang(engine: CPU, before: NDArray, tally: Tally) -> Step:
    """Evaluate the groups of centres that the bounds of a row do not settle."""
    b, k = engine.bounds, len(engine.used)
    wide = engine.used.astype(np.float64)
    width = vectors(k) * LANES
    if len(b.lower) == 0:
        b.divide(wide, width, engine.width * engine.dtype.itemsize)
    moved = moves(engine, before)
    b.move(moved)
    centers, padding = arrange(wide, b.order, width), b.padding.as_tuple()
    rows = np.empty(tally.fresh.shape, dtype=np.int64)

    def step(t: int, start: int, stop: int) -> int:
        n_rows, evaluated, rechecked = yinyang_rows(
            engine.X, start, stop, engine.assigned, centers, moved.astype(np.float32), b.drift,
            b.size, b.upper, b.lower, padding, rows[t], tally.fresh[t],
        )  # fmt: skip
        tally.evaluated[t] += evaluated
        tally.rechecked[t] += rechecked
        return engine.move(t, rows[t], 0, n_rows, tally.fresh[t])

    return step


def filtering(engine: CPU, before: NDArray, tally: Tally) -> Step:
    """Search from the roots whose first row, in the order of the curve, lies in the block."""
    tiles, b = engine.tiles, engine.bounds
    if not b.known:
        b.known = True
        labels_by_place(tiles.levels, tiles.order, engine.assigned, b.owner, b.held)
    centers, axes = engine.used.astype(np.float64), tuple(range(engine.n_features))
    rows = TILE * FAN ** (len(tiles.levels) - 1)

    def step(t: int, start: int, stop: int) -> int:
        changed, evaluated = search(
            axes, -(-start // rows), -(-stop // rows), tiles.levels,
            tiles.firsts, tiles.low, tiles.high, tiles.x,
            tiles.weights, tiles.sums, engine.n_samples, centers, b.owner, b.held,
            engine.lattice, engine.sums[t], engine.touched[t], engine.last,
        )  # fmt: skip
        tally.evaluated[t] += evaluated
        return changed

    engine.behind = True
    return step


STEPS = {
    "lloyd": lloyd,
    "hamerly": hamerly,
    "exponion": exponion,
    "elkan": elkan,
    "yinyang": yinyang,
    "filtering": filtering,
}
