"""Exponion: rows that fail Hamerly's tests are scanned among the centres in a ball."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cpu.accelerated.exponion import REACH, group, scan_balls, worthwhile
from lloydia.backends.cpu.steps import AssignedRun, Step, Tally
from lloydia.backends.cpu.steps.drift import center_drift, half_gap_to_nearest
from lloydia.backends.cpu.steps.hamerly import Tests, hamerly_step
from lloydia.backends.cpu.steps.lloyd import lloyd
from lloydia.exact.certificate import error_terms

__all__ = ["exponion"]


def grouped(run: AssignedRun, tests: Tests) -> NDArray[np.int64]:
    """List the failing rows of the whole data by label."""
    n = run.dataset.n_samples
    listed = np.empty(n, dtype=np.int32 if n < 2**31 else np.int64)
    lengths: dict[int, int] = {}

    def task(t: int, start: int, stop: int) -> None:
        lengths[start] = tests.failing(t, start, stop, listed[start:stop])

    run.dataset.each_block(task, 5.0 + 0.2 * run.dataset.width)
    order = np.empty(sum(lengths.values()), dtype=np.int64)
    starts, sizes = (np.array(list(part)) for part in (lengths.keys(), lengths.values()))
    ends = np.zeros(len(run.used), dtype=np.int64)
    group(listed, starts, sizes, run.assigned, ends, order)
    return order


def exponion(run: AssignedRun, before: NDArray, tally: Tally) -> Step:
    """Scan the rows that fail Hamerly's tests among the centres in a ball."""
    half, b = half_gap_to_nearest(run), run.bounds
    if not b.move(center_drift(run, before), half, run.assigned):
        return lloyd(run, before, tally)
    tests = Tests(run, half, tally)
    columns, labels = np.ascontiguousarray(tests.scaled.T), run.assigned
    # CSR rows are scanned against all centres.
    balls = not (tests.first or run.dataset.sparse)
    if not (balls and worthwhile(columns, labels, b.upper, b.moved, tests.padding)):
        return hamerly_step(run, tests, tally)
    order = grouped(run, tests)
    n, m, unit = run.dataset.n_samples, len(order), b.padding.unit
    wide = run.used.astype(np.float64)
    # These terms hold for the largest scale that a ball may have.
    terms = error_terms(run.dataset.n_features, REACH, min(unit * 2.0**50, 2.0**1000))

    def step(t: int, start: int, stop: int) -> int:
        # The block's share of the list is its share of all rows.
        start, stop = start * m // n, stop * m // n
        fresh, left = tally.fresh[t], np.empty(stop - start, dtype=np.int64)
        n_left, n_distances, n_rechecked = scan_balls(
            run.dataset.X, order, start, stop, labels, wide, columns, tests.bounds, tests.totals,
            terms, tests.padding, fresh, left,
        )  # fmt: skip
        tally.evaluated[t] += n_distances
        tally.rechecked[t] += n_rechecked
        left = left[:n_left]
        others = np.empty(n_left, dtype=np.int32)
        tests.scan_and_bound(t, order[left], 0, n_left, others)
        fresh[left - start] = others
        return run.move(t, order, start, stop, fresh)

    return step
