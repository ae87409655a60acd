"""The loop of a run: (assign, update, test)*, then a last assignment to the final centres.

The loop is the same for every engine.  After each update it tests, in scikit-learn's order, whether
no label changed and whether the stop rule holds; so `n_iter` is scikit-learn's as well.

A run is a generator, :func:`steps`, that yields wherever it would wait for its engine.
:func:`run_iterations` waits at these points; :mod:`lloydia.loop.several_runs` works on other runs
instead.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.engine import NEVER, Engine
from lloydia.backends.reports import PendingReport, PendingStop, Report
from lloydia.backends.run_settings import RunSettings
from lloydia.data.arrays import on_host
from lloydia.loop.empty import settle
from lloydia.loop.tolerance import tolerance_of
from lloydia.progress.iterations import watchers
from lloydia.stopping import Rule

__all__ = [
    "CALLBACK",
    "LIMIT",
    "Halt",
    "OtherDataError",
    "Result",
    "Run",
    "run_iterations",
    "steps",
]

STRICT = "strict convergence"
CALLBACK = "stopped by a callback"
LIMIT = "max_iter reached"


class Result(NamedTuple):
    """The result of one run.

    Attributes
    ----------
    labels : ndarray of shape (n,), int32, or None
        None in a result that was read from a checkpoint; labels follow from the centres.
    centers : ndarray of shape (k, d)
    inertia : float
    n_iter : int
    converged : bool
        False if `max_iter` or a callback ended the run.
    reason : str
        Why the run ended, as a text for users.
    history : list of float
        The inertia of each iteration, before its update; empty unless it was requested.
    algorithm : str
        The algorithm of the last iteration.
    full : bool
        True if every cluster certainly has a row.
    """

    labels: NDArray[np.int32] | None
    centers: NDArray
    inertia: float
    n_iter: int
    converged: bool
    reason: str
    history: list[float]
    algorithm: str
    full: bool


@dataclass(frozen=True)
class Halt:
    """The state of an interrupted run: everything that later iterations depend on, except the data.

    Labels are not stored.  To restore them, the last iteration is repeated from the centres that it
    used.  If that gives other centres than the stored ones, the data have changed.

    Attributes
    ----------
    iteration : int
        The number of the last completed iteration, from 1.
    used : ndarray of shape (k, d)
        The centres to which that iteration assigned the rows.
    centers : ndarray of shape (k, d)
        The centres after that iteration.
    costs : list of float
        The inertia of each iteration so far; empty unless it was requested.
    """

    iteration: int
    used: NDArray
    centers: NDArray
    costs: list[float]


class OtherDataError(ValueError):
    """The error for a resumed fit whose rows or weights differ from the interrupted fit."""


# Yields the report that it waits for, or None if it waits for something else; returns the result.
Run = Generator[PendingStop | None, None, Result]


def run_iterations(engine: Engine, centers: NDArray, **options: Any) -> Result:
    """Run Lloyd's method to its end; the parameters are those of :func:`steps`."""
    run = steps(engine, centers, **options)
    while True:
        try:
            next(run)
        except StopIteration as end:
            return end.value


def steps(
    engine: Engine,
    centers: NDArray,
    *,
    algorithm: str,
    rule: Rule,
    max_iter: int,
    empty: str,
    history: bool = False,
    on_iteration: Callable[[Report, bool], bool] | None = None,
    halt: Halt | None = None,
) -> Run:
    """Run Lloyd's method (Lloyd 1982) from the given centres, yielding before every wait.

    Parameters
    ----------
    engine : Engine
        The engine that holds the rows.
    centers : ndarray of shape (k, d)
        The initial centres.
    algorithm : str
        One of :data:`lloydia.algorithms.ALGORITHMS`.  It decides which distances are skipped and
        never changes the result.
    rule : Rule
    max_iter : int
    empty : {"relocate", "keep", "error"}
    history : bool
        Whether to compute the inertia of every iteration.
    on_iteration : callable, optional
        It is called with each report and whether it is the last; returning True stops the run.
    halt : Halt, optional
        The state to continue from; `centers` must be its `used` centres.

    Raises
    ------
    EmptyClusterError
        If `empty` is ``"error"`` and a cluster loses all its rows.
    OtherDataError
        If `halt` does not belong to these data.
    """
    empty_stops, costed = empty != "keep", history or rule.needs_inertia
    # The engine counts iterations from its own start, which is this many later than the run's.
    before = halt.iteration - 1 if halt else 0
    watched = costed or halt is not None or on_iteration is not None
    engine.tolerance = NEVER if watched else tolerance_of(rule)
    engine.start_run(RunSettings(centers, algorithm, empty_stops, max_iter - before))
    shown_to, costs = watchers(), list(halt.costs) if halt and costed else []
    queue = _Queue(
        engine,
        None if engine.tolerance == NEVER or shown_to else rule,
        costed,
        max_iter - before,
        # No lag with a callback: it may read the centres of its iteration, and stop the run there.
        engine.lag if on_iteration is None else 0,
    )
    if halt:
        yield from _again(engine, halt, empty)
        queue.queued = 1
    reason = ""
    while not reason:
        late = queue.next_report()
        yield late
        found = late.result()
        if found is None:
            # None of the iterations finished so far ends the run.
            continue
        report, own, fixed, relocated = found, found.iteration, found.n_changed == 0, 0
        if report.n_empty and empty_stops:
            queue.go_back(own)
            report, relocated = settle(engine, report._replace(iteration=before + own), empty)
        if before or report.inertia is not None:
            report = _noted(report, before + own, costs)
        reason = _reason(report, fixed, rule, max_iter)
        for watcher in shown_to:
            watcher(report._replace(max_iter=max_iter))
        if on_iteration is not None and on_iteration(report, bool(reason)) and not reason:
            reason = CALLBACK
    engine.rewind(own)
    return (yield from _ended(engine, report, reason, costs, assigned=fixed and not relocated))


