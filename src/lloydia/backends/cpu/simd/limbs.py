"""Moves the integers of a row from one cluster to another, limb by limb, with explicit vectors.

WIDTH columns at a time stay in registers from the row's values to the last limb that is not 0.
"""

from __future__ import annotations

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from lloydia.exact.sums import DEKKER

__all__ = ["WIDTH", "move_rows", "padded"]

# Rows of sums are padded to a multiple of this, so that each cluster starts on a cache line.
WIDTH = 8

# A row is prefetched while the row this many places before it is moved.
PREFETCH_DEPTH = 8

# Cache lines of a row that are prefetched: 128 bytes lie in at most three.
LINES = 3

_BYTE, _INT, _ADDRESS = ir.IntType(8), ir.IntType(32), ir.IntType(64)
_DOUBLE = ir.DoubleType()
_DOUBLES, _INTEGERS = ir.VectorType(_DOUBLE, WIDTH), ir.VectorType(_ADDRESS, WIDTH)
_BITS = ir.VectorType(ir.IntType(1), WIDTH)
_LANES = ir.Constant(_INTEGERS, list(range(WIDTH)))
# Adding this rounds to an integer: the last bit of the sum is worth 1.
_SHIFT = ir.Constant(_DOUBLES, [1.5 * 2.0**52] * WIDTH)


def padded(n: int) -> int:
    """Return the next multiple of WIDTH."""
    return -(-n // WIDTH) * WIDTH


def _at(builder, base, offset, kind):
    return builder.inttoptr(builder.add(base, offset), kind.as_pointer())


def _load(builder, base, offset, kind):
    value = builder.load(_at(builder, base, offset, kind))
    value.align = 8
    return value


def _splat(builder, scalar):
    kind = ir.VectorType(scalar.type, WIDTH)
    one = builder.insert_element(ir.Constant(kind, ir.Undefined), scalar, _INT(0))
    return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(_INT, WIDTH), [0] * WIDTH))


def _prefetch(builder, address, size):
    """Emit the prefetch of `size` bytes, at most the first LINES cache lines of them."""
    last = builder.sub(size, _ADDRESS(1))
    for line in range(LINES):
        offset = _ADDRESS(64 * line)
        offset = builder.select(builder.icmp_signed("<", offset, last), offset, last)
        line = _at(builder, address, offset, _BYTE)
        kind = ir.FunctionType(ir.VoidType(), [line.type, _INT, _INT, _INT])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(function, [line, _INT(0), _INT(3), _INT(1)])


def _values(builder, kind, row, stride, d, first):
    """Return columns `first` and on of a row as float64: that after the last feature is 1."""
    columns = builder.add(_splat(builder, first), _LANES)
    there = builder.icmp_signed("<", columns, _splat(builder, d))
    wide, size = ir.VectorType(kind, WIDTH), 8 if kind == _DOUBLE else 4
    ones, nothing = (ir.Constant(wide, [number] * WIDTH) for number in (1.0, 0.0))
    last = builder.icmp_signed("==", columns, _splat(builder, d))
    other = builder.select(last, ones, nothing)
    suffix = f"v{WIDTH}f{8 * size}"

    def masked(name, where):
        align = _INT(size)
        function = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(wide, [where.type, _INT, _BITS, wide]), name
        )
        return builder.call(function, [where, align, there, other])

    out = cgutils.alloca_once(builder, wide)
    with builder.if_else(builder.icmp_signed("==", stride, _ADDRESS(size))) as (then, otherwise):
        with then:
            run = _at(builder, row, builder.mul(first, _ADDRESS(size)), wide)
            builder.store(masked(f"llvm.masked.load.{suffix}.p0", run), out)
        with otherwise:
            offsets = builder.mul(columns, _splat(builder, stride))
            addresses = builder.add(_splat(builder, row), offsets)
            each = builder.inttoptr(addresses, ir.VectorType(kind.as_pointer(), WIDTH))
            builder.store(masked(f"llvm.masked.gather.{suffix}.v{WIDTH}p0", each), out)
    value = builder.load(out)
    return value if kind == _DOUBLE else builder.fpext(value, _DOUBLES)


