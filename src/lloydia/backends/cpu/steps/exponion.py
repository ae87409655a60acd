"""Exponion: rows that fail Hamerly's tests are scanned among the centres in a ball."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cpu.accelerated.exponion import REACH, group, scan_balls, worthwhile
from lloydia.backends.cpu.steps import AssignedRows, Step, Tally
from lloydia.backends.cpu.steps.hamerly import Tests, hamerly_step
from lloydia.backends.cpu.steps.lloyd import lloyd
from lloydia.backends.cpu.steps.moves import half_nearest, moves
from lloydia.exact.certificate import error_terms

__all__ = ["exponion"]


def grouped(engine: AssignedRows, tests: Tests) -> NDArray[np.int64]:
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


def exponion(engine: AssignedRows, before: NDArray, tally: Tally) -> Step:
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
