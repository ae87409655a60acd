"""Which rows of a group may be near a candidate: integer products of bytes, a row in every lane.

A group has GROUP rows, ``[four columns][row]``, four unsigned bytes in 32 bits.  A candidate is a
contiguous run of signed bytes.  Processors with VNNI add four products to a sum in one instruction;
the others multiply pairs of 16-bit numbers.
"""

from __future__ import annotations

from llvmlite import ir
from llvmlite.binding import get_host_cpu_features
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from lloydia.backends.cpu.simd.pairs import compiled_for

__all__ = ["CANDIDATES", "GROUP", "flag_rows"]

LANES, VECTORS = 16, 2
GROUP = LANES * VECTORS

# Candidates and vectors of rows whose sums are kept in registers together.  Registers of 512 bits
# hold all vectors of a group, so that rows are read once; where at most LAST_CANDIDATES candidates
# are left, only so many are summed.
WIDE = get_host_cpu_features().get("avx512f")
LAST_CANDIDATES = 4
CANDIDATES, VECTORS_TOGETHER = (2 * LAST_CANDIDATES, VECTORS) if WIDE else (LAST_CANDIDATES, 1)

# A hit is the number of its row, shifted by so many bits, and a bit for each candidate.
NUMBER_SHIFT = 16

_BYTES = 4 * LANES
_INT, _SHORT, _ADDRESS = ir.IntType(32), ir.IntType(16), ir.IntType(64)
_INTS, _SHORTS = ir.VectorType(_INT, LANES), ir.VectorType(_SHORT, 2 * LANES)
_ZEROS = ir.Constant(_INTS, [0] * LANES)


def _loaded(builder, address, offset, kind, align):
    place = builder.add(address, ir.Constant(_ADDRESS, offset))
    value = builder.load(builder.inttoptr(place, kind.as_pointer()))
    value.align = align
    return value


def _splat(builder, scalar):
    undefined = ir.Constant(_INTS, ir.Undefined)
    one = builder.insert_element(undefined, scalar, _INT(0))
    return builder.shuffle_vector(one, undefined, ir.Constant(_INTS, [0] * LANES))


def _vnni_dot(builder, total, unsigned, signed):
    """Return a total and, lane by lane, the four products of unsigned and signed bytes."""
    kind = ir.FunctionType(_INTS, [_INTS] * 3)
    # LLVM converts these arguments to the vectors of bytes that it has taken since version 22.
    dot = cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.avx512.vpdpbusd.512")
    return builder.call(dot, [total, unsigned, signed])


def _portable_dot(builder, total, unsigned, signed):
    """Return the same on any processor, by products of pairs of 16-bit numbers."""
    wide = ir.VectorType(_INT, 2 * LANES)
    eight, low = (ir.Constant(_SHORTS, [v] * 2 * LANES) for v in (8, 0xFF))
    undefined = ir.Constant(wide, ir.Undefined)
    even, odd = (ir.Constant(_INTS, list(range(first, 2 * LANES, 2))) for first in (0, 1))
    x, c = (builder.bitcast(value, _SHORTS) for value in (unsigned, signed))
    lower = builder.and_(x, low), builder.ashr(builder.shl(c, eight), eight)
    upper = builder.lshr(x, eight), builder.ashr(c, eight)
    for a, b in (lower, upper):
        products = builder.mul(builder.sext(a, wide), builder.sext(b, wide))
        sums = (builder.shuffle_vector(products, undefined, half) for half in (even, odd))
        total = builder.add(total, builder.add(*sums))
    return total


_dot = _vnni_dot if compiled_for("avx512vnni") else _portable_dot


def _scores(builder, rows, n_quads, candidates, initial_scores, totals):
    """Add up the products of a few vectors of rows and a few candidates."""
    for start, row in zip(initial_scores, totals, strict=True):
        for total in row:
            builder.store(start, total)
    with cgutils.for_range(builder, n_quads) as loop:
        at = builder.add(rows, builder.mul(loop.index, _ADDRESS(4 * GROUP)))
        x = [_loaded(builder, at, _BYTES * v, _INTS, _BYTES) for v in range(VECTORS_TOGETHER)]
        for row, place in zip(totals, candidates, strict=True):
            at = builder.add(place, builder.mul(loop.index, _ADDRESS(4)))
            c = _splat(builder, _loaded(builder, at, 0, _INT, 4))
            for total, value in zip(row, x, strict=True):
                builder.store(_dot(builder, builder.load(total), value, c), total)


