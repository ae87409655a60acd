"""Reports of iterations: what the loop gets from an engine, at once or later."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

__all__ = ["DoneReport", "PendingReport", "PendingStop", "Report"]


class Report(NamedTuple):
    """What one iteration did.

    Attributes
    ----------
    iteration : int
        Number of the iteration, from 1.
    n_samples : int
        Rows of positive weight.
    n_changed : int
        Rows whose label differs from the iteration before (all of them in the first).
    n_empty : int
        Clusters of weight 0.
    shift : float
        Sum over centres of the squared distance moved.
    move : float
        Largest change of a single coordinate of any centre.
    inertia : float or None
        Weighted sum of squared distances to the centres *before* the update, if it is computed.
    drop : float or None
        Inertia of the iteration before minus this one's.  The loop sets it.
    max_iter : int
        Largest number of iterations of the run.  The loop sets it, for callbacks and progress.
    """

    iteration: int
    n_samples: int
    n_changed: int
    n_empty: int
    shift: float
    move: float
    inertia: float | None = None
    drop: float | None = None
    max_iter: int = 0


class PendingReport(Protocol):
    """The report of a queued iteration."""

    def begin(self) -> None:
        """Begin to compute the report, if the engine would compute it only in :meth:`result`."""

    def result(self) -> Report:
        """Wait for the report and return it."""


class PendingStop(Protocol):
    """The report of the next iteration that may end the run: see :meth:`Engine.next_stop`."""

    def begin(self) -> None:
        """Begin to compute the report, if the engine would compute it only in :meth:`result`."""

    def result(self) -> Report | None:
        """Wait once; return None if no iteration that was computed so far may end the run."""


@dataclass(frozen=True)
class DoneReport:
    """A report that is already computed."""

    report: Report

    def begin(self) -> None:
        """Do nothing."""

    def result(self) -> Report:
        """Return the report."""
        return self.report
