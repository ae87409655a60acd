r"""Scores of rows of few features: a row in registers, centres broadcast.

Scores are those of :mod:`lloydia.exact.certificate`, in float32, in a frame fixed for the run; the
largest wins, and the second largest says whether that is certain.  A comparison costs more than the
products of a score, so centres are compared as lines and columns, and only the largest score of
every line and of every column is followed: the best score is the largest of both, and the second
best is not in its line or not in its column, so it is the second largest of the lines' largest, or
of the columns'.

Scores are compared by their bits, as integers, three at a time.  That is the order of those that
are not negative, which are more than all others; so all half squared norms are raised by the same
*lift* L (:mod:`center_table`), and what is still negative counts as 0: then the best score is taken
for less ahead than it is, and where it is negative itself nothing is certain.  The score of the
nearest centre, at the squared distance D, is ``(R**2 - D) / 2 + L``.  With ``L = 2 q**2``, q the
second least norm of all centres (one may be the origin), that is positive for rows with ``R <= 1.5
q``, and for others that are less far from their centre than from the origin, or not much farther.

**How far off.**  With K the factor of the certificate and e what underflows, the score of a centre
of norm N is off by at most ``K (R N + N**2) + e <= K (R**2 / 2 + 3 N**2 / 2) + e``.  The table has
all half squared norms raised by ``p = 3 K N**2 / 2``, too: scores are too low by at most ``F = K
R**2 / 2 + e``, and too high by at most ``F + 2 p``.  So a centre is nearest if its score beats all
others' by more than ``2 (F + p)`` with its own p: one far from all rows makes no other's uncertain.
The winner's N is at most

* C, the norm of the farthest centre; and
* ``1.01 (2 R + r)``, with r the least norm of all.  For let the nearest be at distance ``a <= R +
  r``.  If N is more, ``N - R >= a + N / 110``, so the nearest's score is larger by at least ``((N -
  R)**2 - a**2) / 2 >= N**2 / 500``, which is more than both errors but for 2 e (and 2 K L, below):
  the winner is ahead by at most that.

The square of the latter is less than ``5.2 (R**2 + r**2)``.  The lift makes all scores off by K L
more, either way, so twice that is added.  Centres so far away that float32 could not hold their
scores never win; a row that may be theirs is never certain, nor is any where all centres are far.
"""

from __future__ import annotations

import triton
import triton.language as tl

from lloydia.backends.cuda.device_functions.ptx.selection import max_of_three
from lloydia.backends.cuda.device_functions.ptx.vector_loads import load_floats

__all__ = [
    "CENTERS_PER_STEP",
    "FAR_ROW",
    "HEADER",
    "certify",
    "framed",
    "line_of",
    "margin",
    "pitch_of",
]

# Centres that are compared at a time: the table is padded for the last ones.
CENTERS_PER_STEP = tl.constexpr(16)
# The square of the norm of rows that may be certain is below it.
FAR_ROW = tl.constexpr(1e30)
# Numbers that the table of centres begins with: those of :func:`margin`.
HEADER = tl.constexpr(4)


