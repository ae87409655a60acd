"""Where a fit stands, so that another process can go on from there, to the same bits.

A fit is a chain of runs, and a run a chain of iterations, each of which follows from the centres
before it and from the data.  So what is kept is small: of a run that can go on the centres that its
last iteration used and those that it made, of one that is over its result, and the state of the
random numbers.  A run that `max_iter` ended can go on if that is raised, so both are kept of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral, Real
from typing import Any, Protocol

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray

from lloydia.backends.engine import Engine, Report
from lloydia.data.arrays import on_host
from lloydia.loop.run import CALLBACK, LIMIT, Halt, OtherDataError, Result
from lloydia.seeding.generator import generator
from lloydia.stopping import Rule, parse, spell

__all__ = [
    "OtherParameterError",
    "Progress",
    "Snapshot",
    "estimator_parameters",
    "known_by",
    "stored",
    "stored_array",
    "stored_parameters",
]

# Parameters that change no bit of the result.
FREE = ("algorithm", "copy_x", "device", "n_threads", "verbose")

# What stands for a generator that the caller gave.
GENERATOR = "RandomState"

# The only kind of generator whose state a file keeps: that of all seeds.
MT = "MT19937"

# Rows that data are known by, besides their magnitudes.
SAMPLE = 16


# What numpy.random.RandomState.get_state() gives.
State = tuple[str, NDArray[np.uint32], int, int, float]


class OtherParameterError(ValueError):
    """A parameter is not what the fit was begun with, and it may change the result.

    Attributes
    ----------
    name : str
    value, before : number, text or None
        As they are stored.
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
    """All that the rest of a fit depends on, but for the data.

    Attributes
    ----------
    parameters : dict
        Of the estimator; numbers, texts and None.
    data : dict
        What the data can be known by; see :func:`known_by`.
    results : dict from int to Result
        Of the runs that are over, by their numbers, from 0; without labels.
    halts : dict from int to Halt
        Where a run stands that is not over, or would not be with a larger `max_iter`.
    random_state : tuple
        State of the generator that later starts are drawn from.
    init : ndarray of shape (k, d) or None
        The centres to start from, where the caller gave them.
    """

    parameters: dict[str, Any]
    data: dict[str, Any]
    results: dict[int, Result]
    halts: dict[int, Halt]
    random_state: State
    init: NDArray | None


def known_by(engine: Engine) -> dict[str, Any]:
    """Return what data can be known by: their shape and type, and a digest of some values.

    The digest is of the largest magnitude of each feature, the magnitudes of the weights and a few
    rows: the same on every engine.  That the centres follow from the rows is tested as well, where
    a run goes on.
    """
    magnitudes, n = engine.magnitudes(), engine.n_samples
    rows = np.linspace(0, n - 1, min(n, SAMPLE)).astype(np.int64)
    weights = np.array([magnitudes.largest_weight, magnitudes.smallest_weight])
    parts = (engine.rows(rows), np.asarray(magnitudes.largest, dtype=np.float64), weights)
    digest = hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in parts))
    return {
        "shape": [n, engine.n_features],
        "dtype": str(engine.dtype),
        "digest": digest.hexdigest(),
    }


def _check_data(given: dict[str, Any], before: dict[str, Any]) -> None:
    for name in ("shape", "dtype"):
        if given[name] != before[name]:
            own, first = (tuple(x) if name == "shape" else x for x in (given[name], before[name]))
            raise OtherDataError(
                f"The rows have the {name} {own}, and those of the interrupted fit had {first}: "
                "give the same rows and weights, or name another checkpoint."
            )
    if given["digest"] != before["digest"]:
        raise OtherDataError(
            "The rows or their weights have other values than those of the interrupted fit: give "
            "the same ones, in the same order."
        )


def stored_parameters(estimator: Any, init: Any) -> dict[str, Any]:
    """Return the parameters as numbers, texts and None, with this `init` for the estimator's.

    Raises
    ------
    ValueError
        Names the parameter that a file without pickle cannot hold.
    """
    parameters = {**estimator.get_params(deep=False), "init": init}
    # A connection is made anew.
    parameters.pop("client", None)
    return {name: stored(name, value) for name, value in parameters.items()}


