"""Whether a whole run equals the oracle's, as the thesis T asks of its solvers.

Two runs from one start that round differently stay together until a point is as near to two centres
as their rounding errors.  Such a tie may be decided either way, and from there on the runs have
different centres.  So a run equals the oracle's if

- at its end all labels are the oracle's, and all centres within tau M of the oracle's; or
- it parts from it at a tie: before some iteration all labels are the same, and in that iteration
  the labels that differ are of points within 4 tau M of a tie.

That iteration is found by bisection, with a run for each step.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from lloydia.ladder.experiments.oracle import Oracle
from lloydia.ladder.rung import Outcome

__all__ = ["judge", "judge_few"]

Run = Callable[[int], Outcome]  # a run of so many iterations


def judge_few(oracle: Oracle, run: Run, few: int, *, ahead: bool) -> tuple[dict[str, float], str]:
    """Judge the first few iterations; arguments and results are those of :func:`judge`."""
    outcome = run(few)
    figures, reason = oracle.strictly(outcome, ahead=ahead)
    if not figures["wrong"]:
        return figures, reason
    more, reason = _parting(oracle, outcome.labels, few, run, ahead)
    if not reason and not ahead and figures["error"] > oracle.tolerance:
        reason = oracle.off(figures["error"])
    return (figures, reason) if reason else ({"wrong": 0, **more}, "")


def judge(
    oracle: Oracle, outcome: Outcome, run: Run | None, *, ahead: bool
) -> tuple[dict[str, float], str]:
    """Judge a whole run.

    Parameters
    ----------
    oracle : Oracle
    outcome : Outcome
        Of the whole run.
    run : callable or None
        Gives what the same contender has after so many iterations; None if that takes too long.
    ahead : bool
        Whether labels are already those of the next assignment, as scikit-learn's are.

    Returns
    -------
    figures : dict
        ``apart``, how far a centre is from the oracle's in units of the largest magnitude;
        ``relabelled``, the labels that are not the oracle's; and of a run that parts from it
        ``parted``, the iteration, and ``ties``, the labels that differ there.
    reason : str
        Why it is not right; empty if it is, or if it parts and there is no `run`.
    """
    end = oracle.end
    relabelled = int((outcome.labels != end.labels_).sum())
    apart = float(np.abs(outcome.centers - end.cluster_centers_).max()) / oracle.largest
    figures: dict[str, float] = {"apart": apart, "relabelled": relabelled}
    if (not relabelled and apart <= oracle.tolerance) or run is None:
        return figures, ""
    more, reason = _parting(oracle, outcome.labels, outcome.n_iter, run, ahead)
    return figures | more, reason


def _parting(
    oracle: Oracle, labels: NDArray[np.int32], last: int, run: Run, ahead: bool
) -> tuple[dict[str, float], str]:
    """Find an iteration whose labels are not the oracle's after one where they are, and judge it.

    `labels` are those of the iteration `last`.
    """
    alike, apart = 0, last
    while apart - alike > 1:
        middle = (alike + apart) // 2
        found = run(middle).labels
        if (found == oracle.at(middle + ahead)[1]).all():
            alike = middle
        else:
            apart, labels = middle, found
    iteration = apart + ahead
    wrong = oracle.wrong(labels, iteration)
    ties = int((labels != oracle.at(iteration)[1]).sum())
    if wrong:
        return {}, f"{wrong:,} of {len(labels):,} labels are wrong after {iteration}"
    if not ties:
        return {}, f"its end is not the oracle's, though no label differs after {iteration}"
    return {"parted": iteration, "ties": ties}, ""
