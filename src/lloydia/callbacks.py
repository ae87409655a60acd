"""The bridge to scikit-learn's callbacks (1.9 and later): progress bars, monitors, early stops.

A fit is a tree of tasks: the fit, its runs where there are several, and their iterations.

:class:`Checkpoint` is a callback that keeps where a fit stands in a file.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from copy import deepcopy
from functools import cached_property
from numbers import Real
from pathlib import Path
from typing import Any

from lloydia.backends.engine import Engine, Report
from lloydia.backends.weighted import WeightedRows
from lloydia.imports import load
from lloydia.loop.resuming import Snapshot, stored_parameters
from lloydia.parameters import InvalidParameterError, check_int

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9 has none

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing to support."""

    def with_callbacks(method: Callable) -> Callable:
        """Return the method as it is."""
        return method


__all__ = ["CallbackSupportMixin", "Checkpoint", "Tasks", "with_callbacks"]

# Seconds between checkpoints, where nothing else was asked for.
SECONDS = 60.0


class Checkpoint:
    """Keep where a fit stands in a file, so that another process can go on from there.

    The result of a fit that was killed at any moment and resumed has the bits of one without a
    break.  The file is replaced as a whole: whenever the process ends, what is there can be used.
    At the end of the fit it holds the result, and where runs stand that may go on:
    :meth:`lloydia.KMeans.resume` says when.

    Parameters
    ----------
    path : str or Path
        An .npz file; one that is there is overwritten.
    every : int, default=None
        Iterations between two checkpoints.
    seconds : float, default=None
        Time between two checkpoints, if that is over sooner.  60 where neither is given.

    Raises
    ------
    InvalidParameterError
        `path` is no name, or `every` or `seconds` not positive.

    Notes
    -----
    Of scikit-learn 1.9's callback protocol; for :class:`lloydia.KMeans` alone (pickle a
    :class:`lloydia.MiniBatchKMeans` between two batches).  The file holds centres and the state of
    the random numbers, at most 3 k rows a run, and no data.  Beside the writing it costs a copy of
    the centres an iteration.

    Examples
    --------
    >>> import numpy as np
    >>> from lloydia import KMeans
    >>> from lloydia.callbacks import Checkpoint
    >>> X = np.random.default_rng(0).normal(size=(1000, 2))
    >>> kmeans = KMeans(20, random_state=0)
    >>> kmeans.set_callbacks(Checkpoint("fit.npz", every=10)).fit(X)  # doctest: +SKIP
    >>> kmeans = KMeans.resume("fit.npz")  # in another process  # doctest: +SKIP
    >>> kmeans.set_callbacks(Checkpoint("fit.npz", every=10)).fit(X)  # doctest: +SKIP
    """

    # Of the reports: an iteration pays for none.
    needs_inertia = False

    def __init__(
        self, path: str | Path, every: int | None = None, seconds: float | None = None
    ) -> None:
        if every is not None:
            check_int("every", every, "None or ")
        if seconds is not None and not (isinstance(seconds, Real) and seconds > 0):
            raise InvalidParameterError(f"seconds={seconds!r} must be None or a number > 0.")
        if not isinstance(path, str | Path):
            raise InvalidParameterError(f"path={path!r} must be the name of an .npz file.")
        self.path, self.every, self.seconds = Path(path), every, seconds

    def setup(self, estimator: Any, context: Any) -> None:
        """Refuse what could not be written, before the fit.

        Raises
        ------
        DataError
            There can be no such file.
        TypeError
            It is not a :class:`lloydia.KMeans`.
        ValueError
            A parameter is one that a file without pickle cannot hold: a function, a rule or a
            generator of the caller's own.
        """
        if not hasattr(estimator, "resume"):
            raise TypeError(f"Checkpoint is for lloydia.KMeans, not {type(estimator).__name__}.")
        load("lloydia.data.outputs").check_output(self.path, (".npz",))
        init = estimator.init
        stored_parameters(estimator, init if callable(init) or isinstance(init, str) else None)
        self._begin()

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Do nothing."""

    def on_fit_task_end(self, estimator: Any, context: Any) -> None:
        """Do nothing: the fit itself knows what is to be written."""

    def teardown(self, estimator: Any, context: Any) -> None:
        """Do nothing."""

    def due(self) -> bool:
        """Count an iteration; return whether it is time to write."""
        self._iterations += 1
        if self.every is not None and self._iterations >= self.every:
            return True
        seconds = SECONDS if self.every is None and self.seconds is None else self.seconds
        return seconds is not None and time.monotonic() - self._written >= seconds

    def write(self, snapshot: Snapshot) -> None:
        """Replace the file."""
        load("lloydia.data.checkpoints").save_snapshot(snapshot, self.path)
        self._begin()

    def _begin(self) -> None:
        self._iterations, self._written = 0, time.monotonic()


class Tasks:
    """The tasks of one fit, and the hooks called as they begin and end.

    Parameters
    ----------
    estimator : estimator
    engine : Engine
        Its current centres are what a callback's `fitted_estimator` is made of.
    rows : WeightedRows
        Given to hooks that ask for them, with rows of weight 0.
    n_runs, max_iter : int
    home : callable
        Brings the engine's arrays to the library and device of X.
    features : dict
        The attributes that describe the features of X, for a callback's `fitted_estimator`.

    Attributes
    ----------
    active : bool
        Whether the user set any callback.
    needs_inertia : bool
        Whether any of them may look at the inertia.
    checkpoints : list of Checkpoint
    """

    def __init__(
        self,
        estimator: Any,
        engine: Engine,
        rows: WeightedRows,
        n_runs: int,
        max_iter: int,
        home: Callable[[Any], Any],
        features: dict[str, Any],
    ) -> None:
        self.estimator, self.engine, self.home = estimator, engine, home
        # scikit-learn copies the estimator, which may have names of features from an earlier fit.
        earlier = {"feature_names_in_": None} if hasattr(estimator, "feature_names_in_") else {}
        self.features = earlier | features
        self.max_iter, self.n_runs = max_iter, n_runs
        self.rows = rows
        self.open: list[Any] = []
        callbacks = getattr(estimator, "_skl_callbacks", ())
        self.active = bool(callbacks)
        self.needs_inertia = any(getattr(each, "needs_inertia", True) for each in callbacks)
        self.checkpoints = [each for each in callbacks if isinstance(each, Checkpoint)]
        # A meta-estimator may have callbacks where the estimator itself has none.
        if self.active or hasattr(estimator, "_parent_callback_ctx"):
            context = estimator._init_callback_context(
                max_subtasks=n_runs if n_runs > 1 else max_iter
            )
            self._begin(context)

    @cached_property
    def data(self) -> dict[str, Any]:
        """What hooks are given, if there are any."""
        weights = self.rows.every_weight
        metadata = None if weights is None else {"sample_weight": weights}
        return {"estimator": self.estimator, "X": self.home(self.rows.every), "metadata": metadata}

    def begin_run(self) -> None:
        """Begin a run and its first iteration."""
        if self.active:
            if self.n_runs > 1:
                self._begin(self.open[-1].subcontext("run", max_subtasks=self.max_iter))
            self._begin(self.open[-1].subcontext("iteration"))

    def end_iteration(self, report: Report, last: bool) -> bool:
        """End an iteration and begin the next; return whether a callback wants to stop."""
        if not self.active:
            return False
        stop = self._end()
        if not (stop or last):
            self._begin(self.open[-1].subcontext("iteration"))
        return stop

    def end_run(self, stopped: bool) -> bool:
        """End a run, which a callback may have stopped; return whether the fit is to end with it.

        A single run is the fit.
        """
        return self._end() if self.active and self.n_runs > 1 else stopped

    def end(self) -> None:
        """End the fit."""
        if self.open:
            self._end()

    def _begin(self, context: Any) -> None:
        self.open.append(context.call_on_fit_task_begin(**self.data))

    def _end(self) -> bool:
        return self.open.pop().call_on_fit_task_end(
            **self.data, reconstruction_attributes=self._attributes
        )

    def _attributes(self) -> dict[str, Any]:
        centers = self.home(deepcopy(self.engine.centers()))
        return {**self.features, "cluster_centers_": centers}