def _error(builder, a, b, p):
    """Return ``a * b - p`` exactly (Dekker 1971)."""
    factor = ir.Constant(_DOUBLES, [DEKKER] * WIDTH)

    def split(x):
        large = builder.fmul(x, factor)
        high = builder.fsub(large, builder.fsub(large, x))
        return high, builder.fsub(x, high)

    (a_high, a_low), (b_high, b_low) = split(a), split(b)
    error = builder.fsub(builder.fmul(a_high, b_high), p)
    error = builder.fadd(error, builder.fmul(a_high, b_low))
    error = builder.fadd(error, builder.fmul(a_low, b_high))
    return builder.fadd(error, builder.fmul(a_low, b_low))


def _move(builder, value, limbs, grid, clusters):
    """Move a vector of products to a cluster, and from another if it has an address."""
    quantum, inverse, steps = grid
    pitch, new, old, column = clusters
    off = builder.add(old, column)
    first, end = limbs
    remainder = cgutils.alloca_once_value(builder, value)
    nothing = ir.Constant(_DOUBLES, [0.0] * WIDTH)
    with cgutils.for_range(builder, end, start=first) as loop:
        value = builder.load(remainder)
        rounded = builder.fadd(builder.fmul(value, inverse), _SHIFT)
        rounded = builder.fsub(rounded, _SHIFT)
        integer = builder.fptosi(rounded, _INTEGERS)
        offset = builder.mul(loop.index, pitch)

        def change(cluster, operation):
            total = operation(_load(builder, cluster, offset, _INTEGERS), integer)
            builder.store(total, _at(builder, cluster, offset, _INTEGERS)).align = 8

        change(new, builder.add)
        with builder.if_then(builder.icmp_signed("!=", old, _ADDRESS(0))):
            change(off, builder.sub)
        value = builder.fsub(value, builder.fmul(rounded, quantum))
        builder.store(builder.fmul(value, steps), remainder)
        some = builder.bitcast(builder.fcmp_unordered("!=", value, nothing), ir.IntType(WIDTH))
        with builder.if_then(builder.icmp_unsigned("==", some, ir.IntType(WIDTH)(0))):
            loop.do_break()


def _move_columns(builder, kind, first, row, grid, recover, clusters):
    """Move WIDTH columns of a row, the `first` and those after it."""
    address, stride, d, weight = row
    n_limbs, pitch, new, old = clusters
    scale, quantum, inverse, step = grid
    offset = builder.mul(first, _ADDRESS(8))
    a = _values(builder, kind, address, stride, d, first)
    a = builder.fmul(a, _load(builder, scale, offset, _DOUBLES))
    p = builder.fmul(a, weight)
    steps = _splat(builder, step)
    grid = (*(_load(builder, part, offset, _DOUBLES) for part in (quantum, inverse)), steps)
    to = (pitch, builder.add(new, offset), old, offset)
    _move(builder, p, (_ADDRESS(0), n_limbs), grid, to)
    with builder.if_then(recover):
        # |error| <= 2**-53 |p| is less than half a step of limb 0.
        error = builder.fmul(_error(builder, a, weight, p), steps)
        _move(builder, error, (_ADDRESS(1), n_limbs), grid, to)


def _item(builder, table, index, kind, size):
    """Return the pointer to an entry of a table, given by address."""
    return _at(builder, table, builder.mul(index, _ADDRESS(size)), kind)


def _number(builder, table, index):
    """Return an entry of a table of int32."""
    return builder.sext(builder.load(_item(builder, table, index, _INT, 4)), _ADDRESS)


def _listed(builder, table, index, kind, otherwise):
    """Return an 8-byte entry of a table, or `otherwise` if its address is 0: there is no table."""
    out = cgutils.alloca_once(builder, kind)
    builder.store(otherwise, out)
    with builder.if_then(builder.icmp_signed("!=", table, _ADDRESS(0))):
        builder.store(builder.load(_item(builder, table, index, kind, 8)), out)
    return builder.load(out)


