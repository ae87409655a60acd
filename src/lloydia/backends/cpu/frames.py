"""Rows in their frame: ``(x - origin) * scale`` in float32, a point in every lane.

Where a row's features lie side by side, PIECE of them are loaded at once and turned in registers;
rows that lie end to end and have few are taken apart by shuffles; else each value is gathered.
All three compute the same numbers.
"""

from __future__ import annotations

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from lloydia.backends.cpu.points import (
    ADDRESS,
    BYTES,
    FLOAT,
    GROUP,
    INT,
    IVECTOR,
    LANES,
    VECTOR,
    VECTORS,
    load,
    splat,
    store,
)

__all__ = ["NARROW", "fetch", "frame_group", "frame_run"]

# Features up to which rows that lie end to end are put in lanes by shuffles.
NARROW = 4

# Features of a row that are loaded at once.
PIECE = min(LANES, 8)

# Bytes of a cache line.
LINE = 64


def prefetch(builder, address):
    """Ask for a cache line."""
    byte = ir.IntType(8).as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [byte, INT, INT, INT])
    function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    builder.call(function, [builder.inttoptr(address, byte), INT(0), INT(3), INT(1)])


def grown(builder, square, n_features):
    """Return an upper bound on the squared norm that a float32 sum of `n_features` squares is."""
    d = builder.sitofp(n_features, FLOAT)
    grow = builder.fadd(FLOAT(1.0), builder.fmul(builder.fadd(d, FLOAT(9.0)), FLOAT(2.0**-22)))
    return builder.fmul(square, splat(builder, grow, VECTOR))


def size_of(kind):
    """Return the bytes of an LLVM float type."""
    return 8 if kind == ir.DoubleType() else 4


def framed(builder, x, origin, scale):
    """Return a vector of values in their frame, float32; `origin` is a vector too.

    The scale is a power of two: ``x * scale - origin * scale``, fused or not, is the same number.
    """
    kind, factor = x.type, splat(builder, scale, x.type)
    name = f"llvm.fmuladd.v{kind.count}f{8 * size_of(kind.element)}"
    muladd = cgutils.get_or_insert_function(builder.module, ir.FunctionType(kind, [kind] * 3), name)
    value = builder.call(muladd, [x, factor, builder.fneg(builder.fmul(origin, factor))])
    narrow = ir.VectorType(FLOAT, kind.count)
    return value if kind == narrow else builder.fptrunc(value, narrow)


def gathered(builder, kind, rows, stride, span, frame, out):
    """Frame the features of a span, each gathered from a vector of rows.

    `rows` holds their addresses; `out` takes a vector of points and the number of its feature.
    """
    (first, end), (origin, scale), size = span, frame, size_of(kind)
    wide = ir.VectorType(kind, LANES)
    pointers, bits = ir.VectorType(kind.as_pointer(), LANES), ir.VectorType(ir.IntType(1), LANES)
    gather = cgutils.get_or_insert_function(
        builder.module,
        ir.FunctionType(wide, [pointers, INT, bits, wide]),
        f"llvm.masked.gather.v{LANES}f{8 * size}.v{LANES}p0",
    )
    all_lanes, nothing = ir.Constant(bits, [1] * LANES), ir.Constant(wide, ir.Undefined)
    with cgutils.for_range(builder, end, start=first) as loop:
        at = splat(builder, builder.mul(loop.index, stride), rows.type)
        where = builder.inttoptr(builder.add(rows, at), pointers)
        x = builder.call(gather, [where, INT(size), all_lanes, nothing])
        column = builder.add(origin, builder.mul(loop.index, ir.Constant(ADDRESS, size)))
        m = splat(builder, load(builder, column, 0, kind, size), wide)
        out(framed(builder, x, m, scale), loop.index)


def transposed(builder, rows):
    """Turn PIECE vectors of rows into vectors of features, and each part of PIECE lanes alike.

    A bit of the lane changes places with that bit of the vector's number, one after the other.
    """
    for bit in (1, 2, 4):
        if bit < PIECE:
            before, rows = rows, list(rows)
            for i in (i for i in range(PIECE) if not i & bit):
                low = [lane ^ bit | LANES if lane & bit else lane for lane in range(LANES)]
                high = [lane | LANES if lane & bit else lane | bit for lane in range(LANES)]
                for to, lanes in ((i, low), (i | bit, high)):
                    mask = ir.Constant(IVECTOR, lanes)
                    rows[to] = builder.shuffle_vector(before[i], before[i | bit], mask)
    return rows


