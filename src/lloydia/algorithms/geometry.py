"""What bounds on distances need to know of the centres, rounded the safe way.

**Unit.**  Bounds are float32 for any data.  They are in a unit of the run, a power of two that
brings the longest distance there can be to about ``2**60``: no square of a distance overflows
float32, and those below ``2**-110`` of the longest are all that underflow.

**Padding.**  Bounds are bounds on true distances.  A label is defined by canonical D, which differs
from the square of a true distance by :func:`lloydia.exact.distance.relative_error` and, below
``2**-500``, by underflow.  The paddings cover that and the roundings of float32, so that

    raised(u) < l   implies   D(x, a) < D(x, j)   canonically and strictly,

where u bounds the distance of x to centre a from above and l that to centre j from below.

**Differences.**  The distance of a row to one centre is taken in float32 as the root of a sum of
squared differences, ``y_f = (x_f - c_f) unit``, each formed in the type of X.  With ``u = 2**-24``
every ``y_f`` carries a relative error of at most u (float64 data: slightly more), its square twice
that and one rounding, and a sum of d such squares in any order ``d - 1`` more: ``(d + 2) u``, all
terms being non-negative; the root halves it and adds one.  A square that underflows is off by
``2**-126`` at most, which moves the root by at most ``sqrt(d) 2**-63`` in all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lloydia.exact.distance import relative_error

__all__ = ["Padding", "outgrown"]

# What brings data near 1 must itself be a number of X's type.
LARGEST_UNIT = {np.dtype(np.float32): 100, np.dtype(np.float64): 1000}


def outgrown(
    drift: NDArray | float, moved: NDArray | float, padding: Padding
) -> NDArray | np.bool_ | bool:
    """Return whether float32 sums of a bound and this drift hold too little of such a movement.

    That is so after a centre went to rows that are very far away; not where hardly anything moves.
    """
    return (drift * 2.0**-16 > moved) & (moved > 4.0 * padding.absolute)


@dataclass(frozen=True)
class Padding:
    """The unit of a run's bounds, and how far to move a computed bound so that it still is one.

    A value v, in the unit, becomes ``v * (1 + relative) + absolute`` as an upper bound and
    ``v * (1 - relative) - absolute``, at least 0, as a lower one.

    Attributes
    ----------
    unit : float
        Distances are multiplied by it.
    relative : float
        Covers eight roundings of float32 and the error of a canonical D.
    difference : float
        Covers, beside these, those of a distance that is a sum of squared differences.
    absolute : float
        Covers underflow: distances as small as that are never certain.
    """

    unit: float
    relative: float
    difference: float
    absolute: float

    @classmethod
    def of(cls, magnitudes: NDArray, dtype: np.dtype) -> Padding:
        """Return the padding for rows and centres of these largest magnitudes, shape (d,)."""
        d = len(magnitudes)
        # Twice the norm of the magnitudes; scaled, for their squares may overflow.
        top = float(magnitudes.max())
        norm = top * math.sqrt(np.square(magnitudes / top).sum()) if top > 0 else 1.0
        exponent = 59 - math.frexp(norm)[1]
        unit = math.ldexp(1.0, max(min(exponent, LARGEST_UNIT[np.dtype(dtype)]), -1000))
        relative = 2.0**-21 + 2 * relative_error(d)
        difference = relative + (d + 4) * 2.0**-25
        # Beyond the longest distance it need not grow.
        absolute = math.sqrt(d) * 2.0**-60 + min(unit * 2.0**-500, 2.0**64)
        return cls(unit, relative, difference, absolute)

    def as_tuple(self) -> tuple[float, float, float, float]:
        """Return the four numbers, for kernels."""
        return self.unit, self.relative, self.difference, self.absolute

    def raised(self, value: NDArray | float) -> NDArray | float:
        """Return an upper bound from a computed value."""
        return value * (1.0 + self.relative) + self.absolute

    def lowered(self, value: NDArray | float) -> NDArray | float:
        """Return a lower bound from a computed value."""
        return np.maximum(value * (1.0 - self.relative) - self.absolute, 0.0)
