"""When to stop: rules that look at the report of an iteration.

A rule is combined with another by ``|``: the run stops as soon as either says so.  Whatever the
rule, a run ends when no row changed its cluster, and after `max_iter` iterations.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from lloydia.backends.engine import NEVER, Report
from lloydia.data.numbers import real_number
from lloydia.exact.sums import Magnitudes
from lloydia.spelling import meant

__all__ = [
    "Centers",
    "Either",
    "Inertia",
    "Labels",
    "Rule",
    "Shift",
    "Tolerance",
    "parse",
    "spell",
    "tolerance_of",
]


class Rule:
    """A stop rule: a callable that gets each iteration's report and says whether to stop.

    Attributes
    ----------
    needs_inertia : bool
        Whether the reports must hold the inertia, which costs a pass over the data.
    bound : float
        A shift above which the rule never stops a run; infinity if it goes by anything else.
    """

    needs_inertia = False
    bound = math.inf

    def __call__(self, report: Report) -> bool:
        """Return whether to stop after the iteration of this report."""
        raise TypeError(f"{type(self).__name__} is no stop rule: it does not define __call__.")

    def reason(self, report: Report) -> str:
        """Say, for people, why the run stopped with this report."""
        return f"{self!r}"

    def __or__(self, other: Rule) -> Either:
        if not isinstance(other, Rule):
            return NotImplemented
        return Either(self, other)


@dataclass(frozen=True)
class Either(Rule):
    """Stop when one of two rules does."""

    first: Rule
    second: Rule

    @property
    def needs_inertia(self) -> bool:  # type: ignore[override]
        """Whether one of them needs it."""
        return self.first.needs_inertia or self.second.needs_inertia

    def __call__(self, report: Report) -> bool:
        """Return whether to stop after the iteration of this report."""
        return self.first(report) or self.second(report)

    def reason(self, report: Report) -> str:
        """Give the reason of the one that said so."""
        return (self.first if self.first(report) else self.second).reason(report)


@dataclass(frozen=True)
class Labels(Rule):
    """Stop when at most this fraction of the rows of positive weight changed cluster.

    Parameters
    ----------
    fraction : float, default=0.0
        In [0, 1]; 0 is strict convergence.
    """

    fraction: float = 0.0

    def __post_init__(self) -> None:
        _check("Labels", "fraction", self.fraction, 1.0)

    def __call__(self, report: Report) -> bool:
        """Return whether to stop after the iteration of this report."""
        return report.n_changed <= self.fraction * report.n_samples


@dataclass(frozen=True)
class Inertia(Rule):
    """Stop when the inertia fell by less than `drop` since the iteration before.

    Parameters
    ----------
    drop : float
        In the units of the inertia (squared distance times weight).
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
        In the units of the data.
    """

    atol: float

    def __post_init__(self) -> None:
        _check("Centers", "atol", self.atol, math.inf)

    def __call__(self, report: Report) -> bool:
        """Return whether to stop after the iteration of this report."""
        return report.move <= self.atol


@dataclass(frozen=True)
class Shift(Rule):
    """scikit-learn's rule: the sum of the centres' squared movements is at most `limit`.

    Parameters
    ----------
    limit : float
        ``tol`` times the mean over features of the weighted variance of X.
    """

    limit: float

    @property
    def bound(self) -> float:  # type: ignore[override]
        """The limit itself."""
        return self.limit

    def __call__(self, report: Report) -> bool:
        """Return whether to stop after the iteration of this report."""
        return report.shift <= self.limit

    def reason(self, report: Report) -> str:
        """In scikit-learn's words."""
        return f"center shift {report.shift} within tolerance {self.limit}"