def turned(builder, kind, rows, n_pieces, frame, out):
    """Do what :func:`gathered` does for pieces of PIECE features that lie side by side.

    Here `rows` is a list of addresses.
    """
    (origin, scale), size = frame, size_of(kind)
    run = ir.VectorType(kind, PIECE)
    with cgutils.for_range(builder, n_pieces) as loop:
        first = builder.mul(loop.index, ir.Constant(ADDRESS, PIECE))
        offset = builder.mul(first, ir.Constant(ADDRESS, size))
        m = load(builder, builder.add(origin, offset), 0, run, size)
        pieces = []
        for lane in range(LANES):
            row = builder.add(rows[lane], offset)
            pieces.append(framed(builder, load(builder, row, 0, run, size), m, scale))
        if PIECE < LANES:
            both = ir.Constant(IVECTOR, list(range(LANES)))
            pairs = zip(pieces[:PIECE], pieces[PIECE:], strict=True)
            pieces = [builder.shuffle_vector(*pair, both) for pair in pairs]
        for i, value in enumerate(transposed(builder, pieces)):
            out(value, builder.add(first, ir.Constant(ADDRESS, i)))


@intrinsic
def fetch(typingctx, address, size):
    """Ask for the cache lines of `size` bytes from an address on."""

    def codegen(context, builder, sig, args):
        address, size = args
        with cgutils.for_range_slice(
            builder, ir.Constant(ADDRESS, 0), size, ir.Constant(ADDRESS, LINE)
        ) as (offset, _):
            prefetch(builder, builder.add(address, offset))
        return context.get_dummy_value()

    return types.void(types.intp, types.intp), codegen


@intrinsic
def frame_group(typingctx, addresses, stride, n_features, origin, scale, y, squares):
    """Write ``(x - origin) * scale`` of a group of rows to `y`, and bounds on their squared norms.

    `addresses` points to the GROUP addresses of the rows' first values, `stride` is the bytes from
    one value to the next; the type of the rows is that of `scale`.  The rest are addresses.
    """
    signature = types.void(*[types.intp] * 4, scale, *[types.intp] * 2)
    double = scale == types.float64

    def codegen(context, builder, sig, args):
        addresses, stride, n_features, origin, scale, y, squares = args
        kind = ir.DoubleType() if double else FLOAT
        beside = builder.icmp_signed("==", stride, ir.Constant(ADDRESS, size_of(kind)))
        n_pieces = builder.udiv(n_features, ir.Constant(ADDRESS, PIECE))
        n_pieces = builder.select(beside, n_pieces, ir.Constant(ADDRESS, 0))
        span = builder.mul(n_pieces, ir.Constant(ADDRESS, PIECE)), n_features
        for v in range(VECTORS):
            table = 8 * LANES * v
            rows = load(builder, addresses, table, ir.VectorType(ADDRESS, LANES), 8)
            each = [load(builder, addresses, table + 8 * i, ADDRESS, 8) for i in range(LANES)]
            total = cgutils.alloca_once(builder, VECTOR)
            builder.store(ir.Constant(VECTOR, [0.0] * LANES), total)

            def out(value, feature, v=v, total=total):
                place = builder.add(y, builder.mul(feature, ir.Constant(ADDRESS, 4 * GROUP)))
                store(builder, value, place, BYTES * v)
                square = builder.fadd(builder.load(total), builder.fmul(value, value))
                builder.store(square, total)

            turned(builder, kind, each, n_pieces, (origin, scale), out)
            gathered(builder, kind, rows, stride, span, (origin, scale), out)
            store(builder, grown(builder, builder.load(total), n_features), squares, BYTES * v)
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def frame_run(typingctx, address, n_features, origin, scale, y, squares):
    """Do the same for a group of rows of 1 to NARROW features, end to end from `address`."""
    signature = types.void(*[types.intp] * 3, scale, *[types.intp] * 2)
    double = scale == types.float64

    def codegen(context, builder, sig, args):
        address, n_features, origin, scale, y, squares = args
        kind, size = (ir.DoubleType(), 8) if double else (FLOAT, 4)
        wide = ir.VectorType(kind, LANES)
        for d in range(1, NARROW + 1):
            here = builder.icmp_signed("==", n_features, ir.Constant(ADDRESS, d))
            with builder.if_then(here):
                m = [splat(builder, load(builder, origin, size * f, kind, size), wide)
                     for f in range(d)]  # fmt: skip
                rows = ir.VectorType(kind, LANES * d)
                for v in range(VECTORS):
                    run = load(builder, address, size * LANES * d * v, rows, size)
                    total = ir.Constant(VECTOR, [0.0] * LANES)
                    for f in range(d):
                        lanes = [lane * d + f for lane in range(LANES)]
                        x = builder.shuffle_vector(run, run, ir.Constant(IVECTOR, lanes))
                        value = framed(builder, x, m[f], scale)
                        store(builder, value, y, 4 * GROUP * f + BYTES * v)
                        total = builder.fadd(total, builder.fmul(value, value))
                    store(builder, grown(builder, total, n_features), squares, BYTES * v)
        return context.get_dummy_value()

    return signature, codegen
