r"""The certificate of scores computed from half-precision numbers by matrix units.

**Scores.**  In a frame (:mod:`lloydia.exact.certificate`) a row is ``x = y + e`` and a centre
``c_j = b_j + f_j``, where y and b_j are stored (as one float16 number a feature, or as the sum of
two) and e and f_j are what that leaves out.  With ``a_j = y - b_j``,

    |x - c_j|^2 = |a_j|^2 + 2 a_j.e + |e|^2 - 2 (a_j + e).f_j + |f_j|^2.

So what orders the centres, ``t_j = (|x - c_j|^2 - const) / 2``, is the score
``S_j = |b_j|^2 / 2 - y.b_j`` up to one of

    -b_j.e - (a_j + e).f_j + |f_j|^2 / 2      (without |x|^2, as usual), or
     a_j.e - (a_j + e).f_j + |f_j|^2 / 2      (without |y|^2 + |e|^2).

Let ``N >= |y|``, ``r >= |e|``, and for all j ``B >= |b_j|``, ``g >= |f_j|``.  With
``delta_j = |a_j| = sqrt(|y|^2 + 2 S_j)`` these are at most ``alpha + beta delta_j + g r + g^2/2``,
with ``(alpha, beta)`` either ``(r B, g)`` or ``(0, r + g)``: the first is sharp for centres near
the origin, the second (the triangle inequality) for rows near their centre.

**Computed scores** ``s_j = S_j + shift +- nu``, where ``shift`` makes the scores that matter
positive, so that they order like their bits:

1. Products of float16 numbers are exact in float32.  A matrix unit adds at least 8 of them to its
   sum at a time; it cuts each addend off, and the result, at the last bit of the largest addend
   (Fasi, Higham, Mikaitis, Pranesh, PeerJ CS 7:e330, 2021; Hopper keeps more bits and adds 16 at a
   time).  No addend or partial sum exceeds ``N B`` (Cauchy-Schwarz), so q products are off by at
   most ``(q + 2 q / 8) 2**-23 N B``.  Chunks of features that are summed apart and then
   added in float32 cost one rounding each instead, ``2**-24 N B``; so do groups of chunks:
   :func:`summation`.
2. The start ``|b_j|^2 / 2 + shift <= H`` is added last, as the sum of three float16 numbers times a
   power of two of at most 2 R, in one step of 16 products: ``20 * 2**-23 (H + N B)`` covers it.
   Rounded to float32 and added in it, it costs ``2**-24 (2 H + N B)``.

**Pairs.**  Where ``y = y' + y''`` and ``b = b' + b''``, sums of two float16 numbers, the products
``y''.b''`` are left out.  The others are added chunk by chunk, the small ones first, so that all
but a ``2**-7`` of the error is that of ``y'.b'``.  What a pair leaves out of ``x``, given
``r' >= |x - y'|``, is at most :func:`pair_rest`.

**Certified.**  Let ``s_1 <= s_2`` be the two least, ``delta^2 = N^2 + 2 (s_2 - shift + nu)``, and

    s_2 - s_1 > 2 (alpha + beta delta + nu) + (r + g)^2.

Then centre 1 is the nearest.  For any j other than 1 put ``P = s_2 - shift - nu <= S_j``.  Where
``|y|^2 + 2 P >= beta^2``, ``S - beta sqrt(|y|^2 + 2 S)`` does not decrease from P on, hence
``t_j >= P - alpha - beta delta - g r - g^2/2``, while
``t_1 <= s_1 - shift + nu + alpha + beta delta + g r + g^2/2``.  Otherwise
``s_2 - shift - nu < (beta^2 - |y|^2) / 2``, and ``s_1 - shift >= -|y|^2 / 2 - nu`` as
``delta_1^2 >= 0``: the gap is below ``beta^2 / 2 + 2 nu`` and certifies nothing.

Canonical D is itself rounded, to a relative ``(d + 4) 2**-53``, and may underflow;
``(d + 4) 2**-52 (delta + r + g)^2 + 2**-60`` covers it while ``s <= 2**500``.

**Far centres.**  A centre with ``|c_j| > 3 R`` would make B and g useless.  For a row with
``|x| <= R`` its ``t_j`` is at least ``3 R (3 R / 2 - R) = 1.5 R^2``: the score ``1.5 R^2 + shift``
stands for it (and for the columns that fill the last tile).  It is no rival where
``s_1 - shift + (the bound) <= R^2``, for then ``t_1 <= R^2 + N r <= 1.25 R^2``.  Rows outside R,
rows whose nearest centre may be far, and rows with a score below 0 stay in doubt.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "ADDED",
    "FAR_CENTER",
    "FAR_SCORE",
    "LAST_STEP",
    "canonical_error",
    "certified",
    "pair_rest",
    "summation",
]

# Where centres begin to be far, in units of R, and the score that stands for them, in R**2.
FAR_CENTER, FAR_SCORE = 3.0, 1.5

# Of adding the start, relative to H + N B: in a matrix unit, or in float32.
LAST_STEP, ADDED = 20 * 2.0**-23, 2.0**-23


def summation(n_features: int, chunk: int, group: int | None = None) -> float:
    """Return the error of a sum of products by matrix units, relative to N B.

    Parameters
    ----------
    n_features : int
        d, or what it was padded to.
    chunk : int
        Features whose products a unit adds up before the result is added to others in float32.
    group : int, optional
        Features whose chunks are added up before the result is added to others.
    """
    additions = -(-min(n_features, group or n_features) // chunk)
    if group is not None:
        additions += -(-n_features // group)
    return (1.25 * min(n_features, chunk) + 3.0 + 0.5 * additions) * 2.0**-23


def pair_rest(rest: NDArray | float, n_features: int) -> NDArray | float:
    """Return a bound on what two float16 numbers leave out, where one leaves out `rest`."""
    return rest * (2.0**-11 * (1.0 + 2.0**-9)) + 2.0**-24 * math.sqrt(n_features)


def canonical_error(n_features: int) -> float:
    """Return the error of a difference of two canonical D, halved, relative to the larger."""
    return (n_features + 4) * 2.0**-52


def certified(
    least: NDArray,
    second: NDArray,
    norm: NDArray,
    rest: NDArray,
    *,
    shift: float,
    radius: float,
    largest: float,
    residual: float,
    start: float,
    summed: float,
    added: float,
    canonical: float,
    dropped: NDArray | float = 0.0,
) -> NDArray[np.bool_]:
    """Return whether the centre with the least computed score is proved to be the nearest.

    Parameters
    ----------
    least, second : ndarray of shape (n,)
        s_1 and s_2.
    norm, rest : ndarray of shape (n,)
        N and r.
    shift, radius : float
        ``shift`` and R.
    largest, residual, start : float
        B, g and H.
    summed, added, canonical : float
        Of :func:`summation`; `LAST_STEP` or `ADDED`; of :func:`canonical_error`.
    dropped : ndarray of shape (n,), or float
        A bound on the products that were left out.
    """
    nu = (summed + added) * norm * largest + added * start + dropped
    delta = np.sqrt(np.maximum(norm * norm + 2.0 * (second - shift + nu), 0.0))
    both = rest + residual
    bound = (
        2.0 * (np.minimum(rest * largest, rest * delta) + residual * delta + nu)
        + both * both
        + canonical * (delta + both) ** 2
        + 2.0**-60
    )
    inside = (norm + rest <= radius) & (least >= 0.0)
    return inside & (second - least > bound) & (least - shift + bound <= radius * radius)
