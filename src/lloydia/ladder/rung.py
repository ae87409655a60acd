"""What every rung of the ladder takes and gives, and how its system's stop rule is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.reports import Report
from lloydia.stopping import Centers, Either, Labels, Rule

__all__ = ["About", "Outcome", "Watch", "reads"]


@dataclass(frozen=True)
class About:
    """What a rung is; each has one, called ``ABOUT``.

    Attributes
    ----------
    title : str
        A few words.
    systems : str
        The letters of the written-up systems that have it: of T, A, B, C and D.
    where : {"cpu", "cuda"}
    solves : {"lloyd", "elkan", "hamerly"}
    features : int or None
        Of the data, where the source has but one number of them.
    uses : frozenset of str
        Which of ``threads`` and ``block`` make a difference.
    stop : Rule or None
        The source's own stop rule; None is a fixed number of iterations.
    """

    title: str
    systems: str
    where: Literal["cpu", "cuda"]
    solves: Literal["lloyd", "elkan", "hamerly"] = "lloyd"
    features: int | None = None
    uses: frozenset[str] = frozenset()
    stop: Rule | None = field(default_factory=Labels)


@dataclass(frozen=True)
class Outcome:
    """What a rung gives.

    Attributes
    ----------
    labels : ndarray of shape (n,), int32
        Of the last assignment: to the centres before the last update.
    centers : ndarray of shape (k, d)
        After the last update, in the dtype of X.
    n_iter : int
    seconds : float
        From when the data is in place to the end of the last iteration: neither upload nor download
        nor compilation.
    phases : mapping of str to float
        Seconds in ``upload``, ``kernels``, ``download`` and ``host``, where the rung tells them
        apart, or of each kernel by its name, if it was asked to.
    figures : mapping of str to float
        Other numbers of the run: the seconds of the shortest and the longest iteration, the bytes
        that an iteration copies, where the rung counts them.
    """

    labels: NDArray[np.int32]
    centers: NDArray
    n_iter: int
    seconds: float
    phases: Mapping[str, float] = field(default_factory=dict)
    figures: Mapping[str, float] = field(default_factory=dict)


class Watch:
    """Counts iterations and says when to stop: by the rule, and at `max_iter`.

    Parameters
    ----------
    rule : Rule or None
    max_iter : int
    n_samples : int

    Attributes
    ----------
    n_iter : int
        Iterations so far.
    needs_changes, needs_move, needs_inertia : bool
        Which arguments of :meth:`over` the rule reads.
    """

    def __init__(self, rule: Rule | None, max_iter: int, n_samples: int) -> None:
        self.rule, self.max_iter, self.n_samples = rule, max_iter, n_samples
        self.n_iter = 0
        self.needs_move = reads(rule, Centers)
        self.needs_inertia = rule is not None and rule.needs_inertia
        self.needs_changes = reads(rule, Labels)
        self.inertia: float | None = None

    def over(self, n_changed: int, move: float | None = None, inertia: float | None = None) -> bool:
        """Note the end of an iteration, and say whether it was the last.

        Parameters
        ----------
        n_changed : int
            Rows that changed their cluster.
        move : float
            Largest change of a coordinate of a centre.
        inertia : float
            The objective J: the sum of squared distances to the centres before the update.
        """
        self.n_iter += 1
        drop = None if self.inertia is None or inertia is None else self.inertia - inertia
        self.inertia = inertia
        told = float("inf") if move is None else move
        report = Report(
            self.n_iter, self.n_samples, n_changed, 0, float("inf"), told, inertia, drop
        )
        return self.n_iter >= self.max_iter or (self.rule is not None and self.rule(report))


def reads(rule: Rule | None, kind: type[Rule]) -> bool:
    """Return whether a rule is one of this kind, or has one in it."""
    if isinstance(rule, Either):
        return reads(rule.first, kind) or reads(rule.second, kind)
    return isinstance(rule, kind)
