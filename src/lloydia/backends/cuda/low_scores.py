r"""Scores of rows of few features: a row in registers, centres broadcast.

Scores are those of :mod:`lloydia.exact.certificate`, in float32, in a frame fixed for the run; the
largest wins, and the second largest says whether that is certain.  A comparison costs more than the
products of a score, so centres stand in a table of GROUP columns, and only the largest of every
line and of every column is followed exactly: the best score is the largest of both, and the second
best is not in its line or not in its column, so it is the second of the lines or of the columns.
"""

from __future__ import annotations

import triton
import triton.language as tl

from lloydia.backends.cuda.launching import ceil_div

__all__ = [
    "approximate",
    "approximate_few",
    "canonical",
    "canonical_few",
    "contest",
    "features",
    "framed",
    "group_of",
    "keep",
    "kept_of",
    "settled",
    "tabulate",
    "tile_of",
]

# Centres under way at a time.
UNROLL = tl.constexpr(4)


# Numbers of the table that stay in registers.
MOST_KEPT = 64


def group_of(k: int) -> int:
    """Return how many columns the table of k centres has."""
    return 4 if k < 48 else 8


def kept_of(k: int, d: int) -> int:
    """Return how many centres stay in registers: all that the table holds, or none."""
    padded = ceil_div(k, 4) * 4
    return padded if padded * (d + 1) <= MOST_KEPT else 0


@triton.jit
def features(source, at, mask, d: tl.constexpr):
    """Return d vectors (or numbers): the features of the rows that start at `at`."""
    x = ()
    for f in tl.static_range(d):
        if mask is None:
            x = x + (tl.load(source + at + f),)
        else:
            x = x + (tl.load(source + at + f, mask=mask, other=0.0),)
    return x


@triton.jit
def tile_of(X, block, n, d: tl.constexpr, ROWS: tl.constexpr):
    """Return the features of a block of rows, 0 for those that are not there."""
    lane = tl.arange(0, ROWS)
    first = tl.full((), ROWS, tl.int64) * block
    return features(X + first * d, lane * d, lane < n - first, d)


@triton.jit
def framed(x, frame, d: tl.constexpr):
    """Return features in the frame (d origins and the scale), in float32."""
    kind: tl.constexpr = frame[0].dtype
    y = ()
    for f in tl.static_range(d):
        y = y + (((x[f].to(kind) - frame[f]) * frame[d]).to(tl.float32),)
    return y


