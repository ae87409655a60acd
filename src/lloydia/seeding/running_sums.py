"""The running sums of equal numbers, as floating-point additions give them, without adding them.

S_1 = c and S_(m+1) = fl(S_m + c) in float64, for c > 0.  Let u be the distance of two neighbouring
numbers in the binade [2^e, 2^(e+1)) of S_m.  S_m is a multiple of u, and c = q u + r with an
integer q and 0 <= r < u.  As long as the sums stay in that binade, they are rounded to multiples of
u:

* if r < u/2, each addition adds q u; if r > u/2, each adds (q + 1) u;
* if r = u/2, the sum lies halfway between two multiples and goes to the even one.  It is even then.
  From an even multiple on, an addition adds q u if q is even, and (q + 1) u if it is odd, and gives
  an even multiple again.

So after one addition in a binade every further one adds the same number, and S_m is linear in m up
to the end of the binade.  The addition that leaves the binade is done in float64.  There are two
segments per binade: some 50 for ten million numbers.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["RunningSums"]


class RunningSums:
    """The running sums S_1 ... S_count of `count` numbers `term`, bit for bit those of np.cumsum.

    Parameters
    ----------
    term : float
        A positive normal number.
    count : int
        At least 1 and at most 2**52.
    """

    def __init__(self, term: float, count: int) -> None:
        starts, values, steps = [], [], []
        m, value, settled = 1, term, False
        while m <= count:
            end = math.ldexp(1.0, math.frexp(value)[1])
            step = value + term - value
            # Differences and quotients of multiples of u are exact.
            further = math.ceil((end - value) / step) - 1 if settled else 0
            starts.append(m)
            values.append(value)
            steps.append(step)
            m, last = m + further + 1, value + further * step
            value = last + term
            settled = value < end
        self.starts = np.array(starts)
        self.values = np.array(values)
        self.steps = np.array(steps)
        self.count = count

    def at(self, m: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return S_m for each of `m`, between 1 and `count`."""
        segment = np.searchsorted(self.starts, m, side="right") - 1
        # A multiple of u below the end of the binade: no operation is rounded.
        return self.values[segment] + (m - self.starts[segment]) * self.steps[segment]

    def first_above(self, fractions: NDArray[np.float64], count: int) -> NDArray[np.int64]:
        """Return for each fraction x in [0, 1) the least m with S_m / S_count > x, in float64."""
        total = self.at(np.array([count]))[0]
        aims = fractions * total
        segment = np.maximum(np.searchsorted(self.values, aims, side="right") - 1, 0)
        beyond = (aims - self.values[segment]) / self.steps[segment]
        m = np.clip(self.starts[segment] + beyond.astype(np.int64), 1, count)
        # The guess may be off by rounding; quotients do not decrease in m, and the last is 1.
        while True:
            low = self.at(m) / total <= fractions
            high = (m > 1) & (self.at(np.maximum(m - 1, 1)) / total > fractions)
            if not (low | high).any():
                return m
            m = m + low - high
