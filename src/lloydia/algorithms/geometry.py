"""What the bounds of Elkan and Hamerly need to know of the centres, rounded the safe way.

Bounds are bounds on true distances.  A label is defined by canonical distances, which differ from
the squares of true ones by a relative error (:func:`lloydia.exact.distance.relative_error`).  The
paddings below cover that, the rounding of the bounds' own type, and a square root, so that

    raised(u) < l   implies   D(x, a) < D(x, j)   canonically and strictly,

where u bounds the distance of x to centre a from above and l that to centre j from below.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lloydia.exact.distance import relative_error

__all__ = ["Geometry", "Padding"]


@dataclass(frozen=True)
class Padding:
    """How far to move a computed bound so that it still is one.

    A value v becomes ``v * (1 + relative) + absolute`` as an upper bound and ``v * (1 - relative) -
    absolute``, at least 0, as a lower one.

    Attributes
    ----------
    relative : float
        Covers four roundings of the bounds' type and the error of a canonical D.
    absolute : float
        Keeps away from magnitudes whose squares are subnormal: there nothing is skipped.
    largest : float
        The largest finite value of the bounds' type: a larger lower bound becomes this.
    """

    relative: float
    absolute: float
    largest: float

    @classmethod
    def of(cls, dtype: np.dtype, n_features: int) -> Padding:
        """Return the padding for bounds of type `dtype` in d dimensions."""
        info = np.finfo(dtype)
        absolute = 2.0**-126 if np.dtype(dtype) == np.float32 else 2.0**-500
        relative = 4 * float(info.eps) + 2 * relative_error(n_features)
        return cls(relative, absolute, float(info.max))

    def as_tuple(self) -> tuple[float, float, float]:
        """Return the three numbers, for kernels."""
        return self.relative, self.absolute, self.largest

    def raised(self, value: NDArray | float) -> NDArray | float:
        """Return an upper bound from a computed value."""
        return value * (1.0 + self.relative) + self.absolute

    def lowered(self, value: NDArray | float) -> NDArray | float:
        """Return a lower bound from a computed value."""
        return np.clip(value * (1.0 - self.relative) - self.absolute, 0.0, self.largest)


@dataclass(frozen=True)
class Geometry:
    """Where the centres are to each other, and how far they moved.

    Attributes
    ----------
    moved : ndarray of shape (k,)
        Upper bounds on the distances moved since the last assignment.
    half_gaps : ndarray of shape (k, k) or None
        Lower bounds on half the distances between centres.
    half_nearest : ndarray of shape (k,)
        Lower bounds on half the distance to the nearest other centre; infinite for k = 1.
    """

    moved: NDArray[np.float64]
    half_gaps: NDArray[np.float64] | None
    half_nearest: NDArray[np.float64]

    @classmethod
    def of(
        cls, moved_squares: NDArray, gap_squares: NDArray, padding: Padding, pairs: bool
    ) -> Geometry:
        """Build it from canonical D: of centres to their old places (k,), and pairs (k, k)."""
        half = 0.5 * np.sqrt(gap_squares)
        np.fill_diagonal(half, np.inf)
        half = np.asarray(padding.lowered(half))
        return cls(
            np.asarray(padding.raised(np.sqrt(moved_squares))),
            half if pairs else None,
            half.min(axis=1),
        )
