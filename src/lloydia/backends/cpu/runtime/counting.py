"""Loops over numbers, in half of the code that Numba makes of a `range`.

A `range` may go down and over any type; how many numbers it has is worked out beforehand.  Most of
a kernel's code before optimisation would be that, and a first fit waits for its kernels to be
compiled.  Those that it does not need keep to `range`, over which some loops are a twentieth
faster, for reasons of the compiler's own.
"""

from __future__ import annotations

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.core.imputils import RefType, iternext_impl
from numba.extending import intrinsic, lower_builtin, models, register_model

__all__ = ["upto"]

_INT = ir.IntType(64)


class Upto(types.SimpleIteratorType):
    """What :func:`upto` returns."""

    def __init__(self) -> None:
        super().__init__("upto", types.int64)


UPTO = Upto()


@register_model(Upto)
class _Model(models.StructModel):
    def __init__(self, manager, kind):
        whole = types.int64
        members = [("at", types.CPointer(whole)), ("stop", whole), ("step", whole)]
        super().__init__(manager, kind, members)


@intrinsic
def upto(typingctx, start, stop=None, step=1):
    """Iterate over numbers: the arguments are those of `range`, and the step is positive.

    It is used once: ``for i in upto(start, stop)``.  They are signed: a loop over what is not, and
    needs no look at its sign where it is an index, keeps to `range`.
    """
    if any(kind in types.unsigned_domain for kind in (start, stop, step)):
        raise TypingError("upto counts in signed integers: use range for others.")
    one = stop is None
    signature = UPTO(types.int64, types.none if one else types.int64, types.int64)

    def codegen(context, builder, sig, args):
        start, stop, step = args
        if one:
            start, stop = _INT(0), start
        state = cgutils.create_struct_proxy(UPTO)(context, builder)
        state.at = cgutils.alloca_once(builder, _INT)
        builder.store(start, state.at)
        state.stop, state.step = stop, step
        return state._getvalue()

    return signature, codegen


@lower_builtin("iternext", Upto)
@iternext_impl(RefType.UNTRACKED)
def _next(context, builder, sig, args, result):
    place, stop, step = (builder.extract_value(args[0], i) for i in range(3))
    at = builder.load(place)
    result.set_valid(builder.icmp_signed("<", at, stop))
    result.yield_(at)
    builder.store(builder.add(at, step, flags=["nsw"]), place)
