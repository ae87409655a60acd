"""The centres in groups, each one or several panels of :mod:`panels`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lloydia.backends.cpu.runtime.compiled import LEAN, kernel, maximum
from lloydia.backends.cpu.runtime.counting import upto
from lloydia.backends.cpu.scan.centers import aligned
from lloydia.backends.cpu.simd.microkernel_centers_in_lanes import LANES, LOWEST_SCORE, NV
from lloydia.exact import certificate

__all__ = ["Grouped", "arrange", "vectors"]

# Up to this many groups have panels of one vector, more have NV: small panels rule out more
# centres, and large ones are scanned faster.
MAX_SMALL_GROUPS = 32


def vectors(k: int) -> int:
    """Return the vectors of LANES centres that a panel should have, for k centres."""
    return 1 if k <= MAX_SMALL_GROUPS * LANES else NV


# Where some centre is farther away than this many typical norms, each score has an error bound of
# its own.
FAR_FROM_TYPICAL = 4.0


class Errors(NamedTuple):
    """Bounds on the errors of scores; see :mod:`lloydia.exact.certificate`.

    Attributes
    ----------
    terms : tuple of float
        Those of :func:`~lloydia.exact.certificate.error_terms`.
    near : tuple of float
        The line of :func:`~lloydia.exact.certificate.near_error`.
    own, factors : tuple of float
        The terms F of a bound on a distance, and factors of the lower and the upper bound; where no
        centre is far away, those of all scores, and 1.
    """

    terms: tuple[float, float, float]
    near: tuple[float, float, float, float]
    own: tuple[float, float, float]
    factors: tuple[float, float]


class Grouped(NamedTuple):
    """Centres in the order of their groups: position p is lane p of the panels.

    Attributes
    ----------
    panels : ndarray of shape (n_panels, d, width), float32
    half_squares : ndarray of shape (n_panels * width,), float32
        Minus half the squared norms; hugely negative where there is no centre.
    rows : ndarray of shape (k, d), float32
        The same centres, one per row.
    order, place : ndarray of shape (k,), int64
        The centre at a position, and the position of a centre.
    origin : ndarray of shape (d,), float64
    scale : float
        The frame of :mod:`lloydia.exact.certificate`.
    errors : Errors
    columns : ndarray of shape (d, k), float64
        The centres themselves, feature-major, not reordered.
    """

    panels: NDArray[np.float32]
    half_squares: NDArray[np.float32]
    rows: NDArray[np.float32]
    order: NDArray[np.int64]
    place: NDArray[np.int64]
    origin: NDArray[np.float64]
    scale: float
    errors: Errors
    columns: NDArray[np.float64]


def arrange(centers: NDArray[np.float64], order: NDArray[np.int64], width: int) -> Grouped:
    """Centre, scale, round and pack centres (k, d) in an order, `width` a panel."""
    k, d = centers.shape
    n_panels = -(-k // width)
    origin, scale = certificate.frame(centers)
    panels = aligned((n_panels, d, width))
    half_squares = aligned((n_panels * width,))
    # Only the last panel can have columns without a centre; `_fill` writes the others.
    panels[-1], half_squares[k:] = 0.0, LOWEST_SCORE
    rows = np.empty((k, d), dtype=np.float32)
    reach = _fill(centers, order, origin, scale, panels, half_squares, rows)
    place = np.empty_like(order)
    place[order] = np.arange(k)
    errors = errors_of(d, reach, float(np.sqrt(-2.0 * np.median(half_squares[:k]))), scale)
    columns = np.ascontiguousarray(centers.T)
    return Grouped(panels, half_squares, rows, order, place, origin, scale, errors, columns)


def errors_of(d: int, reach: float, typical: float, scale: float) -> Errors:
    """Return the errors where the norms of centres are at most `reach`, half of them `typical`."""
    terms, near = certificate.error_terms(d, reach, scale), certificate.near_line(d, reach, scale)
    own, factors = certificate.single_terms(d, reach, scale)
    if not reach > FAR_FROM_TYPICAL * typical:
        own, factors = terms, (1.0, 1.0)
    return Errors(terms, near, own, factors)


@kernel(**LEAN)
def _fill(centers, order, origin, scale, panels, half_squares, rows):
    """Write panels, half_squares and rows; return the largest norm, rounded up."""
    k, d = centers.shape
    width = panels.shape[2]
    largest = 0.0
    for p in upto(k):
        square = 0.0
        for f in upto(d):
            value = np.float32((centers[order[p], f] - origin[f]) * scale)
            panels[p // width, f, p % width] = value
            rows[p, f] = value
            square += np.float64(value) * np.float64(value)
        half_squares[p] = np.float32(-0.5 * square)
        largest = maximum(largest, square)
    return np.sqrt(largest) * (1.0 + (d + 8) * 2.0**-22) + 2.0**-60
