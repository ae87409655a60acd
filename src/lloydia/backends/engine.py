"""The protocol of engines: what the loop asks of the place where the data are.

An :class:`Engine` holds one data set where it is (in this process, on a device, in parts on other
machines) and the state of one run on it.  The loop, the seedings and the empty-cluster policies
never see rows or labels: they ask for integers, for scalars and for a few rows by number.

Two properties make every engine give the same bits; the first makes them compose, see
:mod:`lloydia.backends.parts`:

* What a part of the data contributes is integer (limbs of :mod:`lloydia.exact.sums`) or a minimum
  or maximum, so contributions merge in any order.  The grid follows from the magnitudes
  of all parts: :meth:`Engine.magnitudes` measures them, :meth:`Engine.set_grid` takes those of
  all.
* Scalars may arrive late.  :meth:`Engine.iterate` queues an iteration and returns something with
  ``result()``; the loop keeps up to :attr:`Engine.lag` of them in flight before it waits for the
  oldest.  An engine with a lag keeps the centres of that many iterations, and
  :meth:`Engine.rewind` makes one of them current; an iteration that follows one with empty
  clusters must change nothing until the loop has filled these (it rewinds first), unless the run
  was started with ``empty_stops=False``.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol, SupportsFloat

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.reports import PendingReport, PendingStop, Report
from lloydia.backends.run_settings import Starts
from lloydia.exact.sums import Magnitudes

__all__ = ["NEVER", "Abilities", "Engine", "ExpectedRun", "StopRule"]

# The tolerance of a run that ends for other reasons.
NEVER = -1.0


class StopRule(Protocol):
    """What an engine reads of a stop rule."""

    @property
    def bound(self) -> float:
        """A shift above which the rule never stops a run."""


@dataclass(frozen=True)
class ExpectedRun:
    """A run that an engine is about to make.

    Attributes
    ----------
    start : callable
        Returns the centres that the run starts from, of shape (k, d), given an engine.
    tolerance : float
        As of an engine.
    costed : bool
        Whether the inertia of each iteration is computed.
    empty_stops, max_iter
        As in :meth:`Engine.start`.
    """

    start: Callable[[Any], Any]
    tolerance: float
    costed: bool
    empty_stops: bool
    max_iter: int


class Abilities(Protocol):
    """What not every engine can do; the value that a method returns here says that it cannot."""

    def check_range_later(self) -> bool:
        """Have the run refuse rows whose D may overflow; return whether this engine can.

        The rows have no weights.  An engine that measures magnitudes during the run spares the
        caller the wait for them.
        """
        return False

    def seed_greedy(self, fractions: NDArray[np.float64]) -> NDArray[np.int64] | None:
        """Do what :func:`lloydia.seeding.plusplus.greedy` does, in one call; None if it cannot."""
        return None

    def seed_best(self, candidates: NDArray[np.int64]) -> int | None:
        """Return the place of the candidate with the lowest potential, the first one of equals.

        An engine that cannot tell without all the potentials returns None.
        """
        return None

    def seed_plusplus(
        self, first: NDArray[np.float64], fractions: NDArray[np.float64]
    ) -> NDArray[np.int64] | None:
        """Return the rows that the steps of :func:`lloydia.seeding.plusplus.plusplus` choose.

        They begin with ``seed_draw(first)``, and are fewer if D becomes 0.  Returns None if the
        engine cannot do it in one call; if it can, the seeding state is undefined afterwards.
        """
        return None

    def expecting(self, run: ExpectedRun) -> AbstractContextManager[None]:
        """Return a context in which the caller makes such a run, and its start.

        An engine that has kernels to compile compiles those of the whole run at once there.
        """
        return nullcontext()

    def next_stop(self, rule: StopRule) -> PendingStop | None:
        """Return the report, late, of the next iteration that may end the run; None if it cannot.

        The engine queues iterations by itself.  It skips the reports of iterations in which rows
        changed, the shift was above the rule's `bound`, and no cluster was empty that the loop
        would settle.  It always reports the last iteration of the run.  If the report's
        ``result()`` is None, call :meth:`next_stop` again: no call waits more than once.
        """
        return None


class Engine(Abilities, Starts, Protocol):
    """One data set in its place, and the state of a run on it.

    An engine inherits from this class, and from no other engine.

    Attributes
    ----------
    name : str
        ``"cpu"``, ``"cuda:0"``, ...
    n_samples, n_features : int
    dtype : numpy.dtype
        float32 or float64: the type of the centres.
    lag : int
        Iterations that may be queued before the loop waits for the first report.
    tolerance : float
        Set before a run is started, which ends where the shift is at most this many times
        :meth:`mean_variance`.  An engine may end it there by itself: what is queued
        beyond changes nothing, and :meth:`rewind` still finds the state after that iteration.
    algorithm : str
        That of the last assignment; of a run with ``"auto"``, the one that it ended with.
    n_distances, n_rechecked : int
        Point-centre distances (or scores) evaluated by assignments since the engine was made, and
        rows whose certificate failed.
    """

    name: str
    n_samples: int
    n_features: int
    dtype: np.dtype
    lag: int = 0
    tolerance: float = NEVER
    algorithm: str
    n_distances: int
    n_rechecked: int

    def magnitudes(self) -> Magnitudes:
        """Measure the data; parts merge."""

    def set_grid(self, magnitudes: Magnitudes) -> None:
        """Fix the grid of all sums from the magnitudes of the whole data set."""

    def mean_variance(self) -> float:
        """Return the mean over features of the weighted variance of the rows.

        It is the inertia of all rows as one cluster, divided by d times the sum of the weights
        (:func:`lloydia.exact.sums.total_weight`).  It may be asked for in a run, which it does not
        disturb.
        """

    def rows(self, indices: NDArray[np.int64]) -> NDArray:
        """Return copies of some rows, dense, on the host: shape (m, d).

        -0.0 becomes 0.0, which it is in a sparse matrix.
        """

    # -- seeding: the state is each row's D to the nearest centre so far ---------------------

    def seed_start(self) -> object:
        """Forget all centres: every row weighs its weight alone."""

    def seed_draw(self, fractions: NDArray[np.float64]) -> NDArray[np.int64]:
        """Pick rows with probability proportional to weight times D (to weight, at the start).

        A fraction u of [0, 1) picks the first row whose cumulative integer sum exceeds
        ``floor(u * total)``.  Returns -1 where the total is 0.
        """

    def seed_weights(self) -> NDArray[np.float64] | None:
        """Return every row's weight, on the host: shape (n,); None without weights."""

    def positive_rows(self, count: int) -> NDArray[np.int64]:
        """Return the first rows of positive weight, at most `count`."""

    def seed_farthest(self) -> int:
        """Return the row of positive weight with the largest D, the first of equals.

        Returns -1 where every such D is 0.
        """

    def seed_potentials(self, candidates: NDArray[np.int64]) -> list[int]:
        """Return what the total of weight times D would be with each candidate as a centre.

        There is at least one centre already.
        """

    def seed_add(self, row: int) -> None:
        """Make a row a centre; cheapest for one of the candidates of :meth:`seed_potentials`."""

    def seed_sample(self, key: int, factor: float) -> NDArray[np.int64]:
        """Choose rows, each on its own, with probability ``factor * weight * D / total``.

        Ascending; see :func:`lloydia.exact.counter.chosen`.
        """

    def seed_extend(self, rows: NDArray[np.int64]) -> None:
        """Make several rows centres, and remember which centre is nearest to each row.

        Ties go to the centre that was first; all centres come this way, or none.
        """

    def seed_loads(self) -> NDArray[np.int64]:
        """Return the integer sum of the weights of the rows nearest to each centre."""

    def subset(self, rows: NDArray[np.int64], weights: NDArray[np.float64]) -> Engine:
        """Return an engine of some of the rows, in ascending order, with other weights."""

    # -- a run -------------------------------------------------------------------------------

    def iterate(self, inertia: bool) -> PendingReport:
        """Queue an assignment and an update of the centres; empty clusters keep theirs."""

    def rewind(self, iteration: int) -> None:
        """Make the state after the given iteration current."""

    def empty_clusters(self) -> NDArray[np.int64]:
        """Return the clusters that had weight 0 in the current iteration, ascending."""

    def farthest(self, count: int) -> tuple[NDArray, NDArray, NDArray]:
        """Return (rows, D, labels) of rows of positive weight, largest D first, ties by row.

        D is to the centres before the update.  At most `count` rows, fewer if there are no more.
        """

    def counts(self) -> NDArray[np.int64]:
        """Return the number of rows of positive weight in each cluster."""

    def relocate(self, rows: NDArray[np.int64], clusters: NDArray[np.int64]) -> Report:
        """Compute the current iteration's centres again, with each row moved to that cluster.

        Only the means know of the move: labels stay as they were assigned.
        """

    def assign(self) -> None:
        """Assign every row to the current centres: the end of a run, no update follows."""

    @property
    def full(self) -> bool:
        """Whether every cluster is known to have a row after :meth:`assign`."""
        return False

    def inertia(self) -> SupportsFloat:
        """Return the weighted sum of D to the centres of the last assignment.

        What is not a float yet waits when it becomes one.
        """

    def labels(self) -> NDArray[np.int32]:
        """Return the labels of the last assignment, an ndarray or a tensor: shape (n,)."""

    def centers(self) -> NDArray:
        """Return the current centres: shape (k, d)."""

    # -- without a run -----------------------------------------------------------------------

    def classify(self, centers: NDArray) -> None:
        """Assign every row to the given centres."""

    def distances(self, centers: NDArray) -> NDArray:
        """Return the distance (not squared) of every row to every centre, in X's type."""
