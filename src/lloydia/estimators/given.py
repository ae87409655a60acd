"""What a fit is given: rows, weights and starts, checked, and the engine that holds them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from lloydia.backends import on_plan
from lloydia.backends.engine import Engine
from lloydia.backends.weighted import WeightedRows
from lloydia.data.arrays import home_of
from lloydia.estimators.rows import check_rows, features_of
from lloydia.estimators.starts import is_drawn, starts_of

__all__ = ["Given"]


@dataclass(eq=False, slots=True)
class Given:
    """What a fit is given, checked.

    Attributes
    ----------
    draft : BaseKMeans
        The estimator without its result, with the features of X.
    rows : WeightedRows
    init : str, callable, or array of shape (k, d)
    drawn : bool
        Whether each run has a start of its own, by a seeding or a callable.
    n_init : int
        The number of runs.
    home : callable
        Brings arrays of the engine to the library and the device of X.
    features : dict
        The attributes that describe the features of X.
    """

    draft: Any
    rows: WeightedRows
    init: Any
    drawn: bool
    n_init: int
    home: Callable[[Any], Any]
    features: dict[str, Any]

    @classmethod
    def to(cls, estimator: Any, X: Any, sample_weight: Any) -> Given:
        """Check what the `fit` of an estimator is given, which stays as it is."""
        home, draft = home_of(X), estimator._draft()
        rows = WeightedRows.of(check_rows(X, draft), sample_weight)
        rows.refuse_few(estimator.n_clusters)
        init, n_init = starts_of(draft, rows)
        return cls(draft, rows, init, is_drawn(init), n_init, home, features_of(draft))

    def engine(self) -> Engine:
        """Choose the engine; refuse rows and given centres whose D could overflow.

        Rows that a start is drawn from are refused now, so that they consume no random numbers.
        """
        draft = self.draft
        with on_plan(print) if draft.verbose else nullcontext():
            return self.rows.engine(draft.device, draft.n_threads, self.init, not self.drawn)
