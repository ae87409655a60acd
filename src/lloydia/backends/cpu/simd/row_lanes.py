"""The canonical distance of each row to one centre: a row in every lane.

D is a sum in feature order, a chain in which each addition waits for the one before; LANES rows are
as many chains in a vector.  The squares of BLOCK features are computed row by row and transposed in
registers; the remaining features are gathered.
"""

from __future__ import annotations

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from lloydia.backends.cpu.simd.frames import BLOCK, transposed
from lloydia.backends.cpu.simd.microkernel_rows_in_lanes import ADDRESS, INT, LANES, load

__all__ = ["LANES", "add_squares"]

DOUBLE = ir.DoubleType()
WIDE = ir.VectorType(DOUBLE, LANES)


def _square(builder, x, c):
    """Return ``(x - c)**2``, in float64."""
    if x.type != c.type:
        x = builder.fpext(x, c.type)
    difference = builder.fsub(x, c)
    return builder.fmul(difference, difference)


def _add_blocks(builder, kind, rows, centers, n_blocks, total):
    """Add the squares of blocks of contiguous features; rows and centres are addresses."""
    run, wide = ir.VectorType(kind, BLOCK), ir.VectorType(DOUBLE, BLOCK)
    size = 8 if kind == DOUBLE else 4
    both = ir.Constant(ir.VectorType(INT, LANES), list(range(LANES)))
    with cgutils.for_range(builder, n_blocks) as loop:
        first = builder.mul(loop.index, ADDRESS(BLOCK))
        blocks = []
        for row, center in zip(rows, centers, strict=True):
            x = load(builder, builder.add(row, builder.mul(first, ADDRESS(size))), 0, run, size)
            c = load(builder, builder.add(center, builder.mul(first, ADDRESS(8))), 0, wide, 8)
            blocks.append(_square(builder, x, c))
        if BLOCK < LANES:
            pairs = zip(blocks[:BLOCK], blocks[BLOCK:], strict=True)
            blocks = [builder.shuffle_vector(*pair, both) for pair in pairs]
        for squares in transposed(builder, blocks):
            builder.store(builder.fadd(builder.load(total), squares), total)


def _gathered(builder, kind, addresses, offset):
    """Return the values at an offset from a vector of addresses."""
    size, wide = 8 if kind == DOUBLE else 4, ir.VectorType(kind, LANES)
    pointers, bits = ir.VectorType(kind.as_pointer(), LANES), ir.VectorType(ir.IntType(1), LANES)
    gather = cgutils.get_or_insert_function(
        builder.module,
        ir.FunctionType(wide, [pointers, INT, bits, wide]),
        f"llvm.masked.gather.v{LANES}f{8 * size}.v{LANES}p0",
    )
    one = builder.insert_element(ir.Constant(addresses.type, ir.Undefined), offset, INT(0))
    lanes = ir.Constant(ir.VectorType(INT, LANES), [0] * LANES)
    where = builder.add(addresses, builder.shuffle_vector(one, one, lanes))
    every, nothing = ir.Constant(bits, [1] * LANES), ir.Constant(wide, ir.Undefined)
    return builder.call(gather, [builder.inttoptr(where, pointers), INT(size), every, nothing])


@intrinsic
def add_squares(typingctx, X, rows, centers, stride, n_features, D):
    """Write the D of LANES rows of `X`, each to one of LANES centres, to `D`, float64.

    `rows` and `centers` point to LANES addresses of first values, of rows and of centres; the
    values of a centre are contiguous, and `stride` is the bytes from one value of a row to the
    next.
    """
    signature = types.void(X, *[types.intp] * 5)
    kind = ir.FloatType() if X.dtype == types.float32 else DOUBLE

    def codegen(context, builder, sig, args):
        _, rows, centers, stride, n_features, D = args
        total = cgutils.alloca_once_value(builder, ir.Constant(WIDE, [0.0] * LANES))
        tables = [load(builder, table, 0, ir.VectorType(ADDRESS, LANES), 8)
                  for table in (rows, centers)]  # fmt: skip
        addresses_of = [[load(builder, table, 8 * lane, ADDRESS, 8) for lane in range(LANES)]
                for table in (rows, centers)]  # fmt: skip
        contiguous = builder.icmp_signed("==", stride, ADDRESS(8 if kind == DOUBLE else 4))
        n_blocks = builder.udiv(n_features, ADDRESS(BLOCK))
        n_blocks = builder.select(contiguous, n_blocks, ADDRESS(0))
        _add_blocks(builder, kind, *addresses_of, n_blocks, total)
        start = builder.mul(n_blocks, ADDRESS(BLOCK))
        with cgutils.for_range(builder, n_features, start=start) as loop:
            x = _gathered(builder, kind, tables[0], builder.mul(loop.index, stride))
            c = _gathered(builder, DOUBLE, tables[1], builder.mul(loop.index, ADDRESS(8)))
            builder.store(builder.fadd(builder.load(total), _square(builder, x, c)), total)
        pointer = builder.inttoptr(D, WIDE.as_pointer())
        builder.store(builder.load(total), pointer).align = 8
        return context.get_dummy_value()

    return signature, codegen
