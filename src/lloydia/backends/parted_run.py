"""A run over parts: what it asks of them, and the centres that follow from their sums."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.engine import ExpectedRun
from lloydia.backends.part import Step
from lloydia.backends.parted_rows import PartedRows
from lloydia.backends.reports import DoneReport, PendingReport, Report
from lloydia.backends.run_settings import RunSettings
from lloydia.exact import distance
from lloydia.exact.means import means

__all__ = ["HostRun", "PartedRun"]


class PartedRun(Protocol):
    """The state of a run over parts; see :class:`lloydia.backends.engine.Engine` for the methods.

    Attributes
    ----------
    lag : int
    """

    lag: int

    def expecting(self, run: ExpectedRun) -> AbstractContextManager[None]: ...
    def start(self, settings: RunSettings) -> None: ...
    def iterate(self, inertia: bool) -> PendingReport: ...
    def rewind(self, iteration: int) -> None: ...
    def empty_clusters(self) -> NDArray[np.int64]: ...
    def relocate(self, rows: NDArray[np.int64], clusters: NDArray[np.int64]) -> Report: ...
    def assign(self) -> None: ...
    def inertia(self) -> float: ...
    def centers(self) -> Any: ...

    def forget_inertia(self) -> None:
        """Know that rows were assigned to other centres."""

    def all_sums(self) -> NDArray[np.int64] | None:
        """Return the integers of all rows as one cluster, if the run has them on the host."""


class HostRun:
    """A run whose sums come to the host after every iteration.

    Parameters
    ----------
    rows : PartedRows

    Attributes
    ----------
    used : ndarray of shape (k, d)
        The centres of the last assignment; `current` are those that followed.
    latest : float or None
        The inertia of the last assignment.
    largest_cost : float or None
        Before that is known, the largest weight times D, if rows were measured.
    step : Step or None
        The last iteration, since the start.
    """

    lag = 0

    def __init__(self, rows: PartedRows) -> None:
        self.rows = rows
        self.iteration = 0
        self.step: Step | None = None
        self.latest: float | None = None
        self.largest_cost: float | None = None

    def expecting(self, run: ExpectedRun) -> AbstractContextManager[None]:
        return nullcontext()

    def start(self, settings: RunSettings) -> None:
        self.current = self.used = np.ascontiguousarray(settings.centers, dtype=self.rows.dtype)
        self.iteration, self.step = 0, None
        self.rows.group.each("start", settings._replace(centers=self.current))

    def iterate(self, inertia: bool) -> PendingReport:
        self.used = self.current
        self.step = step = self.rows.group.total("step", self.used, inertia)
        self.iteration += 1
        self.forget_inertia()
        if inertia:
            self.latest = self.rows.cost(step.largest_cost)
        return DoneReport(self._finish(step, step.sums))

    def _finish(self, step: Step, totals: NDArray[np.int64]) -> Report:
        """Compute the centres; those of empty clusters stay."""
        self.empty = (totals[:, :, -1] == 0).all(axis=0)
        found = means(totals, self.rows.grid, self.rows.dtype)
        self.current = np.where(self.empty[:, None], self.used, found)
        return Report(
            self.iteration,
            self.rows.n_samples,
            step.n_changed,
            int(self.empty.sum()),
            *distance.movement(self.used, self.current),
            self.latest,
        )

    def rewind(self, iteration: int) -> None:
        """Nothing is ever ahead here."""

    def empty_clusters(self) -> NDArray[np.int64]:
        return np.flatnonzero(self.empty)

    def relocate(self, rows: NDArray[np.int64], clusters: NDArray[np.int64]) -> Report:
        assert self.step is not None
        moved = self.rows.moved(rows, clusters, len(self.used))
        return self._finish(self.step, self.step.sums + moved)

    def assign(self) -> None:
        self.used, self.latest = self.current, None
        self.largest_cost = max(self.rows.group.each("conclude", self.used))

    def inertia(self) -> float:
        if self.latest is None:
            if self.largest_cost is None:
                self.largest_cost = max(self.rows.group.each("measure"))
            self.latest = self.rows.cost(self.largest_cost)
        return self.latest

    def centers(self) -> NDArray:
        return self.current

    def forget_inertia(self) -> None:
        self.latest = self.largest_cost = None

    def all_sums(self) -> NDArray[np.int64] | None:
        # After an iteration every row is in one of the clusters.
        return None if self.step is None else self.step.sums.sum(axis=1, keepdims=True)