class Tolerance(Rule):
    """:class:`Shift`, whose limit is `tol` times the mean over features of the weighted variance.

    It is found when it is first needed: an engine that has iterated knows the sums of X already,
    and many a run ends before a shift comes near it.

    Parameters
    ----------
    tol : float
    mean_variance : callable
        Returns the mean over features of the weighted variance of X.
    magnitudes : callable
        Returns the :class:`~lloydia.exact.sums.Magnitudes` of X: no variance is above the
        square of the largest magnitude.
    """

    def __init__(
        self,
        tol: float,
        mean_variance: Callable[[], float],
        magnitudes: Callable[[], Magnitudes],
    ) -> None:
        # As everywhere, whatever type of number it came as.
        self.tol, self.mean_variance, self.magnitudes = float(tol), mean_variance, magnitudes

    @cached_property
    def most(self) -> float:
        """A bound on the limit, that covers its roundings and what underflows."""
        largest = self.magnitudes().largest
        return self.tol * (1.001 * float(largest @ largest) / len(largest) + 2.0**-1000)

    @cached_property
    def shift(self) -> Shift:
        """The rule with its limit."""
        return Shift(self.tol * self.mean_variance())

    @property
    def bound(self) -> float:  # type: ignore[override]
        """The limit, once it was found; until then a bound on it."""
        return self.shift.limit if "shift" in vars(self) else self.most

    def __call__(self, report: Report) -> bool:
        """Return whether to stop after the iteration of this report."""
        return report.shift == 0.0 or (report.shift <= self.most and self.shift(report))

    def reason(self, report: Report) -> str:
        """In scikit-learn's words."""
        return self.shift.reason(report)


def tolerance_of(rule: Rule) -> float:
    """Return the `tol` of a rule that stops by the mean variance alone, else NEVER."""
    if type(rule) is Tolerance:
        return rule.tol
    # No other limit is known to be one of the rows'.
    return 0.0 if type(rule) is Shift and rule.limit == 0.0 else NEVER


# What rules are called in text; each is made of one number.
SPELLED: dict[str, Callable[[float], Rule]] = {
    "labels": Labels,
    "inertia": Inertia,
    "centers": Centers,
}


def spell(rule: Rule) -> str:
    """Write a rule as the text that :func:`parse` reads.

    Raises
    ------
    ValueError
        If it is, or has in it, a rule that is none of those.
    """
    if isinstance(rule, Either):
        return f"{spell(rule.first)}|{spell(rule.second)}"
    for name, kind in SPELLED.items():
        if type(rule) is kind:
            (value,) = vars(rule).values()
            return f"{name}:{float(value)!r}"
    raise ValueError(f"{rule!r} is no rule that text could name: Labels, Inertia or Centers.")


def parse(text: str) -> Rule:
    """Read a rule from text: ``labels``, ``labels:0.001``, ``inertia:1e-6``, ``centers:5e-6``.

    Several are joined by ``|``.  :func:`spell` is the inverse.

    Raises
    ------
    ValueError
        If it is none of these.
    """
    result: Rule | None = None
    for part in text.split("|"):
        name, colon, value = part.strip().partition(":")
        if name in SPELLED and name != "labels" and not colon:
            raise ValueError(f"Bad stop rule {name!r}: it needs a number; write {name}:0.001.")
        if name not in SPELLED:
            raise ValueError(
                f"Unknown stop rule {part.strip()!r}: use labels, labels:FRACTION, inertia:DROP or "
                f"centers:ATOL, several joined by '|'{meant(name, SPELLED)}"
            )
        try:
            # spell() writes inf where there is no limit.
            number = math.inf if value == "inf" else real_number(value if colon else "0")
        except ValueError:
            raise ValueError(
                f"Bad stop rule {part.strip()!r}: {value!r} is not a number; write {name}:0.001."
            ) from None
        try:
            rule = SPELLED[name](number)
        except ValueError as error:
            raise ValueError(f"Bad stop rule {part.strip()!r}: {error}") from None
        result = rule if result is None else result | rule
    assert result is not None
    return result


def _check(rule: str, name: str, value: float, upper: float) -> None:
    if not hasattr(type(value), "__float__") or not 0 <= float(value) <= upper:
        raise ValueError(f"{rule}({name}={value!r}): {name} must be a number from 0 to {upper:g}.")