@triton.jit
def tabulate(
    centers, frame, table, k, d: tl.constexpr, PITCH: tl.constexpr, GROUP: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Write centres in the frame; return (a, b): scores of radius R are off by ``a + b R**2``.

    The table holds d features and ``-|b_j|**2 / 2`` a centre, one every PITCH, and centres that
    never win up to a multiple of GROUP.  Every program writes all of it, and the same: it reads
    what it wrote.
    The line is that of :func:`lloydia.exact.certificate.error_line`, with 2 d more roundings, since
    ``|b_j|**2 / 2`` is summed in float32; rounded up.
    """
    reach = 0.0
    padded = tl.cdiv(k, GROUP) * GROUP
    for first in range(0, padded, BLOCK):
        j = first + tl.arange(0, BLOCK)
        b = framed(features(centers, j * d, j < k, d), frame, d)
        squares = tl.zeros((BLOCK,), tl.float32)
        for f in tl.static_range(d):
            squares = tl.fma(b[f], b[f], squares)
            tl.store(table + j * PITCH + f, tl.where(j < k, b[f], 0.0), mask=j < padded)
        start = tl.where(j < k, -0.5 * squares, -float("inf"))
        tl.store(table + j * PITCH + d, start, mask=j < padded)
        reach = tl.maximum(reach, tl.max(tl.where(j < k, squares, 0.0), 0))
    # What other threads of this program have stored is read next.
    tl.debug_barrier()
    # A bound on |c'_j|**2; infinity certifies nothing.
    square = reach.to(tl.float64) * 1.00001 + 1e-30  # type: ignore[attr-defined]
    unit: tl.constexpr = 2.0**-24
    factor = (3 * d + 6) * unit * 1.001
    # 2**-536 the scale.
    tiny = frame[d].to(tl.float64) * 4.450147717014403e-162
    underflow = d * tiny * tiny + 1e-36
    a = 1.5 * factor * square + underflow
    b = 0.5 * factor + 1e-14
    a = tl.where(square < 1e24, a, float("inf"))
    return (a * 1.000001).to(tl.float32), (b * 1.00001 + 0.0 * a).to(tl.float32)


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
def settled(y, best, second, a, b, d: tl.constexpr):
    """Return whether the best score of each row is certain to be."""
    radius = tl.zeros(y[0].shape, tl.float32)
    for f in tl.static_range(d):
        radius = tl.fma(y[f], y[f], radius)
    # The difference is rounded once more.  A score is no number only where the radius is infinite.
    return (best - second) > 2.00001 * (a + b * radius)


@triton.jit
def approximate(
    x, table, frame, k, a, b, d: tl.constexpr, PITCH: tl.constexpr, GROUP: tl.constexpr,
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
            line = contest(lines[0][e], lines[1][e], lines[2][e], top, j)
            best, second, label = best + (line[0],), second + (line[1],), label + (line[2],)
    names, sure = (), ()
    for e in tl.static_range(EACH):
        top, behind, column = none, none, tl.zeros(none.shape, tl.int32)
        for i in tl.static_range(GROUP):
            top, behind, column = contest(top, behind, column, tops[e * GROUP + i], i)
        sure = sure + (settled(y[e], best[e], tl.maximum(second[e], behind), a, b, d),)
        names = names + (label[e] + column,)
    return names, sure


@triton.jit
def keep(table, d: tl.constexpr, PITCH: tl.constexpr, KEPT: tl.constexpr):
    """Return the first centres of the table in registers."""
    kept = ()
    for j in tl.static_range(KEPT):
        kept = kept + (features(table, j * PITCH, None, d + 1),)
    return kept


@triton.jit
def approximate_few(
    x, kept, frame, a, b, d: tl.constexpr, GROUP: tl.constexpr, KEPT: tl.constexpr,
    EACH: tl.constexpr,
):  # fmt: skip
    """Return what :func:`approximate` does; all centres are in registers."""
    none = tl.full(x[0][0].shape, -float("inf"), tl.float32)
    names, sure = (), ()
    for e in tl.static_range(EACH):
        y = framed(x[e], frame, d)
        best, second, label = none, none, tl.zeros(none.shape, tl.int32)
        tops = (none,) * GROUP
        for j in tl.static_range(0, KEPT, GROUP):
            top, before = none, tops
            tops = ()
            for i in tl.static_range(GROUP):
                found = score(y, kept[j + i], d)
                top = found if i == 0 else tl.maximum(top, found)
                tops = tops + ((found if j == 0 else tl.maximum(before[i], found)),)
            best, second, label = contest(best, second, label, top, j)
        top, behind, column = none, none, tl.zeros(none.shape, tl.int32)
        for i in tl.static_range(GROUP):
            top, behind, column = contest(top, behind, column, tops[i], i)
        sure = sure + (settled(y, best, tl.maximum(second, behind), a, b, d),)
        names = names + (label + column,)
    return names, sure


@triton.jit
def canonical(x, centers, k, d: tl.constexpr, BLOCK: tl.constexpr):
    """Return the labels of a block of rows by canonical D."""
    least = tl.full((BLOCK,), float("inf"), tl.float64)
    label = tl.zeros((BLOCK,), tl.int32)
    for j in tl.range(0, k, loop_unroll_factor=UNROLL):
        c = features(centers, j * d, j < k, d)
        D = tl.zeros((BLOCK,), tl.float64)
        for f in tl.static_range(d):
            difference = x[f].to(tl.float64) - c[f].to(tl.float64)
            D += difference * difference
        label = tl.where(D < least, j, label)
        least = tl.minimum(least, D)
    return label


@triton.jit
def canonical_few(x, centers, k, d: tl.constexpr, ROWS: tl.constexpr, ACROSS: tl.constexpr):
    """Return what :func:`canonical` does of ROWS rows; ACROSS threads look at each."""
    least = tl.full((ROWS, ACROSS), float("inf"), tl.float64)
    label = tl.zeros((ROWS, ACROSS), tl.int32)
    for first in tl.range(0, k, ACROSS, loop_unroll_factor=UNROLL):
        j = first + tl.arange(0, ACROSS)
        c = features(centers, j * d, j < k, d)
        D = tl.zeros((ROWS, ACROSS), tl.float64)
        for f in tl.static_range(d):
            difference = x[f].to(tl.float64)[:, None] - c[f].to(tl.float64)[None, :]
            D += difference * difference
        better = (D < least) & (j < k)[None, :]
        label = tl.where(better, j[None, :], label)
        least = tl.where(better, D, least)
    # Of equals the first.
    nearest = tl.min(least, 1)[:, None]
    return tl.min(tl.where(least == nearest, label, k), 1)
