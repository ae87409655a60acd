r"""The certificate of scores computed from half-precision numbers by matrix units.

**Scores.**  In a frame (:mod:`lloydia.exact.certificate`) a row is ``x = y + e`` and a centre
``c_j = b_j + f_j``, where y and b_j are stored (one float16 number a feature) and e and f_j are
what that leaves out.  With ``a_j = y - b_j``,

    |x - c_j|^2 = |a_j|^2 + 2 a_j.e + |e|^2 - 2 (a_j + e).f_j + |f_j|^2.

So what orders the centres, ``t_j = (|x - c_j|^2 - const) / 2``, is the score
``S_j = |b_j|^2 / 2 - y.b_j`` up to one of

    -b_j.e - (a_j + e).f_j + |f_j|^2 / 2      (without |x|^2, as usual), or
     a_j.e - (a_j + e).f_j + |f_j|^2 / 2      (without |y|^2 + |e|^2).

Let ``N >= |y|`` and ``r >= |e|``, and for each j ``B_j >= |b_j|`` and ``g_j >= |f_j|``.  With
``delta_j = |a_j| = sqrt(|y|^2 + 2 S_j)`` these are at most
``alpha_j + beta_j delta_j + g_j r + g_j^2/2``, with ``(alpha_j, beta_j)`` either ``(r B_j, g_j)``
or ``(0, r + g_j)``: the first is sharp for centres near the origin, the second (the triangle
inequality) for rows near their centre.

**Computed scores** ``s_j = S_j + shift +- nu``, where ``shift`` makes the scores that matter
positive, so that they order like their bits ("Range" says more):

1. Products of float16 numbers are exact in float32.  A matrix unit adds at least 8 of them to its
   sum at a time; it cuts each addend off, and the result, at the last bit of the largest addend
   (Fasi, Higham, Mikaitis, Pranesh, PeerJ CS 7:e330, 2021; Hopper keeps more bits and adds 16 at a
   time).  No addend or partial sum exceeds ``N B_j`` (Cauchy-Schwarz), so q products are off by at
   most ``(q + 2 q / 8) 2**-23 N B_j``.  Groups of features that are summed apart and then added in
   float32 cost one rounding each instead, ``2**-24 N B_j``: :func:`summation`.
2. The start, at most ``H_j = B_j^2 / 2 + shift``, is added last, as the sum of three float16
   numbers times a power of two of at most 2 R, in one step of 16 products:
   ``20 * 2**-23 (H_j + N B_j)`` covers it.  So it does where the start is a float32 number that is
   added in float32, which rounds twice: ``2**-24 H_j`` and ``2**-24 (H_j + N B_j)``, nearly.

**Typical centres.**  A few centres far from the origin would spoil the bounds of all others.  So
let B and g be typical values, beta and nu what follows from them, and *bias* the score of every
centre that exceeds them: subtract ``e_j = 2 q_j`` from it, with ``q_j`` at least

    (B_j - B) r + (g_j - g) (delta_j + r + (g_j + g) / 2) + nu_j - nu,

each difference 0 if it is negative: :func:`score_bias` has it for all rows within R.

**The limit.**  Let s be at least the biased score of centre 1 (any of them; mostly s is its score,
the least), ``delta^2 = N^2 + 2 (T - shift + nu)`` and

    T - s >= e_1 + nu_1 + nu + alpha_1 + alpha + (beta_1 + beta) delta
             + (r + g_1)^2 / 2 + (r + g)^2 / 2.

Then no centre j with a biased score above T is as near as centre 1.  For ``t_1`` is at most
``s + e_1 - shift + nu_1 + alpha_1 + beta_1 delta_1 + g_1 r + g_1^2/2``, and ``delta_1 <= delta``.
Put ``P = T - shift - nu``.  If ``|y|^2 + 2 P`` were below ``4 beta^2``, then
``s >= shift - e_1 - nu_1 - |y|^2 / 2`` (as ``delta_1^2 >= 0``) would leave T - s below
``2 beta^2 + nu + nu_1 + e_1``, less than asked for (``delta >= 2 beta``).  So from P on
``h(S) = S - beta sqrt(|y|^2 + 2 S)`` rises by at least half of what S does.  Now
``S_j >= P + e_j - (nu_j - nu)``, so ``h(S_j)`` is above ``h(P)`` by what the true bounds of j
exceed the typical ones, and ``t_j > P - alpha - beta delta - g r - g^2/2``.

With A for all terms but that of delta, and ``b = beta_1 + beta``, the least such T is
``s + A + b u``, where ``u = b + sqrt(b^2 + N^2 + 2 (s - shift + nu) + 2 A)`` is its delta.  Where T
is more than that, b times its delta is more by at most half of it (``delta >= 2 b``): so any
``s + A + b u'`` with ``u' >= u`` is right as well.  Here u' has the larger b and the larger A of
the two kinds of bounds, and serves for both.

Canonical D is itself rounded, to a relative ``(d + 4) 2**-53``, and may underflow;
``E = (d + 4) 2**-52 (delta + r + g_1 + g)^2 + 2**-60`` covers it while ``s <= 2**500``.  T is
raised by 2 E: that raises delta by at most ``2 E / u``, and ``u >= 2 b``, so E is left.

A row whose other scores are all above the limit of its least score has its nearest centre; for any
other row the limit leaves few candidates.

**Far centres.**  A centre with ``|c_j| > 3 R`` is out of float16's useful range.  For a row with
``|x| <= R`` its ``t_j`` is at least ``3 R (3 R / 2 - R) = 1.5 R^2``: the score ``1.5 R^2 + shift``
stands for it (and for the columns that fill the last tile).  It is no rival where
``T - shift <= R^2``, for then ``t_1 <= R^2 + N r <= 1.25 R^2``.
Rows outside R, rows whose nearest centre may be far, and rows with a score below 0 have no limit.
(Where names are added to scores nobody sees such a score: "Range" says that there is none.)

**Range.**  With ``shift = R^2 / 2 + R^2 / 32 + 4`` no biased score of a row within R is below 4 or
above ``8.1 R^2 + 4``.  For S_j is at least ``-|y|^2 / 2``.  What rounding to float16 leaves out is
at most a part ``2**-11`` of a norm, and ``2**-22`` more of up to 64 features, near 0; B_j is at
most 3 R, and R at least 1.  So e_j, twice the sum of ``B_j r + g_j (R + B_j + r + 2 g_j)`` and what
the difference of two nu is, is below ``2 (3 + 12.2) 2**-11 R^2``; with nu it is below ``R^2 / 64``,
half of what there is for it.

**Distances.**  Of a row within R, from the same scores: ``|x - c_1| <= delta_1 + r + g_1``, where
``delta_1^2 <= N^2 + 2 (s - shift + e_1 + nu_1)``.  Where the biased scores of some centres are at
least s, each of them is no nearer than ``sqrt(Q) - r - g`` with ``Q = n^2 + 2 (s - shift - nu)``
and ``n <= |y|``: for ``delta_j^2 >= Q + 2 (e_j - (nu_j - nu)) >= Q + 4 (g_j - g) delta_j``, so
``delta_j - g_j >= sqrt(Q) - g`` whether g_j is above g or not; and a far one is at least
``3 R - N - r`` away, which is no less as ``sqrt(N^2 + 3 R^2) <= 3 R - N``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "FAR_CENTER",
    "FAR_SCORE",
    "LAST_STEP",
    "canonical_error",
    "distance_above",
    "distance_below",
    "limit",
    "score_bias",
    "summation",
]

# Where centres begin to be far, in units of R, and the score that stands for them, in R**2.
FAR_CENTER, FAR_SCORE = 3.0, 1.5

# Of adding the start in a matrix unit, relative to H_j + N B_j.
LAST_STEP = 20 * 2.0**-23


def summation(n_features: int, group: int | None = None) -> float:
    """Return the error of a sum of products by matrix units, relative to N B_j.

    Parameters
    ----------
    n_features : int
        d, or what it was padded to.
    group : int, optional
        Features whose products a unit adds up before the result is added to others in float32.
    """
    additions = 0 if group is None else -(-n_features // group)
    return (1.25 * min(n_features, group or n_features) + 4.0 + 0.5 * additions) * 2.0**-23


def canonical_error(n_features: int) -> float:
    """Return a bound of the error of half the difference of two canonical D.

    Relative to the larger; twice what is needed.
    """
    return (n_features + 4) * 2.0**-52


def score_error(
    norm: NDArray, center_norm: NDArray | float, shift: float, summed: float
) -> NDArray[np.float64]:
    """Return nu of rows and centres of norms N and B: how far off computed scores are."""
    start = 0.5 * center_norm * center_norm + shift
    return (summed + LAST_STEP) * norm * center_norm + LAST_STEP * start


def score_bias(
    norms: NDArray,
    residuals: NDArray,
    *,
    typical_norm: float,
    typical_residual: float,
    largest_residual: float,
    radius: float,
    summed: float,
) -> NDArray[np.float64]:
    """Return e_j: by how much biased scores are below scores, for rows within R.

    Parameters
    ----------
    norms, residuals : ndarray of shape (k,)
        B_j and g_j.
    typical_norm, typical_residual : float
        B and g.
    largest_residual, radius, summed : float
        The largest r of a row within R; R; of :func:`summation`.
    """
    norm_excess = np.maximum(norms - typical_norm, 0.0)
    residual_excess = np.maximum(residuals - typical_residual, 0.0)
    excess = norm_excess * (largest_residual + (summed + LAST_STEP) * radius)
    excess += residual_excess * (radius + norms + largest_residual + residuals + typical_residual)
    return 2.0 * (excess + 0.5 * LAST_STEP * norm_excess * (norms + typical_norm))


def limit(
    best_score: NDArray,
    norm: NDArray,
    residual: NDArray,
    own_norm: NDArray,
    own_residual: NDArray,
    own_bias: NDArray,
    *,
    shift: float,
    radius: float,
    typical_norm: float,
    typical_residual: float,
    summed: float,
    canonical: float,
) -> NDArray[np.float64]:
    """Return T: centres with larger biased scores are not the nearest of a row.

    Parameters
    ----------
    best_score : ndarray of shape (n,)
        The smallest biased score of each row, which is the best.
    norm, residual : ndarray of shape (n,)
        N and r.
    own_norm, own_residual, own_bias : ndarray of shape (n,)
        B_1, g_1 and e_1 of the centre with that score.
    shift, radius : float
        ``shift`` and R.
    typical_norm, typical_residual : float
        B and g.
    summed, canonical : float
        Of :func:`summation` and :func:`canonical_error`.

    Returns
    -------
    ndarray of shape (n,), float64
        Infinity where nothing can be said.
    """
    both_norms, both_residuals = own_norm + typical_norm, own_residual + typical_residual
    errors = sum(score_error(norm, B, shift, summed) for B in (own_norm, typical_norm))
    quadratic = 0.5 * ((residual + own_residual) ** 2 + (residual + typical_residual) ** 2)
    fixed = own_bias + errors + quadratic
    # Both nu stand for the typical one here, and all of A: a larger bound is right as well.
    square = np.maximum(norm * norm + 2.0 * (best_score - shift + fixed), 0.0)
    slope = 2.0 * residual + both_residuals
    delta = slope + np.sqrt(slope * slope + square + 2.0 * (fixed + residual * both_norms))
    rounded = canonical * (delta + residual + both_residuals) ** 2 + 2.0**-60
    above = (
        fixed
        + both_residuals * delta
        + residual * np.minimum(both_norms, 2.0 * delta)
        + 2.0 * rounded
    )
    bounded = (
        (norm + residual <= radius)
        & (best_score >= 0.0)
        & (best_score - shift + above <= radius * radius)
    )
    return np.where(bounded, best_score + above, np.inf)


def distance_above(
    score: NDArray,
    norm: NDArray,
    residual: NDArray,
    own_norm: NDArray,
    own_residual: NDArray,
    own_bias: NDArray,
    *,
    shift: float,
    summed: float,
) -> NDArray[np.float64]:
    """Return upper bounds of the distances of rows within R to centres, in the frame.

    Parameters
    ----------
    score : ndarray of shape (n,)
        The biased score of the row and its centre.
    norm, residual, own_norm, own_residual, own_bias, shift, summed
        As of :func:`limit`.
    """
    error = score_error(norm, own_norm, shift, summed)
    square = norm * norm + 2.0 * (score - shift + own_bias + error)
    return np.sqrt(np.maximum(square, 0.0)) + residual + own_residual


def distance_below(
    score: NDArray,
    norm: NDArray,
    smallest_norm: NDArray,
    residual: NDArray,
    *,
    shift: float,
    typical_norm: float,
    typical_residual: float,
    summed: float,
) -> NDArray[np.float64]:
    """Return lower bounds of the distances of rows within R to some centres, in the frame.

    Parameters
    ----------
    score : ndarray of shape (n,)
        At most the biased scores of the row and those centres.
    norm, smallest_norm, residual : ndarray of shape (n,)
        N, n and r.
    shift, typical_norm, typical_residual, summed
        As of :func:`limit`.
    """
    error = score_error(norm, typical_norm, shift, summed)
    square = smallest_norm * smallest_norm + 2.0 * (score - shift - error)
    return np.sqrt(np.maximum(square, 0.0)) - residual - typical_residual
