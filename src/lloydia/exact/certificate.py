r"""The certificate: when an approximate score proves which centre is nearest.

**Scores.**  With an origin m and a power of two s, let ``x' = (x - m) s`` and ``c' = (c - m) s``.
The squared distance is ``|x' - c'|^2 = |x'|^2 - 2 t_j``, ``t_j = x'.c'_j - |c'_j|^2 / 2``: the
nearest centre has the largest score t.  An engine computes it in float32 from the rounded
``y = fl(x')`` and ``b_j = fl(c'_j)``: it adds the d products to the initial score
``h_j = fl(-|b_j|^2 / 2)``, with fused or separate rounding, in any order.

**Error.**  Let ``u = 2**-24``, ``R >= |x'|`` and ``C >= |c'_j|`` for all j, and
``g_m = m u / (1 - m u)``.  By Cauchy-Schwarz ``sum_f |y_f b_jf| <= (1+u)^2 R C``.

1. Rounded operands: ``|y.b - x'.c'| <= (2u + u^2) R C`` and
   ``| |b|^2 - |c'|^2 | / 2 <= (u + u^2/2) C^2``.
2. The initial score: ``|h - (-|b|^2/2)| <= u (1+u)^2 C^2 / 2`` when ``|b|^2`` is summed in float64.
3. The sum of d + 1 terms, each product possibly rounded first: at most ``g_{q+1}`` times the sum
   of their magnitudes, ``(1+u)^2 (R C + C^2 / 2)``, if no term goes through more than q additions
   (Higham 2002, sections 3.1 and 4.2); q = d whatever the order.
4. A score whose last m bits are overwritten (by the index of its centre) moves by less than
   ``2**m`` units in its last place: at most ``2**(m + 1) u (R C + C^2 / 2)``.
5. Operands split into pairs of bfloat16: ``y = h + l + e`` with ``|e| <= 2**-8 (1 + 2**-7) |l|``
   feature by feature, and ``b = h' + l' + e'``.  The products l l', y e' and e b are left out: at
   most ``|l| |l'| + |y| |e'| + |e| |b|`` (:func:`split_line`); and the terms that are added have
   magnitudes that sum to less than ``(1 + 2**-6)`` times the above.  Subnormal numbers count as 0
   there, which ``2**-100`` covers.
6. Heads alone, ``y = h + r`` and ``b = h' + r'``: what is left out is at most
   ``|r| |h'| + |y| |r'|``, which is added to the score as a pair of products that are not less
   (:mod:`lloydia.backends.cpu.scan.bf16_prefilter`); the terms have magnitudes that sum to less
   than ``(1 + 2**-5)`` times the above, for ``|r| <= 2**-8 |y|`` and a bfloat16 rounded up is less
   than ``1 + 2**-7`` times the norm (:func:`bf16_head_line`).

The first four together give ``|s_j - t_j| <= (q + 4 + 2**(m + 1)) u (R C + C^2)``, without the
power of two if no bits are overwritten, up to a factor ``1 + 2 (d + 8) u``, for d <= 2**20.  The
canonical D of :mod:`lloydia.exact.distance` is itself rounded: its argmin is that of t when the gap
also exceeds ``(d + 4) 2**-53 (R + C)^2``.  Underflow of a score adds at most ``2**-149`` an
operation, which ``2**-120`` covers.  Underflow of D adds at most ``2**-1075`` a feature, ``s**2``
times that in t, which ``d s**2 2**-1073`` covers.

So with :func:`score_error` = E, ``s_best - s_j > 2 E`` proves that centre j is farther,
canonically and strictly.  A row whose two best scores are closer than that is *ambiguous*: its D
are evaluated.

**Near centres.** C depends on the farthest of all centres, but whether a row is ambiguous only
depends on the centres near it.  With k the factor above and e what underflow adds, the score of a
centre of norm N is off by at most ``k (R N + N**2) + e``.  Let s be the score of a centre at
distance r from the row, so that ``N <= R + r``.  Since ``r**2 = |x'|^2 - 2 t``, and
``2 R r <= R**2 + r**2``,

    r^2  <=  R^2 - 2 s + 2 k (R (R + r) + (R + r)^2) + 2 e  <=  R^2 - 2 s + k (7 R^2 + 5 r^2) + 2 e,

which for ``k <= 2**-4`` implies

    r^2  <=  (R^2 - 2 s + 8 k R^2 + 4 e) (1 + 10 k)  =:  h(s)^2

with a margin that exceeds the rounding of D and of this computation.  Let s be the best score.  A
centre that is canonically no farther than the centre of s also has ``|c'_j| <= rho = R + h(s)``, so
its score and the best one are off by at most E with rho in the place of C,
``E' <= a + b rho (R + rho)`` (:func:`near_error`): a gap of more than 2 E' would contradict that it
is no farther.  A row is ambiguous if the gap is neither more than 2 E nor more than 2 E'.

These inequalities also bound distances.  The squared distance to the centre of score s is at most
``R**2 - 2 s + 2 E'``.  Take a set of centres whose scores are all at most s.  A centre of the set
has either a norm of at most ``R + h(s)``, and then a squared distance of at least
``|x'|^2 - 2 s - 2 E'``, or a distance of more than h(s), which is larger.

**Single centres.**  The distance r of a centre bounds the error of its score, as above:
``|s - t| <= k (2 R^2 + 3 R r + r^2) + e <= k (7 R^2 + 5 r^2) / 2 + e``.  So, of every centre,

    |x'|^2 - 2 s - 7 k R^2 - 2 e  <=  (1 + 5 k) r^2,
    (1 - 5 k) r^2  <=  |x'|^2 - 2 s + 7 k R^2 + 2 e,

so the error of these bounds depends on the row and not on the centres (:func:`single_terms`).

Choosing m and s from the centres (:func:`frame`) keeps C near 1 and E relative to the spread of
the centres, not to their offset from 0.  A choice of m among most of the centres, however far the
others are, keeps E' relative to the spread of most.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "FAR",
    "bf16_head_line",
    "bf16_head_near",
    "error_line",
    "error_terms",
    "frame",
    "max_scale_exponent",
    "near_error",
    "near_line",
    "scale_of",
    "score_error",
    "scores",
    "single_terms",
    "split_line",
]

# Rows or centres farther than this from the origin, in the frame's units, are never certified:
# their scores could overflow float32.
FAR = 2.0**40

# The origin is the median of at most so many centres, feature by feature.
MEDIAN_CENTERS = 31

# Up to this number of features the factor 1 + 2 (d + 8) u covers what the derivation leaves out.
MAX_FEATURES = 2**20


def frame(centers: NDArray) -> tuple[NDArray, float]:
    """Return the origin, amid the centres, and the power of two that brings them near 1.

    Any finite choice gives a valid certificate.  This one gives small errors: the medians of some
    centres are where most rows are, even if other centres are far away.  The origin has the type of
    the centres, so that a difference of a row and the origin, in that type, is rounded once.
    """
    some = centers[:: -(-len(centers) // MEDIAN_CENTERS)].astype(np.float64)
    origin = np.median(some, axis=0).astype(centers.dtype)
    reach = float(np.abs(centers.astype(np.float64) - origin).max(initial=0.0))
    return origin, scale_of(reach, max_scale_exponent(centers.dtype))


def scale_of(reach: float, max_exponent: int) -> float:
    """Return the power of two that brings `reach` near 1, of an exponent up to `max_exponent`."""
    exponent = math.frexp(reach)[1] if reach > 0 else 0
    if abs(exponent) > max_exponent:
        exponent = max_exponent if exponent > 0 else -max_exponent
    return math.ldexp(1.0, -exponent)


def max_scale_exponent(dtype: np.dtype) -> int:
    """Return the largest exponent for which the type holds a scale and its inverse."""
    return 126 if dtype == np.float32 else 1000


def error_terms(
    n_features: int, reach: float, scale: float, depth: int | None = None, index_bits: int = 0
) -> tuple[float, float, float]:
    """Return ``(a, b, c)`` such that the error of a row of radius R is ``a + b R + c R**2``.

    Parameters
    ----------
    n_features : int
    reach : float
        C, a bound on every ``|c'_j|``.
    scale : float
        s, a power of two of at most ``2**1000``.
    depth : int, optional
        q, the additions that a product goes through at most; d by default.
    index_bits : int
        m, the bits of a score that are overwritten.
    """
    if not reach < FAR or n_features > MAX_FEATURES:
        return math.inf, math.inf, math.inf
    factor, canonical, underflow = _roundings(n_features, scale, depth, index_bits)
    return (
        (factor + canonical) * reach * reach + underflow,
        factor * reach + 2 * canonical * reach,
        canonical,
    )


def _roundings(
    d: int, scale: float, depth: int | None, index_bits: int
) -> tuple[float, float, float]:
    """Return the factors of ``R C + C**2`` and ``(R + C)**2`` in the error, and its constant."""
    q = d if depth is None else depth
    overwritten = 2.0 ** (index_bits + 1) if index_bits else 0.0
    factor = (q + 4 + overwritten) * 2.0**-24 * (1.0 + (d + 8) * 2.0**-23)
    # This is at most about 2**927 d; where the scale is that large, no row is certified.
    underflow = d * (scale * 2.0**-537) * (scale * 2.0**-536)
    return factor, (d + 4) * 2.0**-53, 2.0**-120 + underflow


@lru_cache
def error_line(
    n_features: int, reach: float, scale: float, depth: int | None = None, index_bits: int = 0
) -> tuple[float, float, float]:
    """Return ``(a, b, 0)`` such that the error of a row of radius R is at most ``a + b R**2``.

    The bound needs no square root, because ``2 R C <= R**2 + C**2``.
    """
    a, b, c = error_terms(n_features, reach, scale, depth, index_bits)
    if not math.isfinite(a):
        return math.inf, 0.0, 0.0
    tiny = max(reach, 2.0**-60)
    return (a + 0.5 * b * tiny) * (1.0 + 2.0**-40), (0.5 * b / tiny + c) * (1.0 + 2.0**-40), 0.0


@lru_cache
def near_line(
    n_features: int, reach: float, scale: float, depth: int | None = None, index_bits: int = 0
) -> tuple[float, float, float, float]:
    """Return ``(a, b, c, g)``, by which the errors of near centres are bounded.

    Centres of norms up to rho, which is not less than R, have errors of at most ``a + b rho (R +
    rho)``; and the distance to one of score s is at most the root of ``(R**2 - 2 s + c R**2 + 4 a)
    g``.  The parameters are those of :func:`error_terms`; `reach` only decides whether any row
    is certified.
    """
    factor, canonical, underflow = _roundings(n_features, scale, depth, index_bits)
    if not reach < FAR or n_features > MAX_FEATURES or factor > 2.0**-4:
        return math.inf, math.inf, math.inf, math.inf
    # (R + rho)^2 <= 3 rho (R + rho); this factor exceeds all rounding of float64 on the way to E'.
    grow = 1.0 + 2.0**-30
    return underflow * grow, (factor + 3 * canonical) * grow, 8.0 * factor, 1.0 + 10.0 * factor


def near_error(square: float, score: float, line: tuple[float, float, float, float]) -> float:
    """Return E', a bound on the errors of scores that does not depend on the farthest centre.

    It bounds the errors of the centres that are canonically no farther than one of this score.  The
    squared distance to that centre is at most ``R**2 - 2 s + 2 E'``, and to any centre of no larger
    score at least ``|x'|**2 - 2 s - 2 E'``.

    Parameters
    ----------
    square : float
        R squared.
    score : float
        s.
    line : tuple of float
        From :func:`near_line`.
    """
    a, b, c, grow = line
    radius = np.sqrt(square)
    within = (square - 2.0 * score + c * square + 4.0 * a) * grow
    # NaN stays NaN, which certifies nothing.
    reach = radius + np.sqrt(0.0 if within < 0.0 else within)
    return a + b * reach * (radius + reach)


def single_terms(
    n_features: int, reach: float, scale: float
) -> tuple[tuple[float, float, float], tuple[float, float]]:
    """Return ``(a, b, c)`` and ``(low, high)``, by which a score bounds the distance of its centre.

    With ``F = a + b R + c R**2`` the distance is at least the root of ``|x'|**2 - 2 s - 2 F``,
    times `low`, and at most that of ``|x'|**2 - 2 s + 2 F``, times `high`.  The parameters are
    those of :func:`error_terms`; `reach` only decides whether there is a bound.
    """
    factor, _, underflow = _roundings(n_features, scale, None, 0)
    if not reach < FAR or n_features > MAX_FEATURES or factor > 2.0**-4:
        return (math.inf, math.inf, math.inf), (0.0, math.inf)
    grow = 1.0 + 2.0**-30
    low, high = 1.0 / math.sqrt(1.0 + 5.0 * factor), 1.0 / math.sqrt(1.0 - 5.0 * factor)
    return (underflow * grow, 0.0, 3.5 * factor * grow), (low / grow, high * grow)


def split_line(
    line: tuple[float, float, float], reach: float, residual: float
) -> tuple[float, float, float]:
    """Return ``(a, b, c)``: the error of split operands is at most ``a + b R**2 + c r**2``.

    Parameters
    ----------
    line : tuple of float
        From :func:`error_line`, for the sum.
    reach : float
        C.
    residual : float
        A bound on every ``|b_j - h'_j|``; r is ``|l|`` of the row.
    """
    a, b, _ = line
    if not math.isfinite(a):
        return math.inf, 0.0, 0.0
    unit = 2.0**-8 * (1.0 + 2.0**-7)
    # r (residual (1 + unit) + unit C) + R unit residual, where 2 r t <= r^2 + t^2.
    tau, tiny = max(residual, 2.0**-70), max(reach, 2.0**-60)
    of_residual = (1.0 + 2.0**-6) * (residual + unit * reach)
    of_radius = (1.0 + 2.0**-6) * unit * residual
    return (
        a * (1.0 + 2.0**-6) + 0.5 * (of_residual * tau + of_radius * tiny) + 2.0**-100,
        b * (1.0 + 2.0**-6) + 0.5 * of_radius / tiny,
        0.5 * of_residual / tau,
    )


def bf16_head_line(line: tuple[float, float, float]) -> tuple[float, float, float]:
    """Return ``(a, b, 0)``: the error of adding up bfloat16 heads is at most ``a + b R**2``.

    `line` is that of :func:`error_line`, for the sum.
    """
    a, b, _ = line
    return a * (1.0 + 2.0**-5) + 2.0**-100, b * (1.0 + 2.0**-5), 0.0


def bf16_head_near(line: tuple[float, float, float, float]) -> tuple[float, float, float, float]:
    """Return the line of :func:`near_error` for adding up bfloat16 heads.

    `line` is that of :func:`near_line`, for the sum.
    """
    a, b, c, grow = line
    more = 1.0 + 2.0**-5
    return a * more + 2.0**-100, b * more, c * more, 1.0 + (grow - 1.0) * more


def score_error(n_features: int, radius: NDArray | float, reach: float, scale: float) -> NDArray:
    """Return E, a bound on the error of every score of a row; differences may be off by 2 E.

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
    initial = (-0.5 * np.square(b.astype(np.float64)).sum(axis=1)).astype(np.float32)
    total = np.tile(initial, (len(y), 1))
    for f in range(y.shape[1]):
        total += y[:, f, None] * b[None, :, f]
    grow = 1.0 + 2.0**-20
    radius = np.sqrt(np.square(y.astype(np.float64)).sum(axis=1)) * grow + 2.0**-60
    reach = float(np.sqrt(np.square(b.astype(np.float64)).sum(axis=1)).max()) * grow + 2.0**-60
    return total, score_error(X.shape[1], radius, reach, scale)
