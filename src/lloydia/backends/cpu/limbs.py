"""One limb of a row's integers, moved from one cluster to another: explicit vectors again."""

from __future__ import annotations

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

__all__ = ["WIDTH", "move_limb", "padded"]

# Sums, and what is added to them, are padded to a multiple of this: a cluster's start a cache line.
WIDTH = 8

_DOUBLES = ir.VectorType(ir.DoubleType(), WIDTH)
_INTEGERS = ir.VectorType(ir.IntType(64), WIDTH)


def padded(n: int) -> int:
    """Return the next multiple of WIDTH."""
    return -(-n // WIDTH) * WIDTH


@intrinsic
def move_limb(typingctx, rest, size, inverse, quantum, step, new, old):
    """Add ``rint(rest * inverse)`` to `new`, subtract it from `old`, and keep what is left.

    All are addresses or counts (intp) but the step; `size` is a multiple of WIDTH.  `rest` becomes
    ``(rest - rint(rest * inverse) * quantum) * step``.  Returns whether any of it is not 0.
    """
    signature = types.boolean(*[types.intp] * 4, types.float64, *[types.intp] * 2)

    def codegen(context, builder, sig, args):
        rest, size, inverse, quantum, step, new, old = args
        address = ir.IntType(64)
        mask = ir.VectorType(ir.IntType(1), WIDTH)
        # The last bit of a sum with this is worth 1.
        shift = ir.Constant(_DOUBLES, [1.5 * 2.0**52] * WIDTH)
        nothing = ir.Constant(_DOUBLES, [0.0] * WIDTH)
        one = builder.insert_element(
            ir.Constant(_DOUBLES, ir.Undefined), step, ir.Constant(ir.IntType(32), 0)
        )
        steps = builder.shuffle_vector(
            one, one, ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), [0] * WIDTH)
        )
        left = cgutils.alloca_once_value(builder, ir.Constant(mask, [0] * WIDTH))

        def at(base, offset, kind):
            return builder.inttoptr(builder.add(base, offset), kind.as_pointer())

        def load(base, offset, kind):
            value = builder.load(at(base, offset, kind))
            value.align = 8
            return value

        def add(base, offset, value, operation):
            total = operation(load(base, offset, _INTEGERS), value)
            builder.store(total, at(base, offset, _INTEGERS)).align = 8

        with cgutils.for_range(builder, builder.udiv(size, ir.Constant(address, WIDTH))) as loop:
            offset = builder.mul(loop.index, ir.Constant(address, 8 * WIDTH))
            value = load(rest, offset, _DOUBLES)
            scaled = builder.fmul(value, load(inverse, offset, _DOUBLES))
            whole = builder.fsub(builder.fadd(scaled, shift), shift)
            integer = builder.fptosi(whole, _INTEGERS)
            add(new, offset, integer, builder.add)
            add(old, offset, integer, builder.sub)
            value = builder.fsub(value, builder.fmul(whole, load(quantum, offset, _DOUBLES)))
            value = builder.fmul(value, steps)
            builder.store(value, at(rest, offset, _DOUBLES)).align = 8
            some = builder.fcmp_unordered("!=", value, nothing)
            builder.store(builder.or_(builder.load(left), some), left)
        bits = builder.bitcast(builder.load(left), ir.IntType(WIDTH))
        return builder.zext(
            builder.icmp_unsigned("!=", bits, ir.Constant(ir.IntType(WIDTH), 0)), ir.IntType(1)
        )

    return signature, codegen
