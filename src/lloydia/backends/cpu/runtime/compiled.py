"""Compiles every kernel, and stores it on disk for the next process."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit
from numba.core import types
from numba.core.errors import TypingError
from numba.extending import intrinsic

from lloydia.backends.cpu.runtime.kernel_cache import Cache
from lloydia.imports import uncollected, uninterrupted

__all__ = [
    "LEAN",
    "OVERLOAD",
    "floats",
    "integers",
    "is_compiled",
    "keep_alive",
    "kernel",
    "local",
    "maximum",
    "minimum",
    "part",
    "shaped",
    "subroutine",
]


def sources() -> list[Path]:
    """Return the source files of functions that kernels of other files call."""
    package = Path(__file__).resolve().parents[3]
    folders = ("algorithms", "backends/cpu", "exact", "metrics")
    return sorted(path for folder in folders for path in (package / folder).rglob("*.py"))


def _digest() -> str:
    """Return a digest of :func:`sources`.

    Numba only notices a change in a kernel's own file, not in those of the functions it calls.
    """
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources())).hexdigest()[:12]


DIGEST = _digest()


OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}

# For kernels that make no arrays, and call nothing that does: without reference counts, which would
# be a quarter of the code.
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
    # An error means that no folder can be written, or that there is no source file.
    with suppress(RuntimeError, OSError):
        compiled._cache = Cache(function)
        compiled._cache.counts = options.get("_nrt", True)
    # Compiling makes many objects and hardly any garbage.
    compiled.compile = uninterrupted(uncollected(compiled.compile))
    return compiled


def is_compiled(kernel: Any) -> bool:
    """Return whether a kernel is compiled for some types, in this process or on disk."""
    return bool(kernel.signatures) or (isinstance(kernel._cache, Cache) and kernel._cache.holds_any)


def subroutine(function: Callable | None = None, **options: Any) -> Any:
    """Compile a function that only kernels call; it is cached as part of them.

    With ``inline="always"`` it is compiled within its callers only, which is faster if a kernel
    calls it at one place.
    """
    if function is None:
        return lambda function: subroutine(function, **options)
    options = {**OPTIONS, "no_cpython_wrapper": True, **options}
    return njit(**options)(function)


@intrinsic(prefer_literal=True)
def local(typingctx, kind, size):
    """Return an array on the stack; its size is a constant of the compiled code.

    It is not initialised, starts at a multiple of 64 bytes, and ends when the kernel returns.
    """
    array = types.Array(kind.instance_type, 1, "C")

    def codegen(context, builder, sig, args):
        element = context.get_data_type(array.dtype)
        # Numba's own allocation would be filled with zeros in every call.
        with builder.goto_entry_block():
            memory = builder.alloca(ir.ArrayType(element, size.literal_value))
        memory.align = 64
        data = builder.bitcast(memory, element.as_pointer())
        return _array_at(context, builder, array, data, [ir.IntType(64)(size.literal_value)])

    return array(kind, size), codegen


def _array_at(context, builder, array, data, shape):
    """Emit a C-ordered array of this type and shape over memory that it does not own."""
    # Imported late: it takes long, and only compilation needs it.
    from numba.np.arrayobj import populate_array

    itemsize = ir.IntType(64)(context.get_abi_sizeof(context.get_data_type(array.dtype)))
    strides = [itemsize]
    for length in shape[:0:-1]:
        strides.insert(0, builder.mul(strides[0], length))
    out = context.make_array(array)(context, builder)
    populate_array(out, data, shape, strides, itemsize, meminfo=None)
    return out._getvalue()


@intrinsic
def keep_alive(typingctx, array):
    """Keep the memory of an array that a kernel allocated until this call.

    Numba frees it after the last use of the array, even if its address is still used.
    """

    def codegen(context, builder, sig, args):
        return context.get_dummy_value()

    return types.none(array), codegen


@intrinsic
def shaped(typingctx, flat, shape):
    """Return the first elements of a contiguous array in another shape, a tuple.

    The result holds no reference: the array must outlive it.
    """
    array = types.Array(flat.dtype, len(shape), "C")

    def codegen(context, builder, sig, args):
        data = context.make_array(sig.args[0])(context, builder, args[0]).data
        lengths = [builder.extract_value(args[1], axis) for axis in range(len(shape))]
        return _array_at(context, builder, array, data, lengths)

    return array(flat, types.UniTuple(types.int64, len(shape))), codegen


@intrinsic
def part(typingctx, array, start, stop=None):
    """Return ``array[start:stop]`` for ``0 <= start <= stop``, by a seventh of the code of a slice.

    The array is in C order or has one axis.  The result holds no reference: the array must outlive
    it.
    """
    if array.ndim > 1 and array.layout != "C":
        raise TypingError("part takes arrays in C order.")
    open_end = stop is None
    signature = array(array, types.int64, types.none if open_end else types.int64)

    def codegen(context, builder, sig, args):
        parent, start, stop = args
        shape, strides = (builder.extract_value(parent, i) for i in (5, 6))
        length = builder.extract_value(shape, 0)

        def within(place):
            return builder.select(builder.icmp_signed("<", place, length), place, length)

        start, stop = within(start), length if open_end else within(stop)
        data = builder.extract_value(parent, 4)
        place = builder.ptrtoint(data, length.type)
        place = builder.add(place, builder.mul(start, builder.extract_value(strides, 0)))
        count = length = builder.sub(stop, start)
        for axis in range(1, array.ndim):
            count = builder.mul(count, builder.extract_value(shape, axis))
        shape = builder.insert_value(shape, length, 0)
        no_owner = [parent.type.elements[i](None) for i in (0, 1)]
        fields = *no_owner, count, None, builder.inttoptr(place, data.type), shape
        for i, value in enumerate(fields):
            parent = builder.insert_value(parent, value, i) if value else parent
        return parent

    return signature, codegen


def _chosen(a, b, sign: str):
    """Return the code of ``b if b SIGN a else a`` for two integers, or two numbers."""
    integers_only = isinstance(a, types.Integer) and isinstance(b, types.Integer)
    kind: Any = types.int64 if integers_only else types.float64

    def codegen(context, builder, sig, args):
        a, b = args
        compare = builder.icmp_signed if integers_only else builder.fcmp_ordered
        return builder.select(compare(sign, b, a), b, a)

    return kind(kind, kind), codegen


# Numba compiles min and max of Python for each pair of types, and again in each kernel.
@intrinsic
def minimum(typingctx, a, b):
    """Return min(a, b)."""
    return _chosen(a, b, "<")


@intrinsic
def maximum(typingctx, a, b):
    """Return max(a, b)."""
    return _chosen(a, b, ">")


# np.empty is compiled again in each kernel that calls it.
@subroutine
def floats(size):
    """Return an empty float64 array."""
    return np.empty(size)


@subroutine
def integers(size):
    """Return an empty int64 array."""
    return np.empty(size, np.int64)
