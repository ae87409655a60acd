"""Threads' limbs of a cluster, added up and read as floats: explicit vectors, WIDTH columns each.

All of a column stays in registers, from its last limb to its first.
"""

from __future__ import annotations

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from lloydia.backends.cpu.simd.limbs import WIDTH
from lloydia.backends.cpu.simd.microkernel_rows_in_lanes import splat

__all__ = ["add_limbs"]

_ADDRESS, _INT, _DOUBLE = ir.IntType(64), ir.IntType(32), ir.DoubleType()
_DOUBLES, _INTEGERS = ir.VectorType(_DOUBLE, WIDTH), ir.VectorType(_ADDRESS, WIDTH)
_BITS = ir.VectorType(ir.IntType(1), WIDTH)
_LANES = ir.Constant(_INTEGERS, list(range(WIDTH)))
_NOTHING, _ZERO = ir.Constant(_INTEGERS, [0] * WIDTH), ir.Constant(_DOUBLES, [0.0] * WIDTH)


def _two_sum(builder, a, b):
    """Return ``fl(a + b)`` and its rounding error."""
    s = builder.fadd(a, b)
    t = builder.fsub(s, a)
    lost = builder.fsub(a, builder.fsub(s, t))
    return s, builder.fadd(lost, builder.fsub(b, t))


def _column(builder, parts, j, column, width):
    """Return what loads a vector of columns of a part's limb: 0 after the last column."""
    lanes = builder.add(splat(builder, column, _INTEGERS), _LANES)
    there = builder.icmp_signed("<", lanes, splat(builder, width, _INTEGERS))
    pitches = [builder.extract_value(parts.strides, axis) for axis in range(3)]
    start = builder.ptrtoint(parts.data, _ADDRESS)
    start = builder.add(start, builder.mul(j, pitches[2]))
    start = builder.add(start, builder.mul(column, _ADDRESS(8)))
    pointer = _INTEGERS.as_pointer()
    masked = cgutils.get_or_insert_function(
        builder.module,
        ir.FunctionType(_INTEGERS, [pointer, _INT, _BITS, _INTEGERS]),
        f"llvm.masked.load.v{WIDTH}i64.p0",
    )

    def load(part, limb):
        at = builder.add(builder.mul(part, pitches[0]), builder.mul(limb, pitches[1]))
        at = builder.inttoptr(builder.add(start, at), pointer)
        return builder.call(masked, [at, _INT(8), there, _NOTHING])

    return load


def _read_column(builder, load, shape, bits):
    """Emit the sum of a vector of columns; return two floats each, and which begin later."""
    n_parts, n_limbs = shape
    places = digits, seen, high, low, hidden = [
        cgutils.alloca_once(builder, kind)
        for kind in (_INTEGERS, _INTEGERS, _DOUBLES, _DOUBLES, _BITS)
    ]
    for place in places:
        builder.store(place.type.pointee([0] * WIDTH), place)
    shift = splat(builder, bits, _INTEGERS)
    half = splat(builder, builder.shl(_ADDRESS(1), builder.sub(bits, _ADDRESS(1))), _INTEGERS)
    # Two to the power of -bits, made from its exponent.
    small = builder.shl(builder.sub(_ADDRESS(1023), bits), _ADDRESS(52))
    small = splat(builder, builder.bitcast(small, _DOUBLE), _DOUBLES)
    last = builder.sub(n_limbs, _ADDRESS(1))
    # Later limbs are too small to change the result.
    first_limb = builder.sdiv(builder.add(bits, _ADDRESS(119)), bits)
    with cgutils.for_range(builder, n_limbs) as loop:
        limb = builder.sub(last, loop.index)
        # `digits` starts with the carry of the limb after this one.
        with cgutils.for_range(builder, n_parts) as inner:
            total = builder.add(builder.load(digits), load(inner.index, limb))
            builder.store(total, digits)
        total = builder.load(digits)
        first = builder.icmp_signed("==", limb, _ADDRESS(0))
        over = builder.ashr(builder.add(total, half), shift)
        over = builder.select(first, _NOTHING, over)
        digit = builder.sub(total, builder.shl(over, shift))
        builder.store(over, digits)
        before = builder.load(seen)
        hides = builder.and_(
            builder.icmp_signed("==", digit, _NOTHING), builder.icmp_signed("!=", before, _NOTHING)
        )
        # The last iteration, that of the first limb, decides.
        builder.store(hides, hidden)
        builder.store(builder.or_(before, digit), seen)
        counts = builder.icmp_signed("<", limb, first_limb)
        a, b = (builder.select(counts, builder.load(place), _ZERO) for place in (high, low))
        top = builder.sitofp(digit, _DOUBLES)
        remainder = builder.sub(digit, builder.fptosi(top, _INTEGERS))
        remainder = builder.sitofp(remainder, _DOUBLES)
        h, error = _two_sum(builder, top, builder.fmul(a, small))
        remainder = builder.fadd(error, builder.fadd(remainder, builder.fmul(b, small)))
        for value, place in zip(_two_sum(builder, h, remainder), (high, low), strict=True):
            builder.store(value, place)
    return [builder.load(place) for place in (high, low, hidden)]


@intrinsic
def add_limbs(typingctx, parts, j, bits, numbers):
    """Add the threads' limbs of cluster `j`, carry, and return the sums as two floats a number.

    It does what `carry` and `significand` of exact.means do, for numbers that begin in the first
    limb or are 0; it returns whether there are others.

    Parameters
    ----------
    parts : IN, ndarray (n_threads, n_limbs, k or more, d + 1 or more), int64
    numbers : OUT, ndarray (2, d + 1 or more), float64
        Padded to a multiple of WIDTH.
    """
    signature = types.boolean(parts, types.int64, types.int64, numbers)

    def codegen(context, builder, sig, args):
        parts, numbers = (
            context.make_array(sig.args[i])(context, builder, args[i]) for i in (0, 3)
        )
        shape = [builder.extract_value(parts.shape, axis) for axis in range(4)]
        size = builder.extract_value(numbers.shape, 1)
        out = builder.ptrtoint(numbers.data, _ADDRESS)
        any_hidden = cgutils.alloca_once_value(builder, ir.IntType(1)(0))
        with cgutils.for_range_slice(builder, _ADDRESS(0), size, _ADDRESS(WIDTH)) as (column, _):
            load = _column(builder, parts, args[1], column, shape[3])
            high, low, hidden = _read_column(builder, load, shape[:2], args[2])
            for row, value in enumerate((high, low)):
                to = builder.add(column, builder.mul(size, _ADDRESS(row)))
                to = builder.add(out, builder.mul(to, _ADDRESS(8)))
                builder.store(value, builder.inttoptr(to, _DOUBLES.as_pointer())).align = 8
            hidden = builder.bitcast(hidden, ir.IntType(WIDTH))
            hidden = builder.icmp_unsigned("!=", hidden, ir.IntType(WIDTH)(0))
            builder.store(builder.or_(hidden, builder.load(any_hidden)), any_hidden)
        return builder.load(any_hidden)

    return signature, codegen