class _Queue:
    """The reports of a run, in order, while later iterations are already queued.

    Parameters
    ----------
    engine : Engine
    rule : Rule or None
        The stop rule, if the engine may skip the reports of iterations that do not end the run.
    costed : bool
        Whether to compute the inertia of every iteration.
    max_iter, lag : int
        The number of iterations to queue in all, and the number ahead of the next report.
    """

    __slots__ = "costed", "engine", "lag", "max_iter", "queued", "rule", "waiting"

    def __init__(
        self, engine: Engine, rule: Rule | None, costed: bool, max_iter: int, lag: int
    ) -> None:
        self.engine, self.rule, self.costed = engine, rule, costed
        self.max_iter, self.lag, self.queued = max_iter, lag, 0
        self.waiting: deque[PendingReport] = deque()

    def next_report(self) -> PendingStop:
        """Return the next report, which may still be under computation."""
        if self.rule is not None:
            if (stop := self.engine.next_stop(self.rule)) is not None:
                return stop
            self.rule = None
        while self.queued < self.max_iter and len(self.waiting) <= self.lag:
            self.waiting.append(self.engine.iterate(self.costed))
            self.queued += 1
        return self.waiting.popleft()

    def go_back(self, iteration: int) -> None:
        """Make the state after an iteration current, and discard the iterations queued after it."""
        self.engine.rewind(iteration)
        self.waiting.clear()
        self.queued = iteration


def _noted(report: Report, iteration: int, costs: list[float]) -> Report:
    """Return a report with its number in the run and its drop; append its inertia to `costs`."""
    report = report._replace(iteration=iteration)
    if (cost := report.inertia) is not None:
        report = report._replace(drop=costs[-1] - cost if costs else None)
        costs.append(cost)
    return report


def _ended(engine: Engine, report: Report, reason: str, costs: list[float], assigned: bool) -> Run:
    """End a run after the iteration of this report; assign the rows unless `assigned`."""
    if not assigned:
        engine.assign()
    inertia = engine.inertia()
    yield None
    return Result(
        engine.labels(),
        engine.centers(),
        float(inertia),
        report.iteration,
        reason not in (CALLBACK, LIMIT),
        reason,
        costs,
        engine.algorithm,
        report.n_empty == 0 if assigned else engine.full,
    )


def _again(engine: Engine, halt: Halt, empty: str) -> Generator[PendingReport, None, None]:
    """Repeat the last iteration of an interrupted run, and compare the centres."""
    late = engine.iterate(False)
    yield late
    report = late.result()
    if report.n_empty and empty != "keep":
        engine.rewind(report.iteration)
        settle(engine, report, empty)
    if on_host(engine.centers()).tobytes() != halt.centers.tobytes():
        raise OtherDataError(
            f"The centres after iteration {halt.iteration} do not follow from these rows and "
            "weights: give the same rows and weights as in the interrupted fit."
        )


def _reason(report: Report, fixed: bool, rule: Rule, max_iter: int) -> str:
    """Return why the run ends with this iteration, or an empty string."""
    ruled = rule(report)
    if fixed:
        return STRICT
    if ruled:
        return rule.reason(report)
    return LIMIT if report.iteration == max_iter else ""
