"""The centres whose scores are so close to the best that either may be nearest.

:func:`list_close_centers` scores a group of rows and lists them.  :func:`largest` and
:func:`next_close_center` read the scores of one row, a vector at a time, from an array that starts
at a multiple of 64 bytes and is filled up to a multiple of LANES with LOWEST_SCORE.
"""

from __future__ import annotations

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from lloydia.backends.cpu.simd.microkernel_rows_in_lanes import (
    ADDRESS,
    BYTES,
    LANES,
    PANEL,
    VECTOR,
    VECTORS,
    address_of,
    load,
    panel_scores,
    splat,
)

__all__ = ["largest", "list_close_centers", "next_close_center"]


@intrinsic
def list_close_centers(
    typingctx, y, n_features, panels, half_squares, n_panels, reach, requested, names, rows
):
    """List the centres whose scores are not below the `reach` of some rows of a group.

    The listed centres ascend; some may be padding after the last centre.  The depth of the sums is
    that of :func:`lloydia.backends.cpu.simd.microkernel_rows_in_lanes.depth_of`, or less.

    Parameters
    ----------
    y, n_features, panels, half_squares, n_panels
        The group and the panels, addresses and counts as in :func:`scan_panel`.
    reach : address of float32 by row
    requested : int64, a bit for each row of interest
    names, rows : addresses of int64, with room for all centres
        OUT: the centre, and a bit for each row that it is close to.

    Returns
    -------
    int
        How many are listed.
    """
    signature = types.intp(*[types.intp] * 9)

    def codegen(context, builder, sig, args):
        y, n_features, panels, half_squares, n_panels, reach, requested, names, rows = args
        near = [load(builder, reach, BYTES * v, VECTOR, BYTES) for v in range(VECTORS)]
        size = builder.mul(n_features, ADDRESS(4 * PANEL))
        found = cgutils.alloca_once_value(builder, ADDRESS(0))
        with cgutils.for_range(builder, n_panels) as loop:
            panel = builder.add(panels, builder.mul(loop.index, size))
            half = builder.add(half_squares, builder.mul(loop.index, ADDRESS(4 * PANEL)))
            total = panel_scores(builder, y, n_features, panel, half, deep=True)
            first = builder.mul(loop.index, ADDRESS(PANEL))
            for r in range(PANEL):
                bits = ADDRESS(0)
                for v in range(VECTORS):
                    # Unordered: a NaN proves nothing, so it counts as close.
                    here = builder.fcmp_unordered(">=", builder.load(total[r, v]), near[v])
                    here = builder.zext(builder.bitcast(here, ir.IntType(LANES)), ADDRESS)
                    bits = builder.or_(bits, builder.shl(here, ADDRESS(LANES * v)))
                bits = builder.and_(bits, requested)
                with builder.if_then(builder.icmp_unsigned("!=", bits, ADDRESS(0)), likely=False):
                    count = builder.load(found)
                    offset = builder.mul(count, ADDRESS(8))
                    for value, out in ((builder.add(first, ADDRESS(r)), names), (bits, rows)):
                        to = builder.inttoptr(builder.add(out, offset), ADDRESS.as_pointer())
                        builder.store(value, to)
                    builder.store(builder.add(count, ADDRESS(1)), found)
        return builder.load(found)

    return signature, codegen


def _scores_at(builder, scores, place):
    """Return the vector of scores from a place on."""
    return load(builder, address_of(builder, scores, place), 0, VECTOR, BYTES)


def _larger(builder, a, b):
    """Return the larger of each lane; `b` where one is not a number."""
    return builder.select(builder.fcmp_ordered(">", a, b), a, b)


@intrinsic
def largest(typingctx, scores):
    """Return the largest score."""

    def codegen(context, builder, sig, args):
        size = builder.extract_value(builder.extract_value(args[0], 5), 0)
        top = cgutils.alloca_once_value(builder, _scores_at(builder, args[0], ADDRESS(0)))
        with cgutils.for_range_slice(builder, ADDRESS(LANES), size, ADDRESS(LANES)) as (place, _):
            here = _scores_at(builder, args[0], place)
            builder.store(_larger(builder, here, builder.load(top)), top)
        value, width = builder.load(top), LANES // 2
        while width:
            half_squares = []
            for first in (0, width):
                lanes = ir.VectorType(ir.IntType(32), width)
                mask = ir.Constant(lanes, list(range(first, first + width)))
                half_squares.append(builder.shuffle_vector(value, value, mask))
            value, width = _larger(builder, *half_squares), width // 2
        return builder.extract_element(value, ir.IntType(32)(0))

    return types.float32(scores), codegen


@intrinsic
def next_close_center(typingctx, scores, first, reach):
    """Return the first score from place `first` on that is not below `reach`, or their number."""
    signature = types.int64(scores, types.int64, types.float64)

    def codegen(context, builder, sig, args):
        scores, first, reach = args
        size = builder.extract_value(builder.extract_value(scores, 5), 0)
        doubles, mask = ir.VectorType(ir.DoubleType(), LANES), ir.IntType(LANES)
        reach = splat(builder, reach, doubles)
        lane = builder.and_(first, ADDRESS(LANES - 1))
        requested = builder.shl(mask(-1), builder.trunc(lane, mask))
        first_vector, before = builder.sub(first, lane), builder.block
        blocks = "test", "look", "found", "end"
        test, look, found, end = map(builder.append_basic_block, blocks)
        builder.branch(test)
        builder.position_at_end(test)
        place, lanes = builder.phi(ADDRESS), builder.phi(mask)
        builder.cbranch(builder.icmp_signed("<", place, size), look, end)
        builder.position_at_end(look)
        score = builder.fpext(_scores_at(builder, scores, place), doubles)
        # Unordered: a NaN proves nothing, so it counts as close.
        near = builder.bitcast(builder.fcmp_unordered(">=", score, reach), mask)
        near = builder.and_(near, lanes)
        after = builder.add(place, ADDRESS(LANES))
        builder.cbranch(builder.icmp_unsigned("!=", near, mask(0)), found, test)
        builder.position_at_end(found)
        lane = builder.zext(builder.cttz(near, ir.IntType(1)(1)), ADDRESS)
        here = builder.add(place, lane)
        builder.branch(end)
        builder.position_at_end(end)
        result = builder.phi(ADDRESS)
        for phi, pairs in (
            (place, ((first_vector, before), (after, look))),
            (lanes, ((requested, before), (mask(-1), look))),
            (result, ((size, test), (here, found))),
        ):
            for value, block in pairs:
                phi.add_incoming(value, block)
        return result

    return signature, codegen
