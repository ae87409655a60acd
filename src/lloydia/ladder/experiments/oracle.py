"""What a result must be before its time counts.

Runs that round differently part after many iterations, and may end in another optimum: so each
contender's first iterations are compared strictly, and its end by what it was after, the inertia.
The oracle is Lloydia's CPU engine, whose every bit is tested against the definition.

With c' the centres that labels were assigned to and M the largest magnitude in X, a result of a few
iterations is right if every x is not farther from c'_label than from the nearest c' by more than
4 tau M, and every centre is the mean of its points within tau M; tau is 1e-12 in float64 and 1e-4
in float32, what the thesis T asks of its solvers.  T asks it of whole runs: so do its trials, as
:mod:`equality` has it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lloydia import KMeans, assign
from lloydia.stopping import Labels, Rule

if TYPE_CHECKING:
    from lloydia.ladder.rung import Outcome

__all__ = ["FEW", "TOLERANCE", "Oracle", "Trial"]

FEW = 3  # iterations that are compared strictly
TOLERANCE = {"float64": 1e-12, "float32": 1e-4}
OPTIMA = 0.02  # how far apart the inertias of two optima may be, relatively


@dataclass(frozen=True, eq=False)
class Trial:
    """A problem: what all contenders of one comparison get.

    Attributes
    ----------
    experiment, part, case : str
        As in :class:`lloydia.ladder.experiments.measurement.Measurement`.
    X : ndarray of shape (n, d)
    start : ndarray of shape (k, d)
        In the dtype of X.
    rule : Rule or None
        When to stop; None is a fixed number of iterations.
    max_iter : int
    tolerance : float or None
        Of a centre, in units of the largest magnitude in X; None takes `TOLERANCE`.
    whole : bool
        Whether all results must equal the oracle's to the end, where no tie decides.
    """

    experiment: str
    part: str
    X: NDArray
    start: NDArray
    rule: Rule | None
    max_iter: int
    case: str = ""
    tolerance: float | None = None
    whole: bool = False

    @cached_property
    def oracle(self) -> Oracle:
        """What its results must be."""
        return Oracle(self)


class Oracle:
    """Judges the results of one problem."""

    def __init__(self, trial: Trial) -> None:
        self.X, self.start = trial.X, trial.start
        self.rule, self.max_iter = trial.rule, trial.max_iter
        self._states: dict[int, tuple[NDArray, NDArray[np.int32]]] = {}
        self.largest = float(np.abs(self.X).max()) or 1.0
        self.tolerance = trial.tolerance or TOLERANCE[self.X.dtype.name]

    def at(self, iteration: int) -> tuple[NDArray, NDArray[np.int32]]:
        """Return the centres before an iteration, and the labels that it must find."""
        if iteration not in self._states:
            before = iteration - 1
            centers = self._fit(Labels(), before).cluster_centers_ if before else self.start
            self._states[iteration] = centers, assign(self.X, centers, device="cpu")[0]
        return self._states[iteration]

    @cached_property
    def end(self) -> KMeans:
        """The whole run."""
        return self._fit(self.rule or Labels(), self.max_iter)

    def strictly(self, outcome: Outcome, *, ahead: bool = False) -> tuple[dict[str, float], str]:
        """Judge a run of the first few iterations.

        Parameters
        ----------
        outcome : Outcome
        ahead : bool
            Whether its labels are already those of the next assignment, as scikit-learn's are.

        Returns
        -------
        figures : dict
            ``wrong``, the labels that are wrong, and ``error``, how far a centre is from the mean
            of its points in units of the largest magnitude.
        reason : str
            Why it is not right; empty if it is.
        """
        few = min(FEW, self.max_iter)
        wrong = self.wrong(outcome.labels, few + ahead)
        error = self._error(outcome.centers, self.at(few)[1] if ahead else outcome.labels)
        reason = ""
        if wrong:
            reason = f"{wrong:,} of {len(self.X):,} labels are wrong after {outcome.n_iter}"
        elif error > self.tolerance:
            reason = self.off(error)
        return {"wrong": wrong, "error": error}, reason

    @staticmethod
    def off(error: float) -> str:
        """Return the reason against centres that are not the means of their points."""
        return f"centres are off by {error:.1e} of the largest value in X"

    def ending(self, centers: NDArray) -> tuple[dict[str, float], str]:
        """Judge the centres of a whole run: figures with ``inertia_ratio``, and a reason."""
        found = assign(self.X, centers.astype(self.X.dtype, copy=False), device="cpu")[1]
        ratio = (
            found / self.end.inertia_ if self.end.inertia_ else float(found == 0) or float("inf")
        )
        near = abs(ratio - 1) <= OPTIMA
        reason = "" if near else f"its inertia is {ratio:.3f} of the oracle's"
        return {"inertia_ratio": ratio}, reason

    def _fit(self, rule: Rule, max_iter: int) -> KMeans:
        given = {"init": self.start, "n_init": 1, "max_iter": max_iter, "stop": rule}
        return KMeans(len(self.start), **given, device="cpu", empty="keep").fit(self.X)

    def wrong(self, labels: NDArray[np.int32], iteration: int) -> int:
        """Return how many labels of an iteration are wrong, but for ties within the tolerance."""
        centers, right = self.at(iteration)
        rows = np.flatnonzero(labels != right)
        X, at = self.X[rows].astype(np.float64), centers.astype(np.float64)
        own = np.linalg.norm(X - at[labels[rows]], axis=1)
        least = np.linalg.norm(X - at[right[rows]], axis=1)
        return int((own - least > 4 * self.tolerance * self.largest).sum())

    def _error(self, found: NDArray, labels: NDArray[np.int32]) -> float:
        k = len(found)
        counts = np.bincount(labels, minlength=k)
        some = counts > 0
        worst = 0.0
        for feature, centers in zip(self.X.T, found.T):
            sums = np.bincount(labels, weights=feature, minlength=k)
            means = sums[some] / counts[some]
            worst = max(worst, float(np.abs(centers[some] - means).max()))
        return worst / self.largest