def _flags(builder, rows, n_quads, candidates, initial_scores, first, limits, totals):
    """Return for some vectors of rows, lane by lane, a bit for each candidate from `first` on."""
    pitch = builder.mul(n_quads, _ADDRESS(4))
    base = builder.add(candidates, builder.mul(first, pitch))
    places = [builder.add(base, builder.mul(pitch, _ADDRESS(c))) for c in range(len(totals))]
    at = builder.add(initial_scores, builder.mul(first, _ADDRESS(4)))
    begin = [_splat(builder, _loaded(builder, at, 4 * c, _INT, 4)) for c in range(len(totals))]
    _scores(builder, rows, n_quads, places, begin, totals)
    shift = _splat(builder, builder.trunc(first, _INT))
    found = []
    for v, limit in enumerate(limits):
        flags = _ZEROS
        for c, row in enumerate(totals):
            over = builder.icmp_signed(">", builder.load(row[v]), limit)
            bit = ir.Constant(_INTS, [1 << c] * LANES)
            flags = builder.or_(flags, builder.select(over, bit, _ZEROS))
        found.append(builder.shl(flags, shift))
    return found


def _append(builder, flags, numbers, hits, count):
    """Append the lanes that have a flag to a list of hits; return its new length."""
    intrinsic_of = cgutils.get_or_insert_function
    bits = ir.VectorType(ir.IntType(1), LANES)
    compress = intrinsic_of(
        builder.module,
        ir.FunctionType(_INTS, [_INTS, bits, _INTS]),
        f"llvm.experimental.vector.compress.v{LANES}i32",
    )
    mask = ir.IntType(LANES)
    popcount = intrinsic_of(builder.module, ir.FunctionType(mask, [mask]), f"llvm.ctpop.i{LANES}")
    flagged = builder.icmp_signed("!=", flags, _ZEROS)
    undefined = ir.Constant(_INTS, ir.Undefined)
    packed = builder.call(compress, [builder.or_(flags, numbers), flagged, undefined])
    to = builder.add(hits, builder.mul(count, _ADDRESS(4)))
    builder.store(packed, builder.inttoptr(to, _INTS.as_pointer())).align = 4
    n_flagged = builder.call(popcount, [builder.bitcast(flagged, mask)])
    return builder.add(count, builder.zext(n_flagged, _ADDRESS))


@intrinsic
def flag_rows(typingctx, rows, n_quads, candidates, initial_scores, m, limits, number, hits, count):
    """Append the rows of a group that have a score above their limit to a list of `count` hits.

    No branch depends on a score.  Returns the new number of hits.

    Parameters
    ----------
    rows : IN, address of a group, a multiple of 64
    n_quads : int
        Columns, divided by four.
    candidates, initial_scores : IN, addresses
        The bytes of `m` candidates, contiguous, and the initial scores of each, int32; `m` is up to
        16.  The entries after them, up to the next multiple of LAST_CANDIDATES, are also read and
        flagged.
    limits : IN, address of GROUP int32
    number : int
        The number of the first row.
    hits : IN/OUT, address of uint32
        The number of a row, times 2**16, and a bit for each candidate.  Up to LANES entries after
        the last hit are overwritten.
    """

    def codegen(context, builder, sig, args):
        rows, n_quads, candidates, initial_scores, m, limits, number, hits, count = args
        totals = [
            [cgutils.alloca_once(builder, _INTS) for _ in range(VECTORS_TOGETHER)]
            for _ in range(CANDIDATES)
        ]
        found = [cgutils.alloca_once(builder, _INTS) for _ in range(VECTORS_TOGETHER)]
        n_blocks = builder.udiv(builder.add(m, _ADDRESS(CANDIDATES - 1)), _ADDRESS(CANDIDATES))
        for block in range(0, VECTORS, VECTORS_TOGETHER):
            some = builder.add(rows, _ADDRESS(_BYTES * block))
            above = [_loaded(builder, limits, _BYTES * (block + v), _INTS, 4)
                     for v in range(VECTORS_TOGETHER)]  # fmt: skip
            for flags in found:
                builder.store(_ZEROS, flags)
            with cgutils.for_range(builder, n_blocks) as loop:
                first = builder.mul(loop.index, _ADDRESS(CANDIDATES))

                def add(n, some=some, above=above, first=first):
                    new = _flags(
                        builder, some, n_quads, candidates, initial_scores, first, above, totals[:n]
                    )
                    for flags, value in zip(found, new, strict=True):
                        builder.store(builder.or_(builder.load(flags), value), flags)

                if CANDIDATES == LAST_CANDIDATES:
                    add(LAST_CANDIDATES)
                else:
                    few = builder.icmp_signed(
                        "<=", builder.sub(m, first), _ADDRESS(LAST_CANDIDATES)
                    )
                    with builder.if_else(few) as (then, otherwise):
                        with then:
                            add(LAST_CANDIDATES)
                        with otherwise:
                            add(CANDIDATES)
            for v, flags in enumerate(found):
                lanes = range(LANES * (block + v), LANES * (block + v + 1))
                numbers = builder.add(
                    _splat(builder, builder.trunc(number, _INT)), ir.Constant(_INTS, list(lanes))
                )
                numbers = builder.shl(numbers, ir.Constant(_INTS, [NUMBER_SHIFT] * LANES))
                count = _append(builder, builder.load(flags), numbers, hits, count)
        return count

    return types.intp(*[types.intp] * 9), codegen
