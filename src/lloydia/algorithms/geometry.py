"""Units and paddings of bounds on distances, so that rounded bounds remain bounds.

**Unit.**  Bounds are float32 for any data.  Their unit is a power of two that scales the longest
possible distance of the run to about ``2**60``.  So no square of a distance overflows float32, and
only distances below ``2**-110`` of the longest one underflow.

**Padding.**  Bounds are bounds on true distances.  A label is defined by canonical D, which differs
from the square of a true distance by :func:`lloydia.exact.distance.relative_error` and, below
``2**-500``, by underflow.  The paddings cover this error and the roundings of float32, so that

    upper_bound(u) < l   implies   D(x, a) < D(x, j)   canonically and strictly,

where u is an upper bound on the distance of x to centre a, and l a lower bound on that to centre j.

**Differences.**  The distance of a row to one centre is computed in float32 as the root of a sum of
squares of differences ``y_f = (x_f - c_f) unit``, each computed in the type of X.  With
``u = 2**-24``, each ``y_f`` has a relative error of at most u (slightly more for float64 data).
Its square has twice that error and one rounding, and a sum of d such non-negative squares in any
order has ``d - 1`` more roundings, ``(d + 2) u`` in all.  The root halves the error and adds one
rounding.  A square that underflows is off by at most ``2**-126``, which changes the root by at most
``sqrt(d) 2**-63`` in all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lloydia.exact.distance import relative_error

__all__ = ["Padding", "outgrown"]

# The unit must be a number of X's type.
LARGEST_UNIT = {np.dtype(np.float32): 100, np.dtype(np.float64): 1000}


def outgrown(
    drift: NDArray | float, moved: NDArray | float, padding: Padding
) -> NDArray | np.bool_ | bool:
    """Return whether a float32 sum of a bound and this drift would lose such a movement.

    This happens after a centre moved to rows that are very far away.  The result is False if the
    movement is negligible.
    """
    return (drift * 2.0**-16 > moved) & (moved > 4.0 * padding.absolute)


@dataclass(frozen=True)
class Padding:
    """The unit of a run's bounds, and the margins that keep a computed bound valid.

    A computed value v, in the unit, gives the upper bound ``v * (1 + relative) + absolute`` and the
    lower bound ``max(v * (1 - relative) - absolute, 0)``.

    Attributes
    ----------
    unit : float
        Distances are multiplied by it.
    relative : float
        It covers eight roundings of float32 and the error of a canonical D.
    difference : float
        It covers, in addition, the roundings of a distance that is a sum of squared differences.
    absolute : float
        It covers underflow: distances as small as this decide nothing.
    """

    unit: float
    relative: float
    difference: float
    absolute: float

    @classmethod
    def of(cls, magnitudes: NDArray, dtype: np.dtype) -> Padding:
        """Return the padding for rows and centres of at most these magnitudes, shape (d,)."""
        d = len(magnitudes)
        # No distance exceeds twice this norm.  It is scaled, because the squares may overflow.
        top = float(magnitudes.max())
        norm = top * math.sqrt(np.square(magnitudes / top).sum()) if top > 0 else 1.0
        exponent = 59 - math.frexp(norm)[1]
        unit = math.ldexp(1.0, max(min(exponent, LARGEST_UNIT[np.dtype(dtype)]), -1000))
        relative = 2.0**-21 + 2 * relative_error(d)
        difference = relative + (d + 4) * 2.0**-25
        # It need not exceed the longest distance.
        absolute = math.sqrt(d) * 2.0**-60 + min(unit * 2.0**-500, 2.0**64)
        return cls(unit, relative, difference, absolute)

    def as_tuple(self) -> tuple[float, float, float, float]:
        """Return the four numbers, for kernels."""
        return self.unit, self.relative, self.difference, self.absolute

    def upper_bound(self, value: NDArray | float) -> NDArray | float:
        """Return an upper bound from a computed value."""
        return value * (1.0 + self.relative) + self.absolute

    def lower_bound(self, value: NDArray | float) -> NDArray | float:
        """Return a lower bound from a computed value."""
        return np.maximum(value * (1.0 - self.relative) - self.absolute, 0.0)
