"""The stop rules: what each asks of the report of an iteration."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lloydia.backends.reports import Report

__all__ = ["Centers", "Either", "Inertia", "Labels", "Rule", "Shift"]


class Rule:
    """The base class of stop rules.

    A rule of your own derives from this class and defines ``__call__``.

    Attributes
    ----------
    needs_inertia : bool
        Whether the rule needs ``report.inertia`` and ``report.drop``; each costs a pass over the
        rows per iteration.
    bound : float
        The rule never stops a run after an iteration whose ``report.shift`` is larger than this.
        Keep infinity unless the rule depends on ``report.shift`` alone.

    Notes
    -----
    The report of an iteration has these attributes:

    - ``iteration``: its number, from 1;
    - ``n_samples``: the number of rows of positive weight;
    - ``n_changed``: how many of these rows changed their cluster;
    - ``n_empty``: the number of clusters without such rows;
    - ``shift``: the sum over the centres of the squared distance moved;
    - ``move``: the largest change of a coordinate of any centre;
    - ``inertia``: the inertia before the centres moved, or None;
    - ``drop``: the inertia of the previous iteration minus this inertia, or None.

    Examples
    --------
    >>> from lloydia import KMeans
    >>> from lloydia.stopping import Rule
    >>> class After(Rule):
    ...     def __call__(self, report):
    ...         return report.iteration >= 2
    >>> X = [[0.0], [1.0], [2.0], [3.0], [10.0], [11.0]]
    >>> KMeans(2, init=[[0.0], [1.0]], stop=After()).fit(X).n_iter_
    2
    """

    needs_inertia = False
    bound = math.inf

    def __call__(self, report: Report) -> bool:
        """Return whether to stop the run after the iteration of this report.

        Parameters
        ----------
        report : Report
            What the iteration did; see :class:`Rule` for its attributes.

        Returns
        -------
        bool
        """
        raise TypeError(
            f"{type(self).__name__} is not a stop rule: define __call__(self, report) in it."
        )

    def reason(self, report: Report) -> str:
        """Return a text that says why the run stopped; it is printed with `verbose`.

        Parameters
        ----------
        report : Report
            The report of the last iteration.

        Returns
        -------
        str
        """
        return f"{self!r}"

    def __or__(self, other: Rule) -> Either:
        if not isinstance(other, Rule):
            return NotImplemented
        return Either(self, other)


@dataclass(frozen=True)
class Either(Rule):
    """Stop as soon as one of two rules returns True; ``a | b`` makes it.

    Parameters
    ----------
    first, second : Rule
        The two rules.

    Examples
    --------
    >>> from lloydia.stopping import Centers, Labels
    >>> Labels(0.001) | Centers(1e-6)
    Either(first=Labels(fraction=0.001), second=Centers(atol=1e-06))
    """

    first: Rule
    second: Rule

    @property
    def needs_inertia(self) -> bool:  # type: ignore[override]
        """Whether one of the two rules needs the inertia."""
        return self.first.needs_inertia or self.second.needs_inertia

    def __call__(self, report: Report) -> bool:
        """Return whether to stop after the iteration of this report."""
        return self.first(report) or self.second(report)

    def reason(self, report: Report) -> str:
        """Return the reason of the rule that stopped the run."""
        return (self.first if self.first(report) else self.second).reason(report)


@dataclass(frozen=True)
class Labels(Rule):
    """Stop when at most this fraction of the rows of positive weight changed their cluster.

    Parameters
    ----------
    fraction : float, default=0.0
        From 0 to 1.  With 0, the run stops when no row changed its cluster.

    Raises
    ------
    ValueError
        If `fraction` is not a number from 0 to 1.

    Examples
    --------
    >>> from lloydia import KMeans
    >>> from lloydia.stopping import Labels
    >>> X = [[0.0], [1.0], [2.0], [3.0], [10.0], [11.0]]
    >>> KMeans(2, init=[[0.0], [1.0]], stop=Labels(0.2)).fit(X).n_iter_
    3
    """

    fraction: float = 0.0

    def __post_init__(self) -> None:
        _check("Labels", "fraction", self.fraction, 1.0)

    def __call__(self, report: Report) -> bool:
        """Return whether to stop after the iteration of this report."""
        return report.n_changed <= self.fraction * report.n_samples


@dataclass(frozen=True)
class Inertia(Rule):
    """Stop when the inertia fell by less than `drop` since the previous iteration.

    The rule needs the inertia of every iteration, which costs a pass over the rows.

    Parameters
    ----------
    drop : float
        A number >= 0 in the units of the inertia (squared distance times weight).

    Raises
    ------
    ValueError
        If `drop` is not a number >= 0.

    Examples
    --------
    >>> from lloydia import KMeans
    >>> from lloydia.stopping import Inertia
    >>> X = [[0.0], [1.0], [2.0], [3.0], [10.0], [11.0]]
    >>> KMeans(2, init=[[0.0], [1.0]], stop=Inertia(drop=100)).fit(X).n_iter_
    3
    """

    drop: float
    needs_inertia = True

    def __post_init__(self) -> None:
        _check("Inertia", "drop", self.drop, math.inf)

    def __call__(self, report: Report) -> bool:
        """Return whether to stop after the iteration of this report."""
        return report.drop is not None and report.drop < self.drop


@dataclass(frozen=True)
class Centers(Rule):
    """Stop when no coordinate of any centre moved by more than `atol`.

    Parameters
    ----------
    atol : float
        A number >= 0 in the units of the data.

    Raises
    ------
    ValueError
        If `atol` is not a number >= 0.

    Examples
    --------
    >>> from lloydia import KMeans
    >>> from lloydia.stopping import Centers
    >>> X = [[0.0], [1.0], [2.0], [3.0], [10.0], [11.0]]
    >>> KMeans(2, init=[[0.0], [1.0]], stop=Centers(3.0)).fit(X).n_iter_
    2
    """

    atol: float

    def __post_init__(self) -> None:
        _check("Centers", "atol", self.atol, math.inf)

    def __call__(self, report: Report) -> bool:
        """Return whether to stop after the iteration of this report."""
        return report.move <= self.atol


@dataclass(frozen=True)
class Shift(Rule):
    """Stop when the sum of the centres' squared movements is at most `limit`.

    This is the rule of the parameter `tol`, with a limit of your own.

    Parameters
    ----------
    limit : float
        In the squared units of the data.  For `tol` it is ``tol`` times the mean over the features
        of the weighted variance of X.
    """

    limit: float

    @property
    def bound(self) -> float:  # type: ignore[override]
        """The same number as `limit`."""
        return self.limit

    def __call__(self, report: Report) -> bool:
        """Return whether to stop after the iteration of this report."""
        return report.shift <= self.limit

    def reason(self, report: Report) -> str:
        """Return the reason in scikit-learn's words."""
        return f"center shift {report.shift} within tolerance {self.limit}"


def _check(rule: str, name: str, value: float, upper: float) -> None:
    if not hasattr(type(value), "__float__") or not 0 <= float(value) <= upper:
        raise ValueError(f"{rule}({name}={value!r}): {name} must be a number from 0 to {upper:g}.")
