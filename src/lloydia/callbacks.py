"""Support for scikit-learn's callbacks (1.9 and later): progress bars, monitors, early stops.

For callbacks, a fit is a tree of tasks: the fit, its runs (if there are several), and the
iterations of each run.

:class:`Checkpoint` is a callback that writes the state of a fit to a file.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from copy import deepcopy
from functools import cached_property
from numbers import Real
from pathlib import Path
from typing import Any

from lloydia.backends.engine import Engine
from lloydia.backends.reports import Report
from lloydia.backends.weighted import WeightedRows
from lloydia.imports import load
from lloydia.loop.resuming import Snapshot
from lloydia.loop.stored_parameters import stored_parameters
from lloydia.parameters import InvalidParameterError, check_int

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9 has none

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """An empty stand-in."""

    def with_callbacks(method: Callable) -> Callable:
        """Return the method unchanged."""
        return method


__all__ = ["CallbackSupportMixin", "Checkpoint", "Tasks", "with_callbacks"]

# Default time between two checkpoints, in seconds.
SECONDS = 60.0


class Checkpoint:
    """Write the state of a fit to a file, so that another process can continue the fit.

    A fit that was killed at any moment and resumed gives the same result as an uninterrupted fit.
    The file is always replaced as a whole, so it is valid whenever the process ends.  At the end of
    the fit it holds the result.  :meth:`lloydia.KMeans.resume` loads the file and says which fits
    continue.

    Parameters
    ----------
    path : str or Path
        Name of an .npz file; an existing file is overwritten.
    every : int, default=None
        Write a checkpoint after this number of iterations.
    seconds : float, default=None
        Write a checkpoint after this time in seconds.  If `every` is given too, whichever comes
        first counts.  If neither is given, the time is 60 seconds.

    Raises
    ------
    InvalidParameterError
        If `path` is neither a str nor a Path, or `every` or `seconds` is not positive.

    Notes
    -----
    Checkpoint is a callback of scikit-learn 1.9 and later, and works with :class:`lloydia.KMeans`
    only.  (Save or pickle a :class:`lloydia.MiniBatchKMeans` between two batches instead.)  The
    file holds at most ``3 * n_clusters`` centres per run and the state of the random generator; it
    holds no data.  Besides the writing, a checkpoint costs one copy of the centres per iteration.

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

    # A checkpoint does not need the inertia of iterations.
    needs_inertia = False

    def __init__(
        self, path: str | Path, every: int | None = None, seconds: float | None = None
    ) -> None:
        if every is not None:
            check_int("every", every, "None or ")
        if seconds is not None and not (isinstance(seconds, Real) and seconds > 0):
            raise InvalidParameterError(f"seconds={seconds!r} must be None or a number > 0.")
        if not isinstance(path, str | Path):
            raise InvalidParameterError(f"path={path!r} must be a str or a Path of an .npz file.")
        self.path, self.every, self.seconds = Path(path), every, seconds

    def setup(self, estimator: Any, context: Any) -> None:
        """Check before the fit that a checkpoint of this estimator can be written.

        Raises
        ------
        DataError
            If a file with this name cannot be written.
        TypeError
            If the estimator is not a :class:`lloydia.KMeans`.
        ValueError
            If a file without pickle cannot hold a parameter, such as a callable `init`, a stop rule
            of your own, or a random generator of another kind than MT19937.
        """
        if not hasattr(estimator, "resume"):
            raise TypeError(
                f"Checkpoint works with lloydia.KMeans only, not with {type(estimator).__name__}: "
                "pickle the estimator between two calls of partial_fit instead."
            )
        load("lloydia.data.outputs").check_output(self.path, (".npz",))
        init = estimator.init
        stored_parameters(estimator, init if callable(init) or isinstance(init, str) else None)
        self._begin()

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Do nothing."""

    def on_fit_task_end(self, estimator: Any, context: Any) -> None:
        """Do nothing: the fit itself calls :meth:`write`."""

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
        """Replace the file by this snapshot."""
        load("lloydia.data.checkpoints").save_snapshot(snapshot, self.path)
        self._begin()

    def _begin(self) -> None:
        self._iterations, self._written = 0, time.monotonic()


class Tasks:
    """The tasks of one fit; they call the callbacks' hooks as they begin and end.

    Parameters
    ----------
    estimator : estimator
    engine : Engine
        Its current centres become those of a callback's `fitted_estimator`.
    rows : WeightedRows
        All rows, with those of weight 0, for hooks that take X.
    n_runs, max_iter : int
    home : callable
        Converts the engine's arrays to the library and device of X.
    features : dict
        The attributes that describe the features of X, for a callback's `fitted_estimator`.

    Attributes
    ----------
    active : bool
        Whether the user set any callback.
    needs_inertia : bool
        Whether any callback may use the inertia.
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
        # scikit-learn copies the estimator, which may still have the feature names of an old fit.
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
        """The arguments of all hooks."""
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
        """End an iteration and begin the next; return whether a callback stops the run."""
        if not self.active:
            return False
        stop = self._end()
        if not (stop or last):
            self._begin(self.open[-1].subcontext("iteration"))
        return stop

    def end_run(self, stopped: bool) -> bool:
        """End a run and return whether a callback stops the fit.

        If there is a single run, stopping the run stops the fit.
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
