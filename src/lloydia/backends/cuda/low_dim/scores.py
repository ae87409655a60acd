r"""Scores of rows of few features: a row in registers, centres broadcast.

Scores are those of :mod:`lloydia.exact.certificate`, in float32, in a frame fixed for the run; the
largest wins, and the second largest says whether that is certain.  A comparison costs more than the
products of a score, so centres stand in a table of GROUP columns, and only the largest of every
line and of every column is followed: the best score is the largest of both, and the second
best is not in its line or not in its column, so it is the second largest of the lines' largest, or
of the columns'.

**How far off.**  With K the factor of the certificate and e what underflows, the score of a centre
of norm N is off by at most ``K (R N + N**2) + e <= K (R**2 / 2 + 3 N**2 / 2) + e``.  The table has
all starts raised by ``p = 3 K N**2 / 2``: scores are too low by at most ``F = K R**2 / 2 + e``, and
too high by at most ``F + 2 p``.  So a centre is nearest if its score beats all others' by more than
``2 (F + p)`` with its own p: one far from all rows makes no other's uncertain.  The winner's N is
at most

* C, the norm of the farthest centre; and
* ``1.01 (2 R + r)``, with r the least norm of all.  For let the nearest be at distance ``a <= R +
  r``.  If N is more, ``N - R >= a + N / 110``, so the nearest's score is larger by at least ``((N -
  R)**2 - a**2) / 2 >= N**2 / 500``, which is more than both errors but for 2 e (and 2 K L, below):
  the winner is ahead by at most that.

The square of the latter is less than ``5.2 (R**2 + r**2)``.  A lift L (:mod:`kept`) makes all
scores off by K L more, either way, so twice that is added.  Centres so far away that float32 could
not hold their scores never win; a row that may be theirs is never certain, nor is any where all
centres are far.
"""

from __future__ import annotations

import triton
import triton.language as tl

from lloydia.backends.cuda.device_functions.feature_loads import features
from lloydia.backends.cuda.runtime.launching import ceil_div

__all__ = [
    "approximate",
    "contest",
    "entry_of",
    "framed",
    "group_of",
    "kept_of",
    "last_of",
    "line_of",
    "proof",
    "score",
    "settled",
    "tabulate",
]

# Squares of norms: rows that may be certain are below the first, centres that may win below the
# second.  The third is less than every score.
FAR_ROW, FAR_CENTER, LEAST = tl.constexpr(1e30), tl.constexpr(1e36), tl.constexpr(-3.0e38)

# Numbers of the table that stay in registers.
MOST_KEPT = 64


def group_of(k: int) -> int:
    """Return how many columns the table of k centres has."""
    return 4 if k < 48 else 8


def kept_of(k: int, d: int) -> int:
    """Return how many centres stay in registers: all that the table holds, or none."""
    padded = ceil_div(k, 4) * 4
    return padded if padded * (d + 1) <= MOST_KEPT else 0


@triton.constexpr_function
def last_of(KEPT):
    """Return the largest number that a line or a column of a table kept in registers may have."""
    return 3 if KEPT <= 16 else 7


@triton.constexpr_function
def factor_of(d, KEPT):
    """Return K of :mod:`lloydia.exact.certificate`, rounded up; with KEPT, scores have names.

    Of the d + 4 roundings ``N**2`` needs d / 2 + 2: the others are there for ``|b_j|**2``, which is
    summed in float32.  Where there are names, one more is of starts that are lifted.
    """
    more = 2 * (last_of(KEPT) + 1) + 1 if KEPT > 0 else 0
    return (d + 4 + more) * 2.0**-24 * 1.001


@triton.jit
def framed(x, frame, d: tl.constexpr):
    """Return features in the frame (d origins and the scale), in float32.

    Without a frame they are that already.
    """
    if frame is None:
        return x
    else:
        kind: tl.constexpr = frame[0].dtype
        y = ()
        for f in tl.static_range(d):
            # The scale is a power of two: the difference is rounded once.  Where an origin times
            # the scale is beyond the type, y is infinite, and no row is certain.
            y = y + (tl.fma(x[f].to(kind), frame[d], -(frame[f] * frame[d])).to(tl.float32),)
        return y


@triton.jit
def entry_of(c, there, frame, d: tl.constexpr, KEPT: tl.constexpr):
    """Return the entry of centres, or of one, and their ``|b_j|**2``; others never win.

    An entry is d features in the frame and ``p_j - |b_j|**2 / 2``, which is summed in float32.
    """
    factor: tl.constexpr = factor_of(d, KEPT)
    b = framed(c, frame, d)
    squares = tl.zeros_like(b[0])
    for f in tl.static_range(d):
        squares = tl.fma(b[f], b[f], squares)
    held = there & (squares < FAR_CENTER)
    entry = ()
    for f in tl.static_range(d):
        entry = entry + (tl.where(held, b[f], 0.0),)
    start = tl.where(held, (1.50001 * factor - 0.5) * squares, LEAST)
    return entry + (start,), squares


