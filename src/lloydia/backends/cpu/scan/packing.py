"""A panel of centres, framed: a centre in every lane."""

from __future__ import annotations

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from lloydia.backends.cpu.simd.microkernel_rows_in_lanes import (
    ADDRESS,
    FLOAT,
    INT,
    LOWEST_SCORE,
    PANEL,
    load,
    splat,
)

__all__ = ["fill_panel"]

_DOUBLE = ir.DoubleType()
_DOUBLES, _FLOATS = ir.VectorType(_DOUBLE, PANEL), ir.VectorType(FLOAT, PANEL)
_LANES = ir.Constant(ir.VectorType(ADDRESS, PANEL), list(range(PANEL)))


def _rows(builder, centers, first):
    """Return the addresses of PANEL centres from `first` on; the last centre stands for padding."""
    last = builder.sub(builder.extract_value(centers.shape, 0), ADDRESS(1))
    pitch, data = builder.extract_value(centers.strides, 0), builder.ptrtoint(centers.data, ADDRESS)
    rows = []
    for lane in range(PANEL):
        j = builder.add(first, ADDRESS(lane))
        j = builder.select(builder.icmp_signed("<", j, last), j, last)
        rows.append(builder.add(data, builder.mul(j, pitch)))
    return rows


def _largest(builder, values):
    """Return the largest of a vector's numbers."""
    top = builder.extract_element(values, INT(0))
    for lane in range(1, PANEL):
        value = builder.extract_element(values, INT(lane))
        top = builder.select(builder.fcmp_ordered(">", value, top), value, top)
    return top


@intrinsic
def fill_panel(typingctx, centers, origin, scale, number, panels, half_squares, columns):
    """Write panel `number` of framed centres, its initial scores, and its columns.

    `centers` (k, d), float64, are the centres; the rest is as in
    :class:`lloydia.backends.cpu.scan.centers.Packed`.  Returns the largest squared norm.
    """
    signature = types.float64(
        centers, origin, types.float64, types.int64, panels, half_squares, columns
    )
    size = 8 if origin.dtype == types.float64 else 4
    kind = _DOUBLE if size == 8 else FLOAT

    def codegen(context, builder, sig, args):
        scale, number = args[2:4]
        centers, origin, panels, half_squares, columns = (
            context.make_array(sig.args[i])(context, builder, args[i]) for i in (0, 1, 4, 5, 6)
        )
        k, d = (builder.extract_value(centers.shape, axis) for axis in (0, 1))
        first = builder.mul(number, ADDRESS(PANEL))
        there = builder.icmp_signed("<", _LANES, splat(builder, builder.sub(k, first), _LANES.type))
        rows, scale = _rows(builder, centers, first), splat(builder, scale, _DOUBLES)
        base, middle = (builder.ptrtoint(a.data, ADDRESS) for a in (panels, origin))
        to = builder.add(base, builder.mul(number, builder.extract_value(panels.strides, 0)))
        offset = builder.mul(first, ADDRESS(4))
        out = builder.add(builder.ptrtoint(columns.data, ADDRESS), offset)
        pitch, pointer = builder.extract_value(columns.strides, 0), _FLOATS.as_pointer()
        masked_store = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(ir.VoidType(), [_FLOATS, pointer, INT, there.type]),
            f"llvm.masked.store.v{PANEL}f32.p0",
        )
        total = cgutils.alloca_once(builder, _DOUBLES)
        builder.store(ir.Constant(_DOUBLES, [0.0] * PANEL), total)
        with cgutils.for_range(builder, d) as loop:
            x, at = ir.Constant(_DOUBLES, ir.Undefined), builder.mul(loop.index, ADDRESS(8))
            for lane, row in enumerate(rows):
                value = load(builder, builder.add(row, at), 0, _DOUBLE, 8)
                x = builder.insert_element(x, value, INT(lane))
            at = builder.add(middle, builder.mul(loop.index, ADDRESS(size)))
            m = load(builder, at, 0, kind, size)
            m = splat(builder, m if size == 8 else builder.fpext(m, _DOUBLE), _DOUBLES)
            value = builder.fptrunc(builder.fmul(builder.fsub(x, m), scale), _FLOATS)
            place = builder.add(to, builder.mul(loop.index, ADDRESS(4 * PANEL)))
            builder.store(value, builder.inttoptr(place, pointer)).align = 4 * PANEL
            place = builder.add(out, builder.mul(loop.index, pitch))
            builder.call(masked_store, [value, builder.inttoptr(place, pointer), INT(4), there])
            value = builder.fpext(value, _DOUBLES)
            square = builder.fadd(builder.load(total), builder.fmul(value, value))
            builder.store(square, total)
        squares = builder.load(total)
        half = builder.fptrunc(
            builder.fmul(squares, ir.Constant(_DOUBLES, [-0.5] * PANEL)), _FLOATS
        )
        half = builder.select(there, half, ir.Constant(_FLOATS, [LOWEST_SCORE] * PANEL))
        place = builder.add(builder.ptrtoint(half_squares.data, ADDRESS), offset)
        builder.store(half, builder.inttoptr(place, pointer)).align = 4 * PANEL
        return _largest(builder, squares)

    return signature, codegen
