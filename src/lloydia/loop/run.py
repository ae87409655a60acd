"""The one loop: (assign, update, stop?)*, then a last assignment to the centres it returns.

It never knows where it runs.  The order of the tests is scikit-learn's, so `n_iter` is too: labels
that did not change, then the stop rule, after the update in both cases.

A run is a generator, :func:`steps`, that halts wherever it would wait for its engine: one caller
waits with it (:func:`run_iterations`), another goes on with other runs
(:mod:`lloydia.loop.several_runs`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.engine import NEVER, Engine, Late, LateStop, Report
from lloydia.data.arrays import on_host
from lloydia.loop.empty import settle
from lloydia.progress.iterations import watchers
from lloydia.stopping import Rule, tolerance_of

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
    """What one run from one start gives.

    Attributes
    ----------
    labels : ndarray of shape (n,), int32, or None
        None in what was read from a file: they follow from the centres.
    centers : ndarray of shape (k, d)
    inertia : float
    n_iter : int
    converged : bool
        False when `max_iter` or a callback ended it.
    reason : str
        Why it stopped, for people.
    history : list of float
        The inertia of each iteration, before its update; empty unless asked for.
    algorithm : str
        The one used.
    full : bool
        Whether every cluster is known to have a row.
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
    """Where a run was left: all that its later iterations depend on, but for the data.

    The labels of an iteration are those of the centres it used, so to have them again it is done
    again; what follows from it are the same centres, or the data are others.

    Attributes
    ----------
    iteration : int
        The last one that was done, from 1.
    used : ndarray of shape (k, d)
        The centres that it assigned the rows to.
    centers : ndarray of shape (k, d)
        Those that followed.
    costs : list of float
        The inertia of each iteration up to it, where it was asked for.
    """

    iteration: int
    used: NDArray
    centers: NDArray
    costs: list[float]


class OtherDataError(ValueError):
    """A run cannot go on: these are not the rows and weights that it was begun with."""


# Gives what it waits for next, None for anything but a report, and at the end the result.
Run = Generator[LateStop | None, None, Result]


def run_iterations(engine: Engine, centers: NDArray, **options: Any) -> Result:
    """Run Lloyd's method, waiting where one has to wait; parameters are those of :func:`steps`."""
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
    """Run Lloyd's method (Lloyd 1982) from the given centres, halting before every wait.

    Parameters
    ----------
    engine : Engine
        Holds the data.
    centers : ndarray of shape (k, d)
    algorithm : str
        One of :data:`lloydia.algorithms.ALGORITHMS`: how distances are
        skipped; changes nothing else.
    rule : Rule
    max_iter : int
    empty : {"relocate", "keep", "error"}
    history : bool
        Whether to compute the inertia of every iteration.
    on_iteration : callable, optional
        Gets each report and whether it is the last; returning True stops the run.
    halt : Halt, optional
        Go on from there; `centers` are the ones it used then.

    Raises
    ------
    EmptyClusterError
        Where `empty` is ``"error"``.
    OtherDataError
        If `halt` is not of these data.
    """
    settles, costed = empty != "keep", history or rule.needs_inertia
    # The engine counts from its own start, so many iterations after the run's.
    before = halt.iteration - 1 if halt else 0
    watched = costed or halt is not None or on_iteration is not None
    engine.tolerance = NEVER if watched else tolerance_of(rule)
    engine.start(centers, algorithm, settles, max_iter - before)
    shown_to, costs = watchers(), list(halt.costs) if halt and costed else []
    queue = _Queue(
        engine,
        None if engine.tolerance == NEVER or shown_to else rule,
        costed,
        max_iter - before,
        # A callback may look at the centres of its iteration, and stop the run there.
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
            # None of the iterations that came ends the run.
            continue
        report, own, fixed, relocated = found, found.iteration, found.n_changed == 0, 0
        if report.n_empty and settles:
            queue.go_back(own)
            report, relocated = settle(engine, report._replace(iteration=before + own), empty)
        report = _noted(report, before + own, costs)
        reason = _reason(report, fixed, rule, max_iter)
        for watcher in shown_to:
            watcher(report._replace(max_iter=max_iter))
        if on_iteration is not None and on_iteration(report, bool(reason)) and not reason:
            reason = CALLBACK
    engine.rewind(own)
    return (yield from _ended(engine, report, reason, costs, assigned=fixed and not relocated))


class _Queue:
    """The reports of a run, in their order, while later iterations are on their way.

    Parameters
    ----------
    engine : Engine
    rule : Rule or None
        The stop rule, if the engine may skip the reports of iterations that do not end the run.
    costed : bool
        Whether to compute the inertia of every iteration.
    max_iter, lag : int
        How many iterations to queue in all, and before the first report.
    """

    __slots__ = "costed", "engine", "lag", "max_iter", "queued", "rule", "waiting"

    def __init__(
        self, engine: Engine, rule: Rule | None, costed: bool, max_iter: int, lag: int
    ) -> None:
        self.engine, self.rule, self.costed = engine, rule, costed
        self.max_iter, self.lag, self.queued = max_iter, lag, 0
        self.waiting: deque[Late] = deque()

    def next_report(self) -> LateStop:
        """Return the next report, late."""
        stop = None if self.rule is None else self.engine.next_stop(self.rule)
        if stop is not None:
            return stop
        while self.queued < self.max_iter and len(self.waiting) <= self.lag:
            self.waiting.append(self.engine.iterate(self.costed))
            self.queued += 1
        return self.waiting.popleft()

    def go_back(self, iteration: int) -> None:
        """Make the state after an iteration current; what is queued beyond is lost."""
        self.engine.rewind(iteration)
        self.waiting.clear()
        self.queued = iteration


def _noted(report: Report, iteration: int, costs: list[float]) -> Report:
    """Return a report with its number in the run, and the drop of the inertia, which is noted."""
    if iteration != report.iteration:
        report = report._replace(iteration=iteration)
    if (cost := report.inertia) is not None:
        report = report._replace(drop=costs[-1] - cost if costs else None)
        costs.append(cost)
    return report


def _ended(engine: Engine, report: Report, reason: str, costs: list[float], assigned: bool) -> Run:
    """End a run after the iteration of this report: assign the rows, unless they are `assigned`."""
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


def _again(engine: Engine, halt: Halt, empty: str) -> Generator[Late, None, None]:
    """Do the iteration that a run was left after once more."""
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
