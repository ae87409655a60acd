"""Which rows of a group may be near a candidate: integer products of bytes, a row in every lane.

A group is GROUP rows, ``[four columns][row]``, four unsigned bytes in 32 bits.  A candidate is its
signed bytes side by side.  Processors with VNNI add four products to a sum in one instruction; the
others multiply pairs of 16-bit numbers.
"""

from __future__ import annotations

from llvmlite import ir
from llvmlite.binding import get_host_cpu_features
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from lloydia.backends.cpu.simd.pairs import compiled_for

__all__ = ["CANDIDATES", "GROUP", "flag_rows"]

LANES, VECTORS, CANDIDATES = 16, 4, 4
GROUP = LANES * VECTORS

# Vectors whose sums are kept in registers at a time.
ABREAST = VECTORS if get_host_cpu_features().get("avx512f") else 1

_BYTES = 4 * LANES
_INT, _SHORT, _ADDRESS = ir.IntType(32), ir.IntType(16), ir.IntType(64)
_INTS, _SHORTS = ir.VectorType(_INT, LANES), ir.VectorType(_SHORT, 2 * LANES)


def _loaded(builder, address, offset, kind, align):
    place = builder.add(address, ir.Constant(_ADDRESS, offset))
    value = builder.load(builder.inttoptr(place, kind.as_pointer()))
    value.align = align
    return value


def _splat(builder, scalar):
    nothing = ir.Constant(_INTS, ir.Undefined)
    one = builder.insert_element(nothing, scalar, _INT(0))
    return builder.shuffle_vector(one, nothing, ir.Constant(_INTS, [0] * LANES))


def _vnni_dot(builder, total, unsigned, signed):
    """Return a total and, lane by lane, the four products of unsigned and signed bytes."""
    kind = ir.FunctionType(_INTS, [_INTS] * 3)
    # LLVM converts these arguments to the vectors of bytes that it has taken since version 22.
    dot = cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.avx512.vpdpbusd.512")
    return builder.call(dot, [total, unsigned, signed])


def _portable_dot(builder, total, unsigned, signed):
    """Do it on any processor, by products of pairs of 16-bit numbers."""
    wide = ir.VectorType(_INT, 2 * LANES)
    eight, low = (ir.Constant(_SHORTS, [v] * 2 * LANES) for v in (8, 0xFF))
    nothing = ir.Constant(wide, ir.Undefined)
    even, odd = (ir.Constant(_INTS, list(range(first, 2 * LANES, 2))) for first in (0, 1))
    x, c = (builder.bitcast(value, _SHORTS) for value in (unsigned, signed))
    lower = builder.and_(x, low), builder.ashr(builder.shl(c, eight), eight)
    upper = builder.lshr(x, eight), builder.ashr(c, eight)
    for a, b in (lower, upper):
        products = builder.mul(builder.sext(a, wide), builder.sext(b, wide))
        sums = (builder.shuffle_vector(products, nothing, half) for half in (even, odd))
        total = builder.add(total, builder.add(*sums))
    return total


_dot = _vnni_dot if compiled_for("avx512vnni") else _portable_dot


def _scores(builder, rows, n_quads, candidates, starts, totals):
    """Add up the products of a few vectors of rows and a few candidates."""
    for start, row in zip(starts, totals, strict=True):
        for total in row:
            builder.store(start, total)
    with cgutils.for_range(builder, n_quads) as loop:
        at = builder.add(rows, builder.mul(loop.index, _ADDRESS(4 * GROUP)))
        x = [_loaded(builder, at, _BYTES * v, _INTS, _BYTES) for v in range(ABREAST)]
        for row, place in zip(totals, candidates, strict=True):
            at = builder.add(place, builder.mul(loop.index, _ADDRESS(4)))
            c = _splat(builder, _loaded(builder, at, 0, _INT, 4))
            for total, value in zip(row, x, strict=True):
                builder.store(_dot(builder, builder.load(total), value, c), total)


@intrinsic
def flag_rows(typingctx, rows, n_quads, candidates, starts, m, limits, masks):
    """Write for each candidate which rows of a group have a score above their limit.

    Parameters
    ----------
    rows : IN, address of a group, from a multiple of 64 bytes on
    n_quads : int
        Columns, divided by four.
    candidates, starts : IN, addresses
        The bytes of `m` candidates, end to end, and the int32 that their scores start from.  Up to
        the next multiple of CANDIDATES, those after them are read too.
    limits : IN, address of GROUP int32
    masks : OUT, address of `m`, rounded up to a multiple of CANDIDATES, int64
        A bit a row.
    """

    def codegen(context, builder, sig, args):
        rows, n_quads, candidates, starts, m, limits, masks = args
        pitch = builder.mul(n_quads, _ADDRESS(4))
        turns = builder.udiv(builder.add(m, _ADDRESS(CANDIDATES - 1)), _ADDRESS(CANDIDATES))
        totals = [
            [cgutils.alloca_once(builder, _INTS) for _ in range(ABREAST)] for _ in range(CANDIDATES)
        ]
        with cgutils.for_range(builder, turns) as outer:
            first = builder.mul(outer.index, _ADDRESS(CANDIDATES))
            base = builder.add(candidates, builder.mul(first, pitch))
            places = [builder.add(base, builder.mul(pitch, _ADDRESS(c))) for c in range(CANDIDATES)]
            at = builder.add(starts, builder.mul(first, _ADDRESS(4)))
            begin = [
                _splat(builder, _loaded(builder, at, 4 * c, _INT, 4)) for c in range(CANDIDATES)
            ]
            bits = [_ADDRESS(0)] * CANDIDATES
            for block in range(0, VECTORS, ABREAST):
                some = builder.add(rows, _ADDRESS(_BYTES * block))
                _scores(builder, some, n_quads, places, begin, totals)
                for v in range(ABREAST):
                    limit = _loaded(builder, limits, _BYTES * (block + v), _INTS, 4)
                    for c, row in enumerate(totals):
                        over = builder.icmp_signed(">", builder.load(row[v]), limit)
                        over = builder.zext(builder.bitcast(over, ir.IntType(LANES)), _ADDRESS)
                        over = builder.shl(over, _ADDRESS(LANES * (block + v)))
                        bits[c] = builder.or_(bits[c], over)
            to = builder.add(masks, builder.mul(first, _ADDRESS(8)))
            for c, mask in enumerate(bits):
                place = builder.add(to, _ADDRESS(8 * c))
                builder.store(mask, builder.inttoptr(place, _ADDRESS.as_pointer())).align = 8
        return context.get_dummy_value()

    return types.void(*[types.intp] * 7), codegen