@intrinsic
def move_rows(
    typingctx, X, first, listed, count, rows, weights, fresh, labels, touched, grid, sums
):
    """Move the rows of a list to their fresh clusters.

    Parameters
    ----------
    X : ndarray (n, d)
    first, listed, count
        The list: int32 at the address `listed`, to be added to `first`.
    rows : address of int64 by list entry, the rows' numbers, or 0: the entries are these numbers
    weights : address of float64 by row, or 0: all 1
    fresh : address of int32 by list entry, without `first`
    labels : address of int32 by row, the old clusters (-1 for none); overwritten
    touched : address of bytes by cluster
    grid : (scale, quantum, inverse, step, recover)
        Of :func:`lloydia.backends.cpu.update.sums.accumulate`; the first three are addresses.
    sums : (address, limbs, bytes from one to the next, bytes from one cluster to the next)
    """
    grid = types.Tuple([*[types.intp] * 3, types.float64, types.boolean])
    totals = types.UniTuple(types.intp, 4)
    signature = types.void(X, *[types.intp] * 8, grid, totals)
    kind = ir.FloatType() if X.dtype == types.float32 else _DOUBLE

    def codegen(context, builder, sig, args):
        array, first, listed, count, rows, weights, fresh, labels, touched, grid, sums = args
        array = context.make_array(sig.args[0])(context, builder, array)
        d = builder.extract_value(array.shape, 1)
        pitches = [builder.extract_value(array.strides, axis) for axis in (0, 1)]
        *grid, recover = (builder.extract_value(grid, i) for i in range(5))
        base, n_limbs, limb_pitch, cluster_pitch = (
            builder.extract_value(sums, i) for i in range(4)
        )
        data = builder.ptrtoint(array.data, _ADDRESS)
        zero, one = _ADDRESS(0), _ADDRESS(1)
        # Several short rows share a cache line.
        wide = builder.icmp_signed(">=", d, _ADDRESS(WIDTH))

        def find(place):
            entry = builder.add(first, place)
            return _listed(builder, rows, entry, _ADDRESS, entry)

        with cgutils.for_range(builder, count) as loop:
            with builder.if_then(wide):
                prefetched, last = (
                    builder.add(loop.index, _ADDRESS(PREFETCH_DEPTH)),
                    builder.sub(count, one),
                )
                prefetched = builder.select(
                    builder.icmp_signed("<", prefetched, last), prefetched, last
                )
                prefetched = builder.mul(find(_number(builder, listed, prefetched)), pitches[0])
                size = builder.mul(d, _ADDRESS(8 if kind == _DOUBLE else 4))
                _prefetch(builder, builder.add(data, prefetched), size)
            place = _number(builder, listed, loop.index)
            row = find(place)
            weight = _listed(builder, weights, row, _DOUBLE, _DOUBLE(1.0))
            old, new = _number(builder, labels, row), _number(builder, fresh, place)
            builder.store(builder.trunc(new, _INT), _item(builder, labels, row, _INT, 4))
            joins = builder.icmp_signed("<", old, zero)
            for j in (new, builder.select(joins, new, old)):
                builder.store(_BYTE(1), _item(builder, touched, j, _BYTE, 1))
            to = builder.add(base, builder.mul(new, cluster_pitch))
            off = builder.add(base, builder.mul(old, cluster_pitch))
            row = builder.add(data, builder.mul(row, pitches[0]))
            values = (row, pitches[1], d, _splat(builder, weight))
            clusters = (n_limbs, limb_pitch, to, builder.select(joins, zero, off))
            _move_columns(builder, kind, zero, values, grid, recover, clusters)
            n_more = builder.udiv(d, _ADDRESS(WIDTH))
            with cgutils.for_range(builder, n_more) as block:
                column = builder.mul(builder.add(block.index, one), _ADDRESS(WIDTH))
                _move_columns(builder, kind, column, values, grid, recover, clusters)
        return context.get_dummy_value()

    return signature, codegen
