"""Scores of rows of few features to few centres, all of which are kept in registers.

The table is that of :mod:`scores`.  The last bits of its lines' and its columns' largest are
replaced by their numbers, and scores are compared by their bits, as integers, three at a time.
That is the order of those that are not negative, which are more than all others; so all starts are
raised by the same *lift* L, and what is still negative counts as 0: then the best score is taken
for less ahead than it is, and where it is negative itself nothing is certain.  The score of the
nearest centre, at the squared distance D, is ``(R**2 - D) / 2 + L``.  With ``L = 2 q**2``, q the
second least norm of all centres (one may be the origin), that is positive for rows with ``R <= 1.5
q``, and for others that are less far from their centre than from the origin, or not much farther.
"""

from __future__ import annotations

import triton
import triton.language as tl

from lloydia.backends.cuda.device_functions.feature_loads import features
from lloydia.backends.cuda.low_dim.scores import entry_of, framed, last_of, line_of, score, settled
from lloydia.backends.cuda.runtime.launching import COMPILED

__all__ = ["approximate_few", "frame_centers", "keep"]


@triton.jit
def lifted(entries, lift, d: tl.constexpr, KEPT: tl.constexpr):
    """Return the entries of centres, with all starts raised."""
    kept = ()
    for j in tl.static_range(KEPT):
        kept = kept + (entries[j][:d] + (entries[j][d] + lift,),)
    return kept


@triton.jit
def keep(table, lift, d: tl.constexpr, PITCH: tl.constexpr, KEPT: tl.constexpr):
    """Return the first centres of the table, in registers, and lifted."""
    kept = ()
    for j in tl.static_range(KEPT):
        kept = kept + (features(table, j * PITCH, None, d + 1),)
    return lifted(kept, lift, d, KEPT)


@triton.jit
def frame_centers(centers, frame, k, d: tl.constexpr, KEPT: tl.constexpr):
    """Return what :func:`tabulate` and :func:`keep` do, without a table: each thread by itself."""
    reach = tl.full((), 0.0, tl.float32)
    least = tl.full((), float("inf"), tl.float32)
    second = least
    kept = ()
    for j in tl.static_range(KEPT):
        there = tl.full((), j, tl.int32) < k
        entry, square = entry_of(features(centers, j * d, there, d), there, frame, d, KEPT)
        kept = kept + (entry,)
        reach = tl.maximum(reach, tl.where(there, square, 0.0))
        own = tl.where(there, square, float("inf"))
        second = tl.minimum(second, tl.maximum(least, own))
        least = tl.minimum(least, own)
    line, lift = line_of(reach, least, second, frame, d, KEPT)
    return lifted(kept, lift, d, KEPT), line


@triton.jit
def most_of_three(a, b, c):
    """Return the largest of three: since Hopper both are one instruction, if they stay together."""
    if COMPILED:
        return tl.inline_asm_elementwise(
            "max.s32 $0, $1, $2; max.s32 $0, $0, $3;", "=&r,r,r,r", [a, b, c],
            dtype=tl.int32, is_pure=True, pack=1,
        )  # fmt: skip
    return tl.maximum(tl.maximum(a, b), c)


@triton.jit
def most_of(values):
    """Return the largest of some vectors."""
    count: tl.constexpr = len(values)
    most = values[0]
    for i in tl.static_range(1, count - 1, 2):
        most = most_of_three(most, values[i], values[i + 1])
    return tl.maximum(most, values[count - 1]) if count % 2 == 0 else most


@triton.jit
def two_most(values):
    """Return the largest of some vectors, and the second largest, or 0 of one alone."""
    count: tl.constexpr = len(values)
    best, second = values[0], tl.zeros_like(values[0])
    if count > 1:
        best, second = tl.maximum(best, values[1]), tl.minimum(best, values[1])
    for i in tl.static_range(2, count - 1, 2):
        high, low = tl.maximum(values[i], values[i + 1]), tl.minimum(values[i], values[i + 1])
        second = most_of_three(tl.minimum(best, high), second, low)
        best = tl.maximum(best, high)
    if (count > 2) & (count % 2 == 1):
        second = tl.maximum(second, tl.minimum(best, values[count - 1]))
        best = tl.maximum(best, values[count - 1])
    return best, second


@triton.jit
def named(vectors, others):
    """Return vectors whose last bits are their numbers; `others` has the bits that stay."""
    out = ()
    for i in tl.static_range(len(vectors)):
        out = out + ((vectors[i] & others) | i,)
    return out


@triton.jit
def approximate_few(
    x, kept, frame, k, line, d: tl.constexpr, GROUP: tl.constexpr, KEPT: tl.constexpr,
    EACH: tl.constexpr,
):  # fmt: skip
    """Return what :func:`approximate` does; all centres are in registers."""
    LAST: tl.constexpr = last_of(KEPT)
    tl.static_assert((GROUP <= LAST + 1) & (KEPT <= GROUP * (LAST + 1)))
    # All bits but the last: k is positive.  Since the compiler does not know that, and by thread,
    # to name a score takes one operation.
    others = tl.minimum(tl.arange(0, x[0][0].shape[0]) + k, -1 - LAST)
    names, sure = (), ()
    for e in tl.static_range(EACH):
        y = framed(x[e], frame, d)
        table = ()
        for j in tl.static_range(KEPT):
            table = table + (score(y, kept[j], d).to(tl.int32, bitcast=True),)
        lines, columns = (), ()
        for j in tl.static_range(0, KEPT, GROUP):
            lines = lines + (most_of(table[j : j + GROUP]),)
        for i in tl.static_range(GROUP):
            columns = columns + (most_of(table[i::GROUP]),)
        best, second = two_most(named(lines, others))
        column, behind = two_most(named(columns, others))
        second = most_of_three(second, behind, tl.zeros_like(second))
        label = (best & LAST) * GROUP + (column & LAST)
        best, second = best.to(tl.float32, bitcast=True), second.to(tl.float32, bitcast=True)
        sure = sure + (settled(y, best, second, line, d),)
        names = names + (label,)
    return names, sure
