"""Framed rows: ``(x - origin) * scale`` in float32, transposed so that a row is in every lane.

If a row's features are contiguous, BLOCK of them are loaded at once and transposed in registers;
contiguous rows of few features are deinterleaved by shuffles; otherwise each value is gathered.
All three compute the same numbers.
"""

from __future__ import annotations

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from lloydia.backends.cpu.simd.microkernel_rows_in_lanes import (
    ADDRESS,
    BYTES,
    FLOAT,
    GROUP,
    INT,
    IVECTOR,
    LANES,
    VECTOR,
    VECTORS,
    address_of,
    load,
    splat,
    store,
)

__all__ = [
    "emit_prefetch",
    "frame_group",
    "frame_interleaved",
    "is_compact",
    "is_interleaved",
    "prefetch",
]

# Up to this many features, contiguous rows are deinterleaved by shuffles.
INTERLEAVED_FEATURES = 4

# Features of a row that are loaded at once.
BLOCK = min(LANES, 8)

# Bytes of a cache line.
LINE = 64


def emit_prefetch_line(builder, address):
    """Emit the prefetch of a cache line."""
    byte = ir.IntType(8).as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [byte, INT, INT, INT])
    function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    builder.call(function, [builder.inttoptr(address, byte), INT(0), INT(3), INT(1)])


def grown(builder, square, n_features):
    """Return an upper bound on a squared norm from its float32 sum of `n_features` squares."""
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
    floats = ir.VectorType(FLOAT, kind.count)
    return value if kind == floats else builder.fptrunc(value, floats)


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
    """Turn BLOCK vectors of rows into vectors of features, in each part of BLOCK lanes.

    Bit by bit, the number of the lane and the number of the vector are exchanged.
    """
    for bit in (1, 2, 4):
        if bit < BLOCK:
            before, rows = rows, list(rows)
            for i in (i for i in range(BLOCK) if not i & bit):
                low = [lane ^ bit | LANES if lane & bit else lane for lane in range(LANES)]
                high = [lane | LANES if lane & bit else lane | bit for lane in range(LANES)]
                for to, lanes in ((i, low), (i | bit, high)):
                    mask = ir.Constant(IVECTOR, lanes)
                    rows[to] = builder.shuffle_vector(before[i], before[i | bit], mask)
    return rows


def transposed_blocks(builder, kind, rows, n_blocks, frame, out):
    """Do what :func:`gathered` does for blocks of BLOCK contiguous features.

    Here `rows` is a list of addresses.
    """
    (origin, scale), size = frame, size_of(kind)
    run = ir.VectorType(kind, BLOCK)
    with cgutils.for_range(builder, n_blocks) as loop:
        first = builder.mul(loop.index, ir.Constant(ADDRESS, BLOCK))
        offset = builder.mul(first, ir.Constant(ADDRESS, size))
        m = load(builder, builder.add(origin, offset), 0, run, size)
        blocks = []
        for lane in range(LANES):
            row = builder.add(rows[lane], offset)
            blocks.append(framed(builder, load(builder, row, 0, run, size), m, scale))
        if BLOCK < LANES:
            both = ir.Constant(IVECTOR, list(range(LANES)))
            pairs = zip(blocks[:BLOCK], blocks[BLOCK:], strict=True)
            blocks = [builder.shuffle_vector(*pair, both) for pair in pairs]
        for i, value in enumerate(transposed(builder, blocks)):
            out(value, builder.add(first, ir.Constant(ADDRESS, i)))


def emit_prefetch(builder, address, size):
    """Emit the prefetch of the cache lines of `size` bytes from an address on."""
    with cgutils.for_range_slice(
        builder, ir.Constant(ADDRESS, 0), size, ir.Constant(ADDRESS, LINE)
    ) as (offset, _):
        emit_prefetch_line(builder, builder.add(address, offset))


@intrinsic
def prefetch(typingctx, address, size):
    """Prefetch the cache lines of `size` bytes from an address on."""

    def codegen(context, builder, sig, args):
        emit_prefetch(builder, *args)
        return context.get_dummy_value()

    return types.void(types.intp, types.intp), codegen


def axes_of(shape):
    """Return the number of features that the type of a shape gives; 0 if it gives none.

    :mod:`scan.group_scores` lists the shapes.
    """
    if isinstance(shape, types.UniTuple):
        return shape.count
    return shape[0].count if isinstance(shape, types.Tuple) else 0


@intrinsic
def is_compact(typingctx, X):
    """Return whether rows are contiguous: a constant of the compiled code."""

    def codegen(context, builder, sig, args):
        return ir.Constant(ir.IntType(1), X.layout == "C")

    return types.boolean(X), codegen


@intrinsic
def is_interleaved(typingctx, shape):
    """Return whether :func:`frame_interleaved` frames rows of that shape: a constant."""
    floats = 0 < axes_of(shape) <= INTERLEAVED_FEATURES

    def codegen(context, builder, sig, args):
        return ir.Constant(ir.IntType(1), floats)

    return types.boolean(shape), codegen


