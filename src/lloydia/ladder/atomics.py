"""Atomic operations of threads on the CPU, which Numba's parallel loops do not have.

They are LLVM's ``atomicrmw`` on an element of a one-dimensional array: what a C++ compiler makes of
OpenMP's ``atomic``, and what a lock (``critical``) and a counter of chunks that are handed out
(``schedule(dynamic)``) are built from.
"""

from __future__ import annotations

from typing import Any

from numba.core import types
from numba.extending import intrinsic

__all__ = ["atomic_add", "exchange"]


def _on_element(operation):
    """Return code for an operation on an element: (array, index, number) to what was there."""

    def codegen(context, builder, signature, args):
        array_type, _, number_type = signature.args
        array = context.make_array(array_type)(context, builder, args[0])
        element = builder.gep(array.data, [args[1]])
        number = context.cast(builder, args[2], number_type, array_type.dtype)
        is_float = isinstance(array_type.dtype, types.Float)
        chosen = f"f{operation}" if is_float else operation
        # Aligned by its own size, as LLVM demands: the elements of an array are.
        return builder.atomic_rmw(chosen, element, number, "seq_cst")

    return codegen


def _atomic_add(typingctx, array, index, number):
    """Add a number to an element, and return what was there."""
    return array.dtype(array, types.intp, number), _on_element("add")


def _exchange(typingctx, array, index, number):
    """Put an integer into an element, and return what was there."""
    return array.dtype(array, types.intp, number), _on_element("xchg")


# Numba gives them the typing context, which callers do not.
atomic_add: Any = intrinsic(_atomic_add)
exchange: Any = intrinsic(_exchange)
