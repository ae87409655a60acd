r"""The certificate: when an approximate score proves which centre is nearest.

**Scores.**  With an origin m and a power of two s, let ``x' = (x - m) s`` and ``c' = (c - m) s``.
The squared distance is ``|x' - c'|^2 = |x'|^2 - 2 t_j``, ``t_j = x'.c'_j - |c'_j|^2 / 2``: the
nearest centre has the largest score t.  An engine computes it in float32 from the rounded
``y = fl(x')`` and ``b_j = fl(c'_j)``, starting at ``h_j = fl(-|b_j|^2 / 2)`` and adding the d
products with fused or separate rounding, in any order.

**Error.**  Let ``u = 2**-24``, ``R >= |x'|`` and ``C >= |c'_j|`` for all j, and
``g_m = m u / (1 - m u)``.  By Cauchy-Schwarz ``sum_f |y_f b_jf| <= (1+u)^2 R C``.

1. Rounded operands: ``|y.b - x'.c'| <= (2u + u^2) R C`` and
   ``| |b|^2 - |c'|^2 | / 2 <= (u + u^2/2) C^2``.
2. The start: ``|h - (-|b|^2/2)| <= u (1+u)^2 C^2 / 2`` when ``|b|^2`` is summed in float64.
3. The sum of d + 1 terms, each product possibly rounded first: at most ``g_{d+1}`` times the sum
   of their magnitudes, ``(1+u)^2 (R C + C^2 / 2)`` (Higham 2002, section 3.1).

Together ``|s_j - t_j| <= (d + 4) u (R C + C^2)`` up to a factor ``1 + 2 (d + 8) u``, for
d <= 2**20.  The canonical D of :mod:`lloydia.exact.distance` is itself rounded: its argmin is that
of t when the gap also exceeds ``(d + 4) 2**-53 (R + C)^2``.  Underflow of a score adds
at most ``2**-149`` an operation; ``2**-120`` covers it.  Underflow of D adds at most ``2**-1075`` a
feature, ``s**2`` times that in t; ``d s**2 2**-1073`` covers it.

So with :func:`score_error` = E, ``s_best - s_j > 2 E`` proves that centre j is farther,
canonically and strictly.  A row whose second best score is nearer than that is *in doubt*: its D
are evaluated.
Choosing m and s from the centres (:func:`frame`) keeps C near 1 and E relative to the spread of
the centres, not to their offset from 0.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["FAR", "error_terms", "frame", "score_error", "scores"]

# Rows or centres farther than this from the origin, in the frame's units, are never certified:
# their scores could overflow float32.
FAR = 2.0**40

# Up to here the factor 1 + 2 (d + 8) u covers what the derivation leaves out.
MOST_FEATURES = 2**20


def frame(centers: NDArray) -> tuple[NDArray[np.float64], float]:
    """Return the origin (the mean of the centres) and the power of two that brings them near 1.

    Any finite choice keeps the certificate valid; this one keeps it sharp.
    """
    centers = centers.astype(np.float64, copy=False)
    origin = centers.mean(axis=0)
    reach = float(np.abs(centers - origin).max(initial=0.0))
    exponent = math.frexp(reach)[1] if reach > 0 else 0
    return origin, math.ldexp(1.0, -min(max(exponent, -1000), 1000))


def error_terms(n_features: int, reach: float, scale: float) -> tuple[float, float, float]:
    """Return ``(a, b, c)`` such that the error of a row of radius R is ``a + b R + c R**2``.

    Parameters
    ----------
    n_features : int
    reach : float
        C, a bound on every ``|c'_j|``.
    scale : float
        s, a power of two of at most ``2**1000``.
    """
    if not reach < FAR or n_features > MOST_FEATURES:
        return math.inf, math.inf, math.inf
    d = n_features
    factor = (d + 4) * 2.0**-24 * (1.0 + (d + 8) * 2.0**-23)
    canonical = (d + 4) * 2.0**-53
    # At most about 2**927 d: where the scale is that large, nothing is certified.
    underflow = d * (scale * 2.0**-537) * (scale * 2.0**-536)
    return (
        (factor + canonical) * reach * reach + 2.0**-120 + underflow,
        factor * reach + 2 * canonical * reach,
        canonical,
    )


def score_error(n_features: int, radius: NDArray | float, reach: float, scale: float) -> NDArray:
    """Return E, a bound on the error of every score of a row; comparisons may be off by 2 E.

    Parameters
    ----------
    n_features : int
        d.
    radius : float or ndarray
        R, a bound on ``|x'|``.
    reach : float
        C, a bound on every ``|c'_j|``.
    scale : float
        s.
    """
    a, b, c = error_terms(n_features, reach, scale)
    return np.where(np.less(radius, FAR), a + radius * (b + radius * c), math.inf)


def scores(X: NDArray, centers: NDArray) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """Return float32 scores of shape (n, k), and the bound E a row, of shape (n,).

    Where ``best - second best > 2 E`` the label is certified.
    """
    origin, scale = frame(centers)
    y = ((X.astype(np.float64) - origin) * scale).astype(np.float32)
    b = ((centers.astype(np.float64) - origin) * scale).astype(np.float32)
    start = (-0.5 * np.square(b.astype(np.float64)).sum(axis=1)).astype(np.float32)
    total = np.tile(start, (len(y), 1))
    for f in range(y.shape[1]):
        total += y[:, f, None] * b[None, :, f]
    grow = 1.0 + 2.0**-20
    radius = np.sqrt(np.square(y.astype(np.float64)).sum(axis=1)) * grow + 2.0**-60
    reach = float(np.sqrt(np.square(b.astype(np.float64)).sum(axis=1)).max()) * grow + 2.0**-60
    return total, score_error(X.shape[1], radius, reach, scale)
