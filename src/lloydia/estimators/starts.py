"""Where runs start: centres that are given, called for, or drawn from the rows of an engine."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray

from lloydia.backends import one_gpu
from lloydia.backends.engine import Engine
from lloydia.backends.magnitudes import check_range
from lloydia.backends.weighted import WeightedRows
from lloydia.caller import warn_caller
from lloydia.estimators.rows import feature_labels
from lloydia.seeding import SEEDINGS
from lloydia.seeding.given import called, checked, fits

__all__ = ["drawn_for", "is_drawn", "seed", "starts_of"]


def is_drawn(init: Any) -> bool:
    """Return whether a start is made for each run, by a seeding or a callable."""
    return isinstance(init, str) or callable(init)


def starts_of(estimator: Any, rows: WeightedRows) -> tuple[Any, int]:
    """Return the start (a name, a callable or a checked array) and the number of runs.

    An array that lies on one GPU with the rows stays there, and the run checks it, if the estimator
    needs no copy of it.
    """
    init, n_init = estimator.init, estimator.n_init
    if n_init == "auto":
        several = callable(init) or (isinstance(init, str) and init == "random")
        n_init = estimator._several if several else 1
    if is_drawn(init):
        return init, n_init
    if n_init != 1:
        warn_caller(
            "Explicit initial center position passed: performing only one init in "
            f"{type(estimator).__name__} instead of n_init={n_init}.",
            RuntimeWarning,
        )
    free = rows.weights is None and not estimator._reads_start()
    if free and one_gpu(estimator.device, rows.X) and fits(init, rows.X, estimator.n_clusters):
        return init, 1
    return checked(init, rows.X, estimator.n_clusters, feature_labels(estimator)), 1


def seed(
    estimator: Any,
    engine: Engine,
    X: Any,
    weights: Any,
    init: Any,
    random_state: RandomState | None,
) -> NDArray:
    """Return the centres that a run starts from.

    Parameters
    ----------
    estimator : BaseKMeans
    engine : Engine
        It holds the rows of positive weight.
    X : array
        What a callable `init` gets: all rows, in the library of the caller's.
    weights : ndarray of shape (n,), float64, or None
        Those of the engine's rows.
    init : str, callable, or array of shape (k, d)
    random_state : RandomState or None
        None for an array.
    """
    began, drawn, k = time.perf_counter(), is_drawn(init), estimator.n_clusters
    if estimator.verbose and drawn:
        # Flush: choosing a start may take longer than all iterations.
        print(f"Initialization by {_name_of(init)}...", flush=True)
    if isinstance(init, str):
        assert random_state is not None
        centers = engine.rows(SEEDINGS[init](engine, k, random_state))
    elif callable(init):
        found = called(init, X, k, random_state)
        centers = checked(found, X, k, feature_labels(estimator))
        check_range(engine, weights, centers)
    else:
        centers = init
    if estimator.verbose:
        took = f" in {time.perf_counter() - began:.3g} s" if drawn else ""
        print(f"Initialization complete{took}")
    return centers


def drawn_for(init: Any, k: int, engine: Engine) -> Any:
    """Return some start for an engine, as :func:`seed` finds it there; it need not be the same."""
    if isinstance(init, str):
        return engine.rows(SEEDINGS[init](engine, k, RandomState(0)))
    return np.zeros((k, engine.n_features), dtype=engine.dtype) if callable(init) else init


def _name_of(init: Any) -> str:
    """Return the name of a start: the name of a seeding or of a callable."""
    return init if isinstance(init, str) else getattr(init, "__name__", type(init).__name__)
