"""Rivals: the centres whose scores are too near the best of a row in doubt, a group at a time."""

from __future__ import annotations

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from lloydia.backends.cpu.points import (
    ADDRESS,
    BYTES,
    LANES,
    PANEL,
    VECTOR,
    VECTORS,
    load,
    panel_scores,
)

__all__ = ["list_rivals"]


@intrinsic
def list_rivals(typingctx, y, n_features, panels, halves, n_panels, reach, wanted, names, rows):
    """List the centres whose scores are not below the `reach` of some points of a group.

    Names ascend; where there is no centre the panels' padding may be named too.  The depth of the
    sums is that of :func:`lloydia.backends.cpu.points.depth_of`, or less.

    Parameters
    ----------
    y, n_features, panels, halves, n_panels
        The group and the panels, addresses and counts as in :func:`scan_panel`.
    reach : address of float32 by point
    wanted : int64, a bit for each point that is asked for
    names, rows : addresses of int64, with room for all centres
        The centre, and which of the points: a bit each.

    Returns
    -------
    int
        How many are listed.
    """
    signature = types.intp(*[types.intp] * 9)

    def codegen(context, builder, sig, args):
        y, n_features, panels, halves, n_panels, reach, wanted, names, rows = args
        near = [load(builder, reach, BYTES * v, VECTOR, BYTES) for v in range(VECTORS)]
        size = builder.mul(n_features, ADDRESS(4 * PANEL))
        found = cgutils.alloca_once_value(builder, ADDRESS(0))
        with cgutils.for_range(builder, n_panels) as loop:
            panel = builder.add(panels, builder.mul(loop.index, size))
            half = builder.add(halves, builder.mul(loop.index, ADDRESS(4 * PANEL)))
            total = panel_scores(builder, y, n_features, panel, half, deep=True)
            first = builder.mul(loop.index, ADDRESS(PANEL))
            for r in range(PANEL):
                bits = ADDRESS(0)
                for v in range(VECTORS):
                    # Not "at least": a score that is not a number proves nothing.
                    here = builder.fcmp_unordered(">=", builder.load(total[r, v]), near[v])
                    here = builder.zext(builder.bitcast(here, ir.IntType(LANES)), ADDRESS)
                    bits = builder.or_(bits, builder.shl(here, ADDRESS(LANES * v)))
                bits = builder.and_(bits, wanted)
                with builder.if_then(builder.icmp_unsigned("!=", bits, ADDRESS(0)), likely=False):
                    count = builder.load(found)
                    offset = builder.mul(count, ADDRESS(8))
                    for value, out in ((builder.add(first, ADDRESS(r)), names), (bits, rows)):
                        to = builder.inttoptr(builder.add(out, offset), ADDRESS.as_pointer())
                        builder.store(value, to)
                    builder.store(builder.add(count, ADDRESS(1)), found)
        return builder.load(found)

    return signature, codegen
