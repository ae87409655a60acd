"""The microkernel for few features: a row in every lane, which stays in registers.

A centre takes d multiply-adds and 2.5 more operations; a scan that writes indices into the scores
takes 4.5 more.  Two sets of maxima are kept: of each *place* in a panel, over all panels, and the
largest two of all *panels*, over their places.  The best centre is where the best place and the
best panel cross.  The second best differs from it in its place or in its panel, so it is the larger
of the second best place and of the second best panel.

Crossing them takes as long as a dozen centres, so up to SEQUENTIAL_CENTERS are scored one after the
other, three vectors of rows at a time: d multiply-adds and five operations a centre.
"""

from __future__ import annotations

from llvmlite import ir
from numba.core import cgutils

from lloydia.backends.cpu.simd.microkernel_rows_in_lanes import (
    ADDRESS,
    BYTES,
    FLOAT,
    GROUP,
    INT,
    IVECTOR,
    LANES,
    LOWEST_SCORE,
    PANEL,
    VECTOR,
    VECTORS,
    larger,
    load,
    smaller,
    splat,
    store,
)

__all__ = ["LOW_DIM", "SEQUENTIAL_CENTERS", "scan_low_dim", "scan_sequential"]

# These scans are used up to LOW_DIM features; up to SEQUENTIAL_CENTERS are scored in sequence.
LOW_DIM, SEQUENTIAL_CENTERS = 8, 12


def multiply_add(builder):
    """Return the function that emits ``a * b + c`` of vectors."""
    kind = ir.FunctionType(VECTOR, [VECTOR] * 3)
    function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.fmuladd.v{LANES}f32")
    return lambda a, b, c: builder.call(function, [a, b, c])


def two_largest(builder, a, b):
    """Merge two triples: the largest score, the next one and the name of the largest."""
    loser = smaller(builder, a[0], b[0])
    runner_up = larger(builder, loser, larger(builder, a[1], b[1]))
    name = builder.select(builder.fcmp_ordered(">", b[0], a[0]), b[2], a[2])
    return larger(builder, a[0], b[0]), runner_up, name


def scan_low_dim(builder, d, y, panels, half_squares, n_panels, best, second, which):
    """Emit the scan of a vector of rows; `which` receives the centre of the best score.

    No score holds an index here.  The `d` features and all results stay in registers; the other
    arguments are addresses, and the number of panels.
    """
    muladd = multiply_add(builder)
    x = [load(builder, y, 4 * GROUP * f, VECTOR, BYTES) for f in range(d)]

    def score(panel, half):
        for r in range(PANEL):
            total = splat(builder, load(builder, half, 4 * r, FLOAT, 4), VECTOR)
            for f in range(d):
                c = splat(builder, load(builder, panel, 4 * (PANEL * f + r), FLOAT, 4), VECTOR)
                total = muladd(x[f], c, total)
            yield total

    def top(scores):
        while len(scores) > 1:
            scores = [larger(builder, a, b) for a, b in zip(scores[::2], scores[1::2])]
        return scores[0]

    scores = list(score(panels, half_squares))
    place = [cgutils.alloca_once_value(builder, s) for s in scores]
    high = cgutils.alloca_once_value(builder, top(scores))
    low = cgutils.alloca_once_value(builder, ir.Constant(VECTOR, [LOWEST_SCORE] * LANES))
    number = cgutils.alloca_once_value(builder, ir.Constant(IVECTOR, [0] * LANES))
    with cgutils.for_range(builder, n_panels, start=ADDRESS(1)) as loop:
        panel = builder.add(panels, builder.mul(loop.index, ADDRESS(4 * PANEL * d)))
        half = builder.add(half_squares, builder.mul(loop.index, ADDRESS(4 * PANEL)))
        scores = list(score(panel, half))
        for r in range(PANEL):
            builder.store(larger(builder, builder.load(place[r]), scores[r]), place[r])
        here, before = top(scores), builder.load(high)
        loser = smaller(builder, here, before)
        builder.store(larger(builder, builder.load(low), loser), low)
        builder.store(larger(builder, here, before), high)
        nearer = builder.fcmp_ordered(">", here, before)
        name = splat(builder, builder.trunc(loop.index, INT), IVECTOR)
        builder.store(builder.select(nearer, name, builder.load(number)), number)
    nothing = ir.Constant(VECTOR, [LOWEST_SCORE] * LANES)
    found = [
        (builder.load(p), nothing, ir.Constant(IVECTOR, [r] * LANES)) for r, p in enumerate(place)
    ]
    while len(found) > 1:
        found = [two_largest(builder, a, b) for a, b in zip(found[::2], found[1::2])]
    high, runner_up, name = found[0]
    panel = builder.mul(builder.load(number), ir.Constant(IVECTOR, [PANEL] * LANES))
    store(builder, high, best, 0)
    store(builder, larger(builder, runner_up, builder.load(low)), second, 0)
    store(builder, builder.add(panel, name), which, 0)


def scan_sequential(builder, d, y, panels, half_squares, k, best, second, which):
    """Emit the scan of a group of rows with k centres; else as :func:`scan_low_dim`."""
    muladd = multiply_add(builder)
    x = [
        [load(builder, y, 4 * GROUP * f + BYTES * v, VECTOR, BYTES) for f in range(d)]
        for v in range(VECTORS)
    ]

    def scores(j):
        half = load(builder, builder.add(half_squares, builder.mul(j, ADDRESS(4))), 0, FLOAT, 4)
        totals = [splat(builder, half, VECTOR)] * VECTORS
        before = builder.mul(builder.udiv(j, ADDRESS(PANEL)), ADDRESS(4 * PANEL * d))
        lane = builder.mul(builder.urem(j, ADDRESS(PANEL)), ADDRESS(4))
        center = builder.add(panels, builder.add(before, lane))
        for f in range(d):
            c = splat(builder, load(builder, center, 4 * PANEL * f, FLOAT, 4), VECTOR)
            totals = [muladd(x[v][f], c, total) for v, total in enumerate(totals)]
        return totals

    def places(values):
        return [cgutils.alloca_once_value(builder, value) for value in values]

    high = places(scores(ADDRESS(0)))
    low = places([ir.Constant(VECTOR, [LOWEST_SCORE] * LANES)] * VECTORS)
    name = places([ir.Constant(IVECTOR, [0] * LANES)] * VECTORS)
    with cgutils.for_range(builder, k, start=ADDRESS(1)) as loop:
        here = splat(builder, builder.trunc(loop.index, INT), IVECTOR)
        for v, score in enumerate(scores(loop.index)):
            before = builder.load(high[v])
            loser = smaller(builder, score, before)
            nearer = builder.fcmp_ordered(">", score, before)
            builder.store(larger(builder, builder.load(low[v]), loser), low[v])
            builder.store(larger(builder, score, before), high[v])
            builder.store(builder.select(nearer, here, builder.load(name[v])), name[v])
    for found, place in ((high, best), (low, second), (name, which)):
        for v in range(VECTORS):
            store(builder, builder.load(found[v]), place, BYTES * v)