@triton.constexpr_function
def pitch_of(d):
    """Return how many numbers a centre takes in the table: d + 1, in loads of four."""
    return -(-(d + 1) // 4) * 4


@triton.jit
def center_of(table, j, d: tl.constexpr):
    """Return what the table has of a centre: features in the frame, and the start of its score."""
    COUNT: tl.constexpr = pitch_of(d)
    return load_floats(table + HEADER + j * COUNT, COUNT)


@triton.jit
def framed(x, frame, d: tl.constexpr):
    """Return features in the frame (d origins and the scale), in float32."""
    kind: tl.constexpr = frame[0].dtype
    y = ()
    for f in tl.static_range(d):
        # The scale is a power of two: the difference is rounded once.  Where an origin times the
        # scale is beyond the type, y is infinite, and no row is certain.
        y = y + (tl.fma(x[f].to(kind), frame[d], -(frame[f] * frame[d])).to(tl.float32),)
    return y


@triton.jit
def line_of(table):
    """Return the numbers that the table of centres begins with."""
    return tl.load(table), tl.load(table + 1), tl.load(table + 2), tl.load(table + 3)


@triton.jit
def margin(radius, line):
    """Return a bound on ``2 (F + p)`` for rows whose squared radius is `radius`, or less."""
    a, b, c, e = line
    return tl.fma(radius, e, tl.minimum(a, tl.fma(radius, b, c)))


@triton.jit
def score_of(y, center, d: tl.constexpr):
    """Return the bits of the scores of a vector of rows for a centre of the table."""
    score = tl.full(y[0].shape, center[d], tl.float32)
    for f in tl.static_range(d):
        score = tl.fma(y[f], tl.full(y[0].shape, center[f], tl.float32), score)
    return score.to(tl.int32, bitcast=True)


@triton.jit
def max_of(values):
    """Return the largest of some vectors."""
    count: tl.constexpr = len(values)
    most = values[0]
    for i in tl.static_range(1, count - 1, 2):
        most = max_of_three(most, values[i], values[i + 1])
    return tl.maximum(most, values[count - 1]) if count % 2 == 0 else most


@triton.jit
def two_largest(values):
    """Return the largest of some vectors, an even number, and the second largest."""
    best, second = tl.maximum(values[0], values[1]), tl.minimum(values[0], values[1])
    for i in tl.static_range(2, len(values), 2):
        high, low = tl.maximum(values[i], values[i + 1]), tl.minimum(values[i], values[i + 1])
        second = max_of_three(tl.minimum(best, high), second, low)
        best = tl.maximum(best, high)
    return best, second


@triton.jit
def compare(y, table, j, d: tl.constexpr, COLUMNS: tl.constexpr):
    """Return the largest scores of CENTERS_PER_STEP centres, in COLUMNS columns and several lines.

    The centres from number j on: the largest score, that of other lines, the number of the first
    centre of its line, and the largest of each column.
    """
    LINES: tl.constexpr = CENTERS_PER_STEP // COLUMNS
    tops, columns = (), ()
    for line in tl.static_range(LINES):
        scores = ()
        for i in tl.static_range(COLUMNS):
            center = center_of(table, j + (line * COLUMNS + i), d)
            scores = scores + (score_of(y, center, d),)
        tops = tops + (max_of(scores),)
        columns = columns + (scores,)
    best, second = two_largest(tops)
    label = tl.zeros(best.shape, tl.int32) + j
    for line in tl.static_range(1, LINES):
        label = tl.where(tops[line] == best, j + line * COLUMNS, label)
    raised = ()
    for i in tl.static_range(COLUMNS):
        column = ()
        for line in tl.static_range(LINES):
            column = column + (columns[line][i],)
        raised = raised + (max_of(column),)
    return best, second, label, raised


@triton.jit
def certify(y, table, line, k, d: tl.constexpr, ONE_GROUP: tl.constexpr):
    """Return the labels of a vector of rows in the frame by their scores, and which are certain.

    `table` is that of :mod:`center_table`, of k centres, and `line` what it begins with.  ONE_GROUP
    is whether k is at most CENTERS_PER_STEP.
    """
    COLUMNS: tl.constexpr = 4 if ONE_GROUP else 8
    if ONE_GROUP:
        best, second, label, columns = compare(y, table, 0, d, COLUMNS)
    else:
        none = tl.zeros(y[0].shape, tl.int32)
        best, second, label, columns = none, none, none, (none,) * COLUMNS
        for j in range(0, k, CENTERS_PER_STEP):
            top, other, number, others = compare(y, table, j, d, COLUMNS)
            raised = ()
            for i in tl.static_range(COLUMNS):
                raised = raised + (tl.maximum(columns[i], others[i]),)
            columns = raised
            second = max_of_three(second, other, tl.minimum(best, top))
            label = tl.where(top > best, number, label)
            best = tl.maximum(best, top)
    _, behind = two_largest(columns)
    for i in tl.static_range(1, COLUMNS):
        label = tl.where(columns[i] == best, label | i, label)
    second = max_of_three(second, behind, tl.zeros_like(second))
    radius = tl.zeros(y[0].shape, tl.float32)
    for f in tl.static_range(d):
        radius = tl.fma(y[f], y[f], radius)
    ahead = best.to(tl.float32, bitcast=True) - second.to(tl.float32, bitcast=True)
    return label, (ahead > margin(radius, line)) & (radius < FAR_ROW)
