"""Which rows of a group may be near a candidate: scores of pairs of bfloat16, a row in every lane.

A group is GROUP rows, ``[pair of columns][row]``, a pair in 32 bits (:mod:`pairs`).  A candidate is
its pairs side by side.  Processors that multiply such pairs do so; the others widen them to
float32.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from lloydia.backends.cpu.simd import dot_pairs
from lloydia.backends.cpu.simd.pairs import compiled_for

__all__ = ["GROUP", "flag_rows"]

LANES, VECTORS, CANDIDATES = 16, 4, 2
GROUP = LANES * VECTORS

_BYTES = 4 * LANES
_FLOAT, _INT, _ADDRESS = ir.FloatType(), ir.IntType(32), ir.IntType(64)
_FLOATS, _INTS = ir.VectorType(_FLOAT, LANES), ir.VectorType(_INT, LANES)


def _loaded(builder, address, offset, kind, align):
    place = builder.add(address, ir.Constant(_ADDRESS, offset))
    value = builder.load(builder.inttoptr(place, kind.as_pointer()))
    value.align = align
    return value


def _splat(builder, scalar, kind):
    nothing = ir.Constant(kind, ir.Undefined)
    one = builder.insert_element(nothing, scalar, _INT(0))
    return builder.shuffle_vector(one, nothing, ir.Constant(_INTS, [0] * LANES))


def _float32_dot(builder, total, a, b):
    """Return a total and, lane by lane, the products of two pairs, on any processor."""
    name = f"llvm.fmuladd.v{LANES}f32"
    kind = ir.FunctionType(_FLOATS, [_FLOATS] * 3)
    muladd = cgutils.get_or_insert_function(builder.module, kind, name)
    shift, high = ir.Constant(_INTS, [16] * LANES), ir.Constant(_INTS, [-0x10000] * LANES)
    for part in (lambda x: builder.shl(x, shift), lambda x: builder.and_(x, high)):
        x, y = (builder.bitcast(part(value), _FLOATS) for value in (a, b))
        total = builder.call(muladd, [x, y, total])
    return total


# Matrix units or not: this is the instruction for vectors.
_dot = dot_pairs.dot if compiled_for("avx512bf16") else _float32_dot


@intrinsic
def flag_rows(typingctx, rows, n_pairs, candidates, starts, m, limits, masks):
    """Write for each candidate which rows of a group have a score above their limit, or NaN.

    Parameters
    ----------
    rows : IN, address of a group, from a multiple of 64 bytes on
    n_pairs : int
        Pairs of columns.
    candidates, starts : IN, addresses
        The pairs of `m` candidates, end to end, and the float32 that their scores start from.  The
        next one's are read too where `m` is odd.
    limits : IN, address of GROUP float32
    masks : OUT, address of `m`, rounded up to an even number, int64
        A bit a row.
    """

    def codegen(context, builder, sig, args):
        rows, n_pairs, candidates, starts, m, limits, masks = args
        limit = [_loaded(builder, limits, _BYTES * v, _FLOATS, 4) for v in range(VECTORS)]
        pitch = builder.mul(n_pairs, _ADDRESS(4))
        turns = builder.udiv(builder.add(m, _ADDRESS(CANDIDATES - 1)), _ADDRESS(CANDIDATES))
        totals = [
            [cgutils.alloca_once(builder, _FLOATS) for _ in range(VECTORS)]
            for _ in range(CANDIDATES)
        ]
        with cgutils.for_range(builder, turns) as outer:
            first = builder.mul(outer.index, _ADDRESS(CANDIDATES))
            base = builder.add(candidates, builder.mul(first, pitch))
            pairs = [builder.add(base, builder.mul(pitch, _ADDRESS(c))) for c in range(CANDIDATES)]
            start = builder.add(starts, builder.mul(first, _ADDRESS(4)))
            for c, row in enumerate(totals):
                value = _splat(builder, _loaded(builder, start, 4 * c, _FLOAT, 4), _FLOATS)
                for total in row:
                    builder.store(value, total)
            with cgutils.for_range(builder, n_pairs) as loop:
                at = builder.add(rows, builder.mul(loop.index, _ADDRESS(4 * GROUP)))
                x = [_loaded(builder, at, _BYTES * v, _INTS, _BYTES) for v in range(VECTORS)]
                for row, place in zip(totals, pairs, strict=True):
                    at = builder.add(place, builder.mul(loop.index, _ADDRESS(4)))
                    pair = _splat(builder, _loaded(builder, at, 0, _INT, 4), _INTS)
                    for total, value in zip(row, x, strict=True):
                        builder.store(_dot(builder, builder.load(total), pair, value), total)
            to = builder.add(masks, builder.mul(first, _ADDRESS(8)))
            for c, row in enumerate(totals):
                bits = _ADDRESS(0)
                for v, total in enumerate(row):
                    over = builder.fcmp_unordered(">", builder.load(total), limit[v])
                    over = builder.zext(builder.bitcast(over, ir.IntType(LANES)), _ADDRESS)
                    bits = builder.or_(bits, builder.shl(over, _ADDRESS(LANES * v)))
                place = builder.add(to, _ADDRESS(8 * c))
                builder.store(bits, builder.inttoptr(place, _ADDRESS.as_pointer())).align = 8
        return context.get_dummy_value()

    return types.void(*[types.intp] * 7), codegen
