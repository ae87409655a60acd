"""How every kernel is compiled, and kept on disk for the next process."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.extending import intrinsic

from lloydia.backends.cpu.runtime.kernel_cache import Cache
from lloydia.imports import uncollected

__all__ = [
    "LEAN",
    "OVERLOAD",
    "floats",
    "hold",
    "integers",
    "kernel",
    "local",
    "maximum",
    "minimum",
    "part",
    "shaped",
    "subroutine",
]


def _digest() -> str:
    """Return a digest of all source that kernels are made of.

    Numba notices a change in a kernel's own file only, not in one that it calls.
    """
    package = Path(__file__).resolve().parents[2]
    folders = ("algorithms", "backends/cpu", "exact", "metrics")
    files = sorted(path for folder in folders for path in (package / folder).glob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:12]


DIGEST = _digest()


OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}

# For what makes no arrays, and calls nothing that does: they need not be counted, which would be a
# quarter of the code.
LEAN: dict[str, Any] = {"_nrt": False}

# The same, for overloads.
OVERLOAD: Any = {"nogil": True, "error_model": "numpy", **LEAN}


def kernel(function: Callable | None = None, **options: Any) -> Any:
    """Compile a function that releases the interpreter lock, and cache the result on disk.

    There is no fastmath unless asked for: the canonical distance forbids contraction.  The digest
    becomes part of the cache file's name.  Where no folder can be made, nothing is cached.
    """
    if function is None:
        return lambda function: kernel(function, **options)
    function.__qualname__ += f"-{DIGEST}"
    options = {**OPTIONS, **options}
    compiled = njit(**options)(function)
    # Where there is no locator, neither the package nor a home is writeable; or the source is gone.
    with suppress(RuntimeError, OSError):
        compiled._cache = Cache(function)
        compiled._cache.counts = options.get("_nrt", True)
    # Compiling makes many objects and hardly any garbage.
    compiled.compile = uncollected(compiled.compile)
    return compiled


def subroutine(function: Callable | None = None, **options: Any) -> Any:
    """Compile a function for kernels that call it: Python cannot, and it is cached in them.

    What a kernel calls at one place is best compiled there and never by itself, which takes longer:
    ``inline="always"``.
    """
    if function is None:
        return lambda function: subroutine(function, **options)
    options = {**OPTIONS, "no_cpython_wrapper": True, **options}
    return njit(**options)(function)


@intrinsic(prefer_literal=True)
def local(typingctx, kind, size):
    """Return an array of a number of elements that is known when it is compiled: on the stack.

    It has what was there before, starts at a multiple of 64 bytes, and is gone when the kernel
    returns.
    """
    array = types.Array(kind.instance_type, 1, "C")

    def codegen(context, builder, sig, args):
        element = context.get_data_type(array.dtype)
        room = cgutils.alloca_once(builder, ir.ArrayType(element, size.literal_value))
        room.align = 64
        data = builder.bitcast(room, element.as_pointer())
        return _array_at(context, builder, array, data, [ir.IntType(64)(size.literal_value)])

    return array(kind, size), codegen


def _array_at(context, builder, array, data, shape):
    """Emit an array of a type, in C order and of that shape, of memory that something else owns."""
    # What only compiling needs takes long to be imported.
    from numba.np.arrayobj import populate_array

    itemsize = ir.IntType(64)(context.get_abi_sizeof(context.get_data_type(array.dtype)))
    strides = [itemsize]
    for length in shape[:0:-1]:
        strides.insert(0, builder.mul(strides[0], length))
    out = context.make_array(array)(context, builder)
    populate_array(out, data, shape, strides, itemsize, meminfo=None)
    return out._getvalue()


@intrinsic
def hold(typingctx, array):
    """Keep the memory of an array that a kernel made until here.

    It is given back after the array's last use, whoever still has its address.
    """

    def codegen(context, builder, sig, args):
        return context.get_dummy_value()

    return types.none(array), codegen


@intrinsic
def shaped(typingctx, flat, shape):
    """Return the beginning of a contiguous array in another shape, a tuple.

    It is not counted, so the array must outlive it.
    """
    array = types.Array(flat.dtype, len(shape), "C")

    def codegen(context, builder, sig, args):
        data = context.make_array(sig.args[0])(context, builder, args[0]).data
        lengths = [builder.extract_value(args[1], axis) for axis in range(len(shape))]
        return _array_at(context, builder, array, data, lengths)

    return array(flat, types.UniTuple(types.int64, len(shape))), codegen


@intrinsic
def part(typingctx, array, start, stop=None):
    """Return ``array[start:stop]`` where ``0 <= start <= stop``: a seventh of a slice's code.

    Of an array in C order, or of one axis, which must outlive it: it is not counted.
    """
    if array.ndim > 1 and array.layout != "C":
        raise TypingError("part is of arrays in C order.")
    open_end = stop is None
    signature = array(array, types.int64, types.none if open_end else types.int64)

    def codegen(context, builder, sig, args):
        whole, start, stop = args
        shape, strides = (builder.extract_value(whole, i) for i in (5, 6))
        length = builder.extract_value(shape, 0)

        def within(place):
            return builder.select(builder.icmp_signed("<", place, length), place, length)

        start, stop = within(start), length if open_end else within(stop)
        data = builder.extract_value(whole, 4)
        place = builder.ptrtoint(data, length.type)
        place = builder.add(place, builder.mul(start, builder.extract_value(strides, 0)))
        count = length = builder.sub(stop, start)
        for axis in range(1, array.ndim):
            count = builder.mul(count, builder.extract_value(shape, axis))
        shape = builder.insert_value(shape, length, 0)
        nobody = [whole.type.elements[i](None) for i in (0, 1)]
        fields = *nobody, count, None, builder.inttoptr(place, data.type), shape
        for i, value in enumerate(fields):
            whole = builder.insert_value(whole, value, i) if value else whole
        return whole

    return signature, codegen


def _chosen(a, b, sign: str):
    """Return the code of ``b if b SIGN a else a`` for two integers, or two numbers."""
    whole = isinstance(a, types.Integer) and isinstance(b, types.Integer)
    kind: Any = types.int64 if whole else types.float64

    def codegen(context, builder, sig, args):
        a, b = args
        compare = builder.icmp_signed if whole else builder.fcmp_ordered
        return builder.select(compare(sign, b, a), b, a)

    return kind(kind, kind), codegen


# Python's own are functions to Numba, compiled for each pair of types and once more in each kernel.
@intrinsic
def minimum(typingctx, a, b):
    """Return min(a, b)."""
    return _chosen(a, b, "<")


@intrinsic
def maximum(typingctx, a, b):
    """Return max(a, b)."""
    return _chosen(a, b, ">")


# np.empty itself is compiled anew for each kernel that calls it.
@subroutine
def floats(size):
    """Return an empty float64 array."""
    return np.empty(size)


@subroutine
def integers(size):
    """Return an empty int64 array."""
    return np.empty(size, np.int64)
