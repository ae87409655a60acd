"""Vector units that multiply pairs of bfloat16: AVX-512, twice the products of float32.

Layouts are those of :mod:`pairs`.  Multiplying only the heads takes half the time of float32; all
three products would take longer than float32, and are not computed.
"""

from __future__ import annotations

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from lloydia.backends.cpu.simd.microkernel_rows_in_lanes import (
    ADDRESS,
    BYTES,
    INT,
    IVECTOR,
    LANES,
    VECTOR,
    load,
    store,
)
from lloydia.backends.cpu.simd.pairs import ABREAST, KIB, TILE, compiled_for

__all__ = ["AVAILABLE", "depth_of", "dot", "multiply"]

# Not on processors with matrix units, even if a process may not use those: kernels on disk do not
# depend on what a process may use.
AVAILABLE = compiled_for("avx512bf16") and not compiled_for("amx-bf16")

# Centres whose scores are summed at a time: with ABREAST vectors of rows, 16 of 32 registers.
UNROLLED_CENTERS = 8


def depth_of(n_columns: int) -> int:
    """Return the largest number of additions that a product of this many pairs goes through.

    An instruction adds two products to the total, one after the other (Intel, Instruction Set
    Extensions Programming Reference, VDPBF16PS); twice as many, whether it rounds or truncates.
    """
    return 4 * n_columns


def dot(builder, total, a, b):
    """Return a total and, lane by lane, the products of two pairs."""
    # Since LLVM 20 the arguments are pairs of bfloat16, to which it converts these.
    kind = ir.FunctionType(VECTOR, [VECTOR, IVECTOR, IVECTOR])
    name = "llvm.x86.avx512bf16.dpbf16ps.512"
    code = cgutils.get_or_insert_function(builder.module, kind, name)
    return builder.call(code, [total, a, b])


def _splat(builder, value):
    one = builder.insert_element(ir.Constant(IVECTOR, ir.Undefined), value, ir.Constant(INT, 0))
    return builder.shuffle_vector(
        one, ir.Constant(IVECTOR, ir.Undefined), ir.Constant(IVECTOR, [0] * LANES)
    )


def _number(value):
    return ir.Constant(ADDRESS, value)


@intrinsic
def multiply(typingctx, points, n_columns, panel, initial_scores, scores):
    """Write the scores of ABREAST vectors of points and tiles of centres, as of :mod:`amx`.

    All are addresses or counts (intp).
    """

    def codegen(context, builder, sig, args):
        points, n_columns, panel, initial_scores, scores = args
        with cgutils.for_range(builder, _number(ABREAST * TILE // UNROLLED_CENTERS)) as loop:
            # The rows of a tile are as far apart in a panel as in initial_scores and in scores.
            first = builder.mul(loop.index, _number(64 * UNROLLED_CENTERS))
            tile = builder.udiv(first, _number(KIB))
            centres = builder.add(panel, first)
            start = builder.add(initial_scores, first)
            totals = [
                [cgutils.alloca_once(builder, VECTOR) for _ in range(ABREAST)]
                for _ in range(UNROLLED_CENTERS)
            ]
            for c, row in enumerate(totals):
                for total in row:
                    builder.store(load(builder, start, 64 * c, VECTOR, BYTES), total)
            with cgutils.for_range(builder, n_columns) as inner:
                step = builder.lshr(inner.index, _number(4))
                line = builder.and_(inner.index, _number(TILE - 1))
                base = builder.mul(step, _number(ABREAST * KIB))
                at = builder.add(points, builder.add(base, builder.mul(line, _number(64))))
                y = [load(builder, at, KIB * v, IVECTOR, BYTES) for v in range(ABREAST)]
                at = builder.add(centres, builder.add(base, builder.mul(line, _number(4))))
                for c, row in enumerate(totals):
                    pair = _splat(builder, load(builder, at, 64 * c, INT, 4))
                    for total, vector in zip(row, y):
                        builder.store(dot(builder, builder.load(total), pair, vector), total)
            # A tile of scores for each vector of points.
            place = builder.add(scores, builder.add(first, builder.mul(tile, _number(KIB))))
            for c, row in enumerate(totals):
                for v, total in enumerate(row):
                    store(builder, builder.load(total), place, KIB * v + 64 * c)
        return context.get_dummy_value()

    return types.void(*[types.intp] * 5), codegen