@triton.jit
def tabulate(
    centers, frame, table, k, d: tl.constexpr, PITCH: tl.constexpr, GROUP: tl.constexpr,
    KEPT: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Write centres in the frame; return the line of :func:`proof`, and the lift.

    The table holds an entry a centre, one every PITCH, and centres that never win up to a multiple
    of GROUP.  Every program writes all of it, and the same: it reads what it wrote.
    """
    reach = 0.0
    least = float("inf")
    second = float("inf")
    padded = tl.cdiv(k, GROUP) * GROUP
    for first in range(0, padded, BLOCK):
        j = first + tl.arange(0, BLOCK)
        entry, squares = entry_of(features(centers, j * d, j < k, d), j < k, frame, d, KEPT)
        for f in tl.static_range(d + 1):
            tl.store(table + j * PITCH + f, entry[f], mask=j < padded)
        reach = tl.maximum(reach, tl.max(tl.where(j < k, squares, 0.0), 0))
        squares = tl.where(j < k, squares, float("inf"))
        own = tl.min(squares, 0)
        which = tl.min(tl.where(squares == own, j, k), 0)
        others = tl.min(tl.where(j == which, float("inf"), squares), 0)
        second = tl.minimum(tl.maximum(least, own), tl.minimum(second, others))
        least = tl.minimum(least, own)
    # What other threads of this program have stored is read next.
    tl.debug_barrier()
    return line_of(reach, least, second, frame, d, KEPT)


@triton.jit
def line_of(reach, least, second, frame, d: tl.constexpr, KEPT: tl.constexpr):
    """Return the line of :func:`proof` and the lift, which is 0 where not all centres are KEPT.

    By the largest ``|b_j|**2``, the least, and the second least, which is infinite of one centre:
    so lifted, its score is certain to beat the 0 of none.
    """
    lift = tl.zeros((), tl.float32)
    if KEPT > 0:
        lift = 2.0 * tl.minimum(second, FAR_ROW)
    factor: tl.constexpr = factor_of(d, KEPT)
    # Bounds on the largest and the least |c'_j|**2; infinity certifies nothing.
    farthest = reach.to(tl.float64) * 1.00001 + 1e-30
    nearest = least.to(tl.float64) * 1.00001 + 1e-30
    tiny = frame[d].to(tl.float64) * 2.0**-536
    underflow = d * tiny * tiny + 1e-36
    far = nearest >= FAR_ROW
    a = tl.where(far, float("inf"), 1.5 * factor * farthest + underflow)
    b = 0.5 * factor + 1e-14
    c = tl.where(far, float("inf"), 7.8 * factor * nearest + underflow)
    lifted = factor * 1.00001 * lift.to(tl.float64)
    # More than 2: the difference of scores is rounded, and this bound itself.
    twice: tl.constexpr = 2.00003
    a, c = (twice * (a + lifted)).to(tl.float32), (twice * (c + lifted)).to(tl.float32)
    return (a, 16.0 * twice * b, c, twice * b), lift


@triton.jit
def proof(radius, line):
    """Return a bound on ``2 (F + p)`` for rows whose squared radius is `radius`, or less."""
    a, b, c, e = line
    return tl.fma(radius, e, tl.minimum(a, tl.fma(radius, b, c)))


@triton.jit
def contest(best, second, label, score, j):
    """Return the best score, the second best and the winner's name, one more contestant seen."""
    second = tl.maximum(second, tl.minimum(best, score))
    label = tl.where(score > best, j, label)
    return tl.maximum(best, score), second, label


@triton.jit
def score(y, centre, d: tl.constexpr):
    """Return the scores of a vector of rows for a centre of the table."""
    found = tl.full(y[0].shape, centre[d], tl.float32)
    for f in tl.static_range(d):
        found = tl.fma(y[f], tl.full(y[0].shape, centre[f], tl.float32), found)
    return found


@triton.jit
def settled(y, best, second, line, d: tl.constexpr):
    """Return whether the best score of each row is certain to be."""
    radius = tl.zeros(y[0].shape, tl.float32)
    for f in tl.static_range(d):
        radius = tl.fma(y[f], y[f], radius)
    return ((best - second) > proof(radius, line)) & (radius < FAR_ROW)


@triton.jit
def approximate(
    x, table, frame, k, line, d: tl.constexpr, PITCH: tl.constexpr, GROUP: tl.constexpr,
    EACH: tl.constexpr,
):  # fmt: skip
    """Return the labels of EACH vectors of rows by their scores, and whether each is certain."""
    none = tl.full(x[0][0].shape, -float("inf"), tl.float32)
    y = ()
    best, second, label, tops = (), (), (), ()
    for e in tl.static_range(EACH):
        y = y + (framed(x[e], frame, d),)
        best, second = best + (none,), second + (none,)
        label = label + (tl.zeros(none.shape, tl.int32),)
        for _ in tl.static_range(GROUP):
            tops = tops + (none,)
    for j in range(0, k, GROUP):
        centre = ()
        for i in tl.static_range(GROUP):
            centre = centre + (features(table, (j + i) * PITCH, None, d + 1),)
        lines, before = (best, second, label), tops
        best, second, label, tops = (), (), (), ()
        for e in tl.static_range(EACH):
            top = none
            for i in tl.static_range(GROUP):
                found = score(y[e], centre[i], d)
                top = found if i == 0 else tl.maximum(top, found)
                tops = tops + (tl.maximum(before[e * GROUP + i], found),)
            led = contest(lines[0][e], lines[1][e], lines[2][e], top, j)
            best, second, label = best + (led[0],), second + (led[1],), label + (led[2],)
    names, sure = (), ()
    for e in tl.static_range(EACH):
        top, behind, column = none, none, tl.zeros(none.shape, tl.int32)
        for i in tl.static_range(GROUP):
            top, behind, column = contest(top, behind, column, tops[e * GROUP + i], i)
        sure = sure + (settled(y[e], best[e], tl.maximum(second[e], behind), line, d),)
        names = names + (label[e] + column,)
    return names, sure
