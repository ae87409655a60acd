"""Lists the rows that change their label, without a branch for each row."""

from __future__ import annotations

from llvmlite import ir
from llvmlite.binding import get_host_cpu_features
from numba.core import cgutils, types
from numba.extending import intrinsic

__all__ = ["WIDTH", "list_differing"]

WIDTH = 16 if get_host_cpu_features().get("avx512f") else 8

_INT, _ADDRESS = ir.IntType(32), ir.IntType(64)
_LABELS = ir.VectorType(_INT, WIDTH)
_LANES = ir.Constant(_LABELS, list(range(WIDTH)))


@intrinsic
def list_differing(typingctx, a, b, count, listed):
    """Write the places where two lists of int32 differ to `listed`, int32; return how many.

    All are addresses but the `count`, a multiple of WIDTH below 2**31.  `listed` has room for
    WIDTH more than are found.
    """
    signature = types.intp(*[types.intp] * 4)

    def codegen(context, builder, sig, args):
        a, b, count, listed = args

        def call(name, result, *args):
            kind = ir.FunctionType(result, [value.type for value in args])
            function = cgutils.get_or_insert_function(builder.module, kind, name)
            return builder.call(function, args)

        def splat(number):
            one = builder.insert_element(ir.Constant(_LABELS, ir.Undefined), number, _INT(0))
            return builder.shuffle_vector(one, one, ir.Constant(_LABELS, [0] * WIDTH))

        def at(base, offset):
            return builder.inttoptr(builder.add(base, offset), _LABELS.as_pointer())

        found = cgutils.alloca_once_value(builder, _ADDRESS(0))
        with cgutils.for_range(builder, builder.udiv(count, _ADDRESS(WIDTH))) as loop:
            offset = builder.mul(loop.index, _ADDRESS(4 * WIDTH))
            old, new = builder.load(at(a, offset)), builder.load(at(b, offset))
            old.align = new.align = 4
            unequal = builder.icmp_signed("!=", old, new)
            first = builder.trunc(builder.mul(loop.index, _ADDRESS(WIDTH)), _INT)
            places = call(
                f"llvm.experimental.vector.compress.v{WIDTH}i32", _LABELS,
                builder.add(splat(first), _LANES), unequal, ir.Constant(_LABELS, ir.Undefined),
            )  # fmt: skip
            so_far = builder.load(found)
            to = at(listed, builder.mul(so_far, _ADDRESS(4)))
            builder.store(places, to).align = 4
            bits = builder.bitcast(unequal, ir.IntType(WIDTH))
            here = call(f"llvm.ctpop.i{WIDTH}", bits.type, bits)
            builder.store(builder.add(so_far, builder.zext(here, _ADDRESS)), found)
        return builder.load(found)

    return signature, codegen
