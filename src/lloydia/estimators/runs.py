"""The runs of a fit: where each starts, who follows it, and which is the best."""

from __future__ import annotations

import time
from collections.abc import Iterable
from functools import partial
from typing import Any

from numpy.typing import NDArray

from lloydia.backends.engine import NEVER, Engine, ExpectedRun
from lloydia.backends.magnitudes import check_range
from lloydia.backends.reports import Report
from lloydia.callbacks import Tasks
from lloydia.caller import warn_caller
from lloydia.estimators.given import Given
from lloydia.estimators.starts import drawn_for, seed
from lloydia.loop.resuming import Progress
from lloydia.loop.run import CALLBACK, Result
from lloydia.loop.tolerance import tolerance_of
from lloydia.progress.stages import steps
from lloydia.spelling import option

__all__ = ["Runs"]


class Runs:
    """The runs of a fit, and what is printed, called back and stored of each.

    Parameters
    ----------
    estimator : KMeans
    given : Given
    engine : Engine

    Attributes
    ----------
    seconds_seeding : float
    """

    def __init__(self, estimator: Any, given: Given, engine: Engine) -> None:
        self.estimator, self.given, self.engine = estimator, given, engine
        self.rule = estimator._rule(engine)
        self.tasks = Tasks(
            estimator, engine, given.rows, given.n_init, estimator.max_iter, given.home,
            given.features,
        )  # fmt: skip
        self.progress = Progress(
            estimator, engine, given.init, self.tasks.checkpoints, estimator._left_off
        )
        for centers in self.progress.centers_so_far():
            check_range(engine, given.rows.weights, centers)
        self.seconds_seeding = 0.0

    def numbers(self) -> Iterable[int]:
        """Return the numbers of the runs that are to be made or to go on."""
        return steps("runs", list(self.progress.left(self.given.n_init)))

    def seed(self, number: int) -> NDArray:
        """Return the centres that a run starts from: a new start, or that of the checkpoint."""
        began, given, progress = time.perf_counter(), self.given, self.progress
        if self.estimator.verbose and given.n_init > 1:
            print(f"Run {number + 1} of {given.n_init}")
        if (halt := progress.halts.get(number)) is not None:
            centers = halt.used
        else:
            random_state = progress.random_state if given.drawn else None
            centers = seed(
                given.draft, self.engine, given.home(given.rows.every), given.rows.weights,
                given.init, random_state,
            )  # fmt: skip
        self.seconds_seeding += time.perf_counter() - began
        progress.begin_run(number, centers)
        self.tasks.begin_run()
        return centers

    def expected(self) -> ExpectedRun:
        """Return what the engine is going to be asked for in each run."""
        estimator, rule = self.estimator, self.rule
        costed = bool(estimator.verbose) or self.tasks.needs_inertia or rule.needs_inertia
        watched = costed or self.tasks.active or bool(self.progress.halts)
        return ExpectedRun(
            partial(drawn_for, self.given.init, estimator.n_clusters),
            NEVER if watched else tolerance_of(rule),
            costed,
            estimator.empty != "keep",
            estimator.max_iter,
        )

    def options(self, number: int) -> dict[str, Any]:
        """Return how a run goes: the options of :func:`lloydia.loop.run.run_iterations`."""
        estimator, tasks, progress = self.estimator, self.tasks, self.progress
        verbose = bool(estimator.verbose)

        def on_iteration(report: Report, last: bool) -> bool:
            if verbose:
                print(f"Iteration {report.iteration - 1}, inertia {report.inertia}.")
            stop = tasks.end_iteration(report, last)
            progress.end_iteration(number, report, last or stop)
            return stop

        return {
            "algorithm": _algorithm_of(estimator),
            "rule": self.rule,
            "max_iter": estimator.max_iter,
            "empty": estimator.empty,
            "history": verbose or tasks.needs_inertia,
            "on_iteration": on_iteration if verbose or tasks.active else None,
            "halt": progress.halts.get(number),
        }

    def end_run(self, number: int, result: Result) -> bool:
        """End a run; return whether a callback ended the fit with it."""
        if self.estimator.verbose:
            ended = "Converged" if result.converged else "Ended"
            print(f"{ended} at iteration {result.n_iter - 1}: {result.reason}.")
        stopped = self.tasks.end_run(result.reason == CALLBACK)
        self.progress.end_run(number, result, stopped)
        return stopped

    def best(self) -> Result:
        """Return the result of the best run, when all are over."""
        return self.progress.end()

    def end(self) -> None:
        """End the fit, whose result is kept."""
        self.tasks.end()


def _algorithm_of(estimator: Any) -> str:
    if estimator.algorithm == "elkan" and estimator.n_clusters == 1:
        warn_caller(
            f"{option('algorithm', 'elkan')} doesn't make sense for a single cluster. Using "
            "'lloyd' instead.",
            RuntimeWarning,
        )
        return "lloyd"
    return estimator.algorithm
