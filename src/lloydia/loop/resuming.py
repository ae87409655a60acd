"""The state of a fit, with which another process can continue to the same result.

A fit is a sequence of runs, and a run is a sequence of iterations, each of which depends only on
the data and on the centres before it.  So the state is small.  It holds the state of the random
generator, the result of each complete run, and for each run that can continue, the centres that its
last iteration used and the centres after it.  A run that ended at `max_iter` is complete and can
continue with a larger `max_iter`, so both are stored for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray

from lloydia.backends.engine import Engine
from lloydia.backends.reports import Report
from lloydia.data.arrays import on_host
from lloydia.loop.data_identity import check_data, known_by
from lloydia.loop.run import CALLBACK, LIMIT, Halt, OtherDataError, Result
from lloydia.loop.stored_parameters import GENERATOR, State, stored_parameters
from lloydia.seeding.generator import generator
from lloydia.stopping import parse

__all__ = ["OtherParameterError", "Progress", "Snapshot", "estimator_parameters"]

# Parameters that never change the result.
FREE = ("algorithm", "copy_x", "device", "n_threads", "verbose")


class OtherParameterError(ValueError):
    """The error for a resumed fit with another value of a parameter that can change the result.

    Attributes
    ----------
    name : str
        The parameter.
    value, before : number, text or None
        The values now and in the interrupted fit, as they are stored.
    """

    def __init__(self, name: str, value: Any, before: Any) -> None:
        super().__init__(name, value, before)
        self.name, self.value, self.before = name, value, before

    def __str__(self) -> str:
        return (
            f"{self.name}={self.value!r} differs from the interrupted fit "
            f"({self.name}={self.before!r}): a resumed fit may change only {', '.join(FREE)}, and "
            "raise max_iter."
        )


@dataclass(frozen=True)
class Snapshot:
    """Everything that the rest of a fit depends on, except the data.

    Attributes
    ----------
    parameters : dict
        The parameters of the estimator as numbers, texts and None.
    data : dict
        Shape, type and digest of the data; see :func:`known_by`.
    results : dict from int to Result
        The results of complete runs, without labels, by the number of the run, from 0.
    halts : dict from int to Halt
        The states of runs that are incomplete, or that would continue with a larger `max_iter`.
    random_state : tuple
        The state of the generator from which later starts are drawn.
    init : ndarray of shape (k, d) or None
        The initial centres, if the caller gave an array.
    """

    parameters: dict[str, Any]
    data: dict[str, Any]
    results: dict[int, Result]
    halts: dict[int, Halt]
    random_state: State
    init: NDArray | None


def estimator_parameters(snapshot: Snapshot) -> dict[str, Any]:
    """Return the parameters of the estimator of a snapshot."""
    parameters = dict(snapshot.parameters)
    if snapshot.init is not None:
        parameters["init"] = snapshot.init
    if parameters["stop"] is not None:
        parameters["stop"] = parse(parameters["stop"])
    if parameters["random_state"] == GENERATOR:
        parameters["random_state"] = RandomState()
    return parameters


class Keeper(Protocol):
    """An object that stores snapshots; :class:`lloydia.callbacks.Checkpoint` writes a file."""

    def due(self) -> bool:
        """Count an iteration; return whether it is time for a snapshot."""

    def write(self, snapshot: Snapshot) -> None:
        """Store a snapshot in place of the previous one."""


class Progress:
    """The progress of a fit: its results so far, and the checkpoints to write.

    Parameters
    ----------
    estimator : KMeans
    engine : Engine
    init : str, ndarray of shape (k, d) or callable
        The checked `init`.
    checkpoints : sequence of Keeper
        The checkpoints to write.
    snapshot : Snapshot or None
        The state to continue from.

    Attributes
    ----------
    random_state : RandomState
    results : dict from int to Result
        The results of complete runs.
    halts : dict from int to Halt
        The states from which runs continue.

    Raises
    ------
    OtherDataError
        If the snapshot belongs to other data.
    OtherParameterError
        If a parameter that can change the result differs from the snapshot.
    """

    def __init__(
        self,
        estimator: Any,
        engine: Engine,
        init: Any,
        checkpoints: Sequence[Keeper],
        snapshot: Snapshot | None,
    ) -> None:
        self.estimator, self.engine, self.init = estimator, engine, init
        self.checkpoints = checkpoints
        self.results: dict[int, Result] = {}
        self.halts: dict[int, Halt] = {}
        if snapshot is not None:
            self._go_on_from(snapshot)

    @cached_property
    def random_state(self) -> RandomState:
        """The generator of starts, made at the first use, because seeding it takes time."""
        return generator(self.estimator.random_state)

    @cached_property
    def parameters(self) -> dict[str, Any]:
        """The parameters of the estimator as they are stored."""
        return stored_parameters(self.estimator, self.init)

    @cached_property
    def data(self) -> dict[str, Any]:
        """What identifies the data; see :func:`known_by`."""
        return known_by(self.engine)

    def _go_on_from(self, snapshot: Snapshot) -> None:
        for name, value in self.parameters.items():
            before = snapshot.parameters[name]
            raised = name == "max_iter" and value > before
            if name not in FREE and value != before and not raised:
                raise OtherParameterError(name, value, before)
        check_data(self.data, snapshot.data)
        if not isinstance(self.estimator.random_state, RandomState):
            # Do not change the state of NumPy's global generator.
            self.random_state = RandomState()
        self.random_state.set_state(snapshot.random_state)
        self.results, self.halts = dict(snapshot.results), dict(snapshot.halts)

    def centers_so_far(self) -> Iterator[NDArray]:
        """Yield all centres of the snapshot that an engine may receive."""
        for halt in self.halts.values():
            yield halt.used
        for result in self.results.values():
            yield result.centers

    def left(self, n_runs: int) -> Iterator[int]:
        """Yield the numbers of the runs that are new or continue."""
        for number in range(n_runs):
            over = self.results.get(number)
            if over is None or (number in self.halts and over.n_iter < self.estimator.max_iter):
                yield number

    def begin_run(self, number: int, centers: NDArray) -> None:
        """Begin a run from these centres, or continue it from its stored state."""
        halt = self.halts.get(number)
        # The centres that the next iteration uses.
        self.used = halt.centers if halt else centers
        self.costs = list(halt.costs) if halt else []
        self.results.pop(number, None)

    def end_iteration(self, number: int, report: Report, last: bool) -> None:
        """Write the checkpoints that are due, except after a run's last iteration."""
        if not self.checkpoints:
            return
        if report.inertia is not None:
            self.costs.append(report.inertia)
        centers = on_host(deepcopy(self.engine.centers()))
        self.halts[number] = Halt(report.iteration, self.used, centers, self.costs)
        if not last:
            self._write()
        self.used = centers

    def end_run(self, number: int, result: Result, stopped: bool) -> None:
        """Store a run's result; `stopped` is True if a callback ended the whole fit."""
        if not (result.reason == LIMIT or (stopped and result.reason == CALLBACK)):
            self.halts.pop(number, None)
        self.results[number] = result
        if len(self.results) > 1:
            self._keep_labels(self._best())
        if self.checkpoints:
            self._write()

    def end(self) -> Result:
        """End the fit; return the best run's result."""
        for checkpoint in self.checkpoints:
            checkpoint.write(self._snapshot())
        number = self._best()
        best = self.results[number]
        if best.labels is not None:
            return best
        self.engine.classify(best.centers)
        if float(self.engine.inertia()) != best.inertia:
            raise OtherDataError(
                f"The best run had the inertia {best.inertia}, and these rows and weights have "
                "another: give the same rows and weights as in the interrupted fit."
            )
        return best._replace(labels=self.engine.labels())

    def _best(self) -> int:
        """Return the number of the run with the least inertia, the first on a tie."""
        results = self.results
        if len(results) == 1:
            return next(iter(results))
        return min(sorted(results), key=lambda number: results[number].inertia)

    def _keep_labels(self, best: int) -> None:
        """Drop the labels of all runs except the best."""
        for number, result in self.results.items():
            if number != best and result.labels is not None:
                self.results[number] = result._replace(labels=None)

    def _write(self) -> None:
        for checkpoint in self.checkpoints:
            if checkpoint.due():
                checkpoint.write(self._snapshot())

    def _snapshot(self) -> Snapshot:
        results = {
            number: result._replace(labels=None, centers=on_host(result.centers))
            for number, result in self.results.items()
        }
        state: Any = self.random_state.get_state()
        init = self.init if isinstance(self.init, np.ndarray) else None
        return Snapshot(self.parameters, self.data, results, dict(self.halts), state, init)
