"""The stop rule of the parameter `tol`, whose limit is computed when it is first needed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from lloydia.backends.engine import NEVER
from lloydia.backends.reports import Report
from lloydia.exact.sums import Magnitudes
from lloydia.stopping import Rule, Shift

__all__ = ["Tolerance", "tolerance_of"]


class Tolerance(Rule):
    """:class:`Shift` with the limit `tol` times the mean over features of the weighted variance.

    The limit is computed when it is first needed.  After an iteration the engine already has the
    sums of X that the variance needs, and many runs end before a shift is small enough to be
    compared with the limit.

    Parameters
    ----------
    tol : float
    mean_variance : callable
        Returns the mean over features of the weighted variance of X.
    magnitudes : callable
        Returns the :class:`~lloydia.exact.sums.Magnitudes` of X.  No variance exceeds the square of
        the largest magnitude.
    """

    def __init__(
        self,
        tol: float,
        mean_variance: Callable[[], float],
        magnitudes: Callable[[], Magnitudes],
    ) -> None:
        # Convert any type of number to float64, as the contract defines tol.
        self.tol, self.mean_variance, self.magnitudes = float(tol), mean_variance, magnitudes

    @cached_property
    def most(self) -> float:
        """An upper bound on the limit that covers rounding and underflow."""
        largest = self.magnitudes().largest
        return self.tol * (1.001 * float(np.square(largest).mean()) + 2.0**-1000)

    @cached_property
    def shift(self) -> Shift:
        """The rule with the computed limit."""
        return Shift(self.tol * self.mean_variance())

    @property
    def bound(self) -> float:  # type: ignore[override]
        """The limit if it has been computed, otherwise an upper bound on it."""
        return self.shift.limit if "shift" in vars(self) else self.most

    def __call__(self, report: Report) -> bool:
        """Return whether to stop after the iteration of this report."""
        return report.shift == 0.0 or (report.shift <= self.most and self.shift(report))

    def reason(self, report: Report) -> str:
        """Return the reason in scikit-learn's words."""
        return self.shift.reason(report)


def tolerance_of(rule: Rule) -> float:
    """Return `tol` if the rule compares the shift with `tol` times the mean variance, or NEVER."""
    if type(rule) is Tolerance:
        return rule.tol
    # A limit of 0 is 0 times any variance; other limits of Shift do not depend on the rows.
    return 0.0 if type(rule) is Shift and rule.limit == 0.0 else NEVER