def stored(name: str, value: Any) -> Any:
    """Return the number, the text or the None that stands for a parameter in a file.

    Raises
    ------
    ValueError
        A file without pickle cannot hold it.
    """
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    if isinstance(value, np.ndarray):
        return stored_array(value)
    if isinstance(value, Rule):
        return spell(value)
    if isinstance(value, RandomState) and value.get_state(legacy=False)["bit_generator"] == MT:
        return GENERATOR
    raise ValueError(
        f"A checkpoint cannot hold {name}={value!r}: give a number, a name or an array."
    )


def stored_array(value: NDArray) -> str:
    """Return the text that stands for an array among the parameters."""
    return f"array {hashlib.sha256(value.tobytes()).hexdigest()[:16]}"


def estimator_parameters(snapshot: Snapshot) -> dict[str, Any]:
    """Return what an estimator of the snapshot is made with."""
    parameters = dict(snapshot.parameters)
    if snapshot.init is not None:
        parameters["init"] = snapshot.init
    if parameters["stop"] is not None:
        parameters["stop"] = parse(parameters["stop"])
    if parameters["random_state"] == GENERATOR:
        parameters["random_state"] = RandomState()
    return parameters


class Keeper(Protocol):
    """What keeps where a fit stands; :class:`lloydia.callbacks.Checkpoint` keeps it in a file."""

    def due(self) -> bool:
        """Count an iteration; return whether it is time to keep it."""

    def write(self, snapshot: Snapshot) -> None:
        """Keep it."""


class Progress:
    """Where a fit stands.

    Parameters
    ----------
    estimator : KMeans
    engine : Engine
    init : str, ndarray of shape (k, d) or callable
        As it was checked.
    checkpoints : sequence of Keeper
        To be written.
    snapshot : Snapshot or None
        Where to go on from.

    Attributes
    ----------
    random_state : RandomState
    results : dict from int to Result
        Of the runs that are over.
    halts : dict from int to Halt
        Where runs go on from, unless they are new ones.

    Raises
    ------
    OtherDataError
        The snapshot is of other data.
    OtherParameterError
        A parameter is not what it was, and it may change the result.
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
        """What starts are drawn with; given ones draw nothing, and seeding it takes time."""
        return generator(self.estimator.random_state)

    @cached_property
    def parameters(self) -> dict[str, Any]:
        """Those of the estimator, as they are stored."""
        return stored_parameters(self.estimator, self.init)

    @cached_property
    def data(self) -> dict[str, Any]:
        """What the data can be known by."""
        return known_by(self.engine)

    def _go_on_from(self, snapshot: Snapshot) -> None:
        for name, value in self.parameters.items():
            before = snapshot.parameters[name]
            raised = name == "max_iter" and value > before
            if name not in FREE and value != before and not raised:
                raise OtherParameterError(name, value, before)
        _check_data(self.data, snapshot.data)
        if not isinstance(self.estimator.random_state, RandomState):
            # NumPy's global one stays as it is.
            self.random_state = RandomState()
        self.random_state.set_state(snapshot.random_state)
        self.results, self.halts = dict(snapshot.results), dict(snapshot.halts)

    def centers_so_far(self) -> Iterator[NDArray]:
        """Give all centres that come from the snapshot and that an engine may be given."""
        for halt in self.halts.values():
            yield halt.used
        for result in self.results.values():
            yield result.centers

    def left(self, n_runs: int) -> Iterator[int]:
        """Give the numbers of the runs that are to be made or to go on."""
        for number in range(n_runs):
            over = self.results.get(number)
            if over is None or (number in self.halts and over.n_iter < self.estimator.max_iter):
                yield number

    def begin_run(self, number: int, centers: NDArray) -> None:
        """Begin a run from these centres, or go on from where it was left."""
        halt = self.halts.get(number)
        # What the next iteration uses.
        self.used = halt.centers if halt else centers
        self.costs = list(halt.costs) if halt else []
        self.results.pop(number, None)

    def end_iteration(self, number: int, report: Report, last: bool) -> None:
        """Write the checkpoints that are due; those of a run's last iteration wait for its end."""
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
        """Keep a run's result; `stopped` says whether a callback ended the fit with it."""
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
        """Forget the labels of all runs but one."""
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
