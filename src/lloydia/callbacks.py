"""The bridge to scikit-learn's callbacks (1.9 and later): progress bars, monitors, early stops.

A fit is a tree of tasks: the fit, its runs where there are several, and their iterations.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from lloydia.backends import Engine, Report

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9 has none

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing to support."""

    def with_callbacks(method: Callable) -> Callable:
        """Return the method as it is."""
        return method


__all__ = ["CallbackSupportMixin", "Tasks", "with_callbacks"]


class Tasks:
    """The tasks of one fit, and the hooks called as they begin and end.

    Parameters
    ----------
    estimator : estimator
    engine : Engine
        Its current centres are what a callback's `fitted_estimator` is made of.
    X : array
        Given to hooks that ask for it.
    n_runs, max_iter : int
    home : callable
        Brings the engine's arrays to the library and device of X.

    Attributes
    ----------
    active : bool
        Whether the user set any callback.
    """

    def __init__(
        self,
        estimator: Any,
        engine: Engine,
        X: Any,
        weights: Any,
        n_runs: int,
        max_iter: int,
        home: Callable[[Any], Any],
    ) -> None:
        self.estimator, self.engine, self.home = estimator, engine, home
        self.max_iter, self.n_runs = max_iter, n_runs
        metadata = None if weights is None else {"sample_weight": weights}
        self.data = {"estimator": estimator, "X": X, "metadata": metadata}
        self.open: list[Any] = []
        self.active = bool(getattr(estimator, "_skl_callbacks", ()))
        # A meta-estimator may have callbacks where the estimator itself has none.
        if self.active or hasattr(estimator, "_parent_callback_ctx"):
            context = estimator._init_callback_context(
                max_subtasks=n_runs if n_runs > 1 else max_iter
            )
            self._begin(context)

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

    def end_run(self) -> bool:
        """End a run; return whether a callback wants no further one."""
        return self._end() if self.active and self.n_runs > 1 else False

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
        return {"cluster_centers_": centers, "_n_features_out": len(centers)}