def _places(builder, y, squares, g):
    """Return the addresses of group `g` in two arrays of compiled code."""
    pitch = builder.extract_value(builder.extract_value(y, 6), 0)
    start = builder.ptrtoint(builder.extract_value(y, 4), ADDRESS)
    first = builder.mul(g, ADDRESS(GROUP))
    return builder.add(start, builder.mul(g, pitch)), address_of(builder, squares, first)


@intrinsic
def frame_group(typingctx, shape, addresses, X, origin, scale, y, squares, g):
    """Write ``(x - origin) * scale`` of a group of rows to `y`, and bounds on their squared norms.

    Parameters
    ----------
    shape
        See :mod:`scan.group_scores`.
    addresses : IN, ndarray (GROUP,), int64
        The first value of each row.
    X : array
        Only its type and strides are used.
    origin, scale : IN
        The frame.
    y, squares : OUT
        Group `g` of them is written.
    """
    signature = types.void(shape, addresses, X, origin, scale, y, squares, types.intp)
    double, short = scale == types.float64, 0 < axes_of(shape) < BLOCK

    def codegen(context, builder, sig, args):
        _, addresses, X, origin, scale, y, squares, g = args
        addresses, origin = (
            address_of(builder, array, ADDRESS(0)) for array in (addresses, origin)
        )
        stride, n_features = (builder.extract_value(builder.extract_value(X, i), 1) for i in (6, 5))
        y, squares = _places(builder, y, squares, g)
        kind = ir.DoubleType() if double else FLOAT
        contiguous = builder.icmp_signed("==", stride, ir.Constant(ADDRESS, size_of(kind)))
        n_blocks = builder.udiv(n_features, ir.Constant(ADDRESS, BLOCK))
        n_blocks = builder.select(contiguous, n_blocks, ir.Constant(ADDRESS, 0))
        n_blocks = ADDRESS(0) if short else n_blocks
        span = builder.mul(n_blocks, ir.Constant(ADDRESS, BLOCK)), n_features
        total = cgutils.alloca_once(builder, VECTOR)
        with cgutils.for_range(builder, ADDRESS(VECTORS)) as loop:
            offset = builder.mul(loop.index, ADDRESS(BYTES))
            table = builder.add(addresses, builder.mul(loop.index, ADDRESS(8 * LANES)))
            to = builder.add(y, offset)
            builder.store(ir.Constant(VECTOR, [0.0] * LANES), total)

            def out(value, feature):
                place = builder.add(to, builder.mul(feature, ir.Constant(ADDRESS, 4 * GROUP)))
                store(builder, value, place, 0)
                square = builder.fadd(builder.load(total), builder.fmul(value, value))
                builder.store(square, total)

            if not short:
                each = [load(builder, table, 8 * i, ADDRESS, 8) for i in range(LANES)]
                transposed_blocks(builder, kind, each, n_blocks, (origin, scale), out)
            rows = load(builder, table, 0, ir.VectorType(ADDRESS, LANES), 8)
            gathered(builder, kind, rows, stride, span, (origin, scale), out)
            square = grown(builder, builder.load(total), n_features)
            store(builder, square, builder.add(squares, offset), 0)
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def frame_interleaved(typingctx, shape, X, first, origin, scale, y, squares, g):
    """Do the same for a group of contiguous rows of `X`, from row `first` on.

    Only for shapes for which :func:`is_interleaved` is true; for others no code is emitted.
    """
    signature = types.void(shape, X, types.intp, origin, scale, y, squares, types.intp)
    double, d = scale == types.float64, axes_of(shape)

    def codegen(context, builder, sig, args):
        _, X, first, origin, scale, y, squares, g = args
        kind, size = (ir.DoubleType(), 8) if double else (FLOAT, 4)
        if not 0 < d <= INTERLEAVED_FEATURES:
            return context.get_dummy_value()
        pitch = builder.extract_value(builder.extract_value(X, 6), 0)
        address = builder.ptrtoint(builder.extract_value(X, 4), ADDRESS)
        address = builder.add(address, builder.mul(first, pitch))
        origin = address_of(builder, origin, ADDRESS(0))
        y, squares = _places(builder, y, squares, g)
        wide, rows = ir.VectorType(kind, LANES), ir.VectorType(kind, LANES * d)
        m = [splat(builder, load(builder, origin, size * f, kind, size), wide) for f in range(d)]
        for v in range(VECTORS):
            run = load(builder, address, size * LANES * d * v, rows, size)
            total = ir.Constant(VECTOR, [0.0] * LANES)
            for f in range(d):
                lanes = [lane * d + f for lane in range(LANES)]
                x = builder.shuffle_vector(run, run, ir.Constant(IVECTOR, lanes))
                value = framed(builder, x, m[f], scale)
                store(builder, value, y, 4 * GROUP * f + BYTES * v)
                total = builder.fadd(total, builder.fmul(value, value))
            store(builder, grown(builder, total, ADDRESS(d)), squares, BYTES * v)
        return context.get_dummy_value()

    return signature, codegen
