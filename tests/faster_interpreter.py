"""Triton's interpreter made faster: the tests of kernels take half as long.

The interpreter works out the same facts again at every operation.  Here they are kept: what is
replaced in ``triton.language`` for the host, the shape of a block, the NumPy dtype of a type.  A
reduction by a function of the kernel combines pairs of whole slices, where the
interpreter combines one element after another.

Results stay the same, except that a reduction has another order: Triton promises none.
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

__all__ = ["make_faster"]


def make_faster(interpreter: Any) -> None:
    """Have the interpreter, a module of Triton, work out each fact once."""
    if interpreter._patch_lang.__module__ == __name__:
        return
    replace_once(interpreter)
    keep_shapes(interpreter.tl.core)
    compare_types_by_name(interpreter.tl.core)
    keep_dtypes(interpreter)
    reduce_by_pairs(interpreter.ReduceOps)


def replace_once(interpreter: Any) -> None:
    """Have functions within a kernel find what was replaced for the kernel.

    As a kernel starts, the interpreter replaces the functions of ``triton.language`` by those for
    the host; at every call of a function within the kernel it would look through all names again.
    """
    replace, tl = interpreter._patch_lang, interpreter.tl
    replaced: set = set()
    languages: dict = {}

    def patch_lang(fn):
        names = fn.__globals__
        if id(names) not in languages:
            modules = {value for value in names.values() if inspect.ismodule(value)}
            languages[id(names)] = {tl, tl.core} & modules, names
        wanted, _ = languages[id(names)]
        if wanted <= replaced:
            return interpreter._LangPatchScope()
        scope = replace(fn)
        if not replaced:
            # That of the kernel, which puts back what it has replaced.
            put_back = scope.restore

            def restore():
                replaced.clear()
                put_back()

            scope.restore = restore
        replaced.update(wanted)
        return scope

    interpreter._patch_lang = patch_lang


def keep_shapes(core: Any) -> None:
    """Have types of blocks, and tensors, of one shape share what depends on the shape alone."""
    start_type, equal_types = core.block_type.__init__, core.block_type.__eq__
    start_tensor = core.tensor.__init__
    of_types: dict = {}
    of_tensors: dict = {}

    def block_type(self, element_ty, shape):
        key = tuple(core._unwrap_if_constexpr(size) for size in shape)
        if key not in of_types:
            start_type(self, element_ty, shape)
            of_types[key] = self.shape, self.numel
        self.element_ty = element_ty
        self.shape, self.numel = of_types[key]
        self.name = f"<{self.shape}, {element_ty}>"

    def block_types_are_equal(self, other):
        if isinstance(other, core.block_type) and self.shape is other.shape:
            return self.element_ty == other.element_ty
        return equal_types(self, other)

    def tensor(self, handle, type):
        key = tuple(type.shape) if type.is_block() else ()
        if key not in of_tensors:
            start_tensor(self, handle, type)
            of_tensors[key] = self.shape, self.numel
        self.handle, self.type, self.dtype = handle, type, type.scalar
        self.shape, self.numel = of_tensors[key]

    core.block_type.__init__, core.block_type.__eq__ = block_type, block_types_are_equal
    core.tensor.__init__ = tensor


def compare_types_by_name(core: Any) -> None:
    """Look for constants within sequences alone, and compare types without a search."""
    unwrap = core._unwrap_if_constexpr
    sequences = (list, tuple, core.tuple)

    def unwrap_if_constexpr(value):
        if isinstance(value, core.constexpr):
            return value.value
        return unwrap(value) if isinstance(value, sequences) else value

    def equal(self, other):
        if isinstance(other, core.constexpr):
            other = other.value
        return isinstance(other, core.dtype) and self.name == other.name

    core._unwrap_if_constexpr, core.dtype.__eq__ = unwrap_if_constexpr, equal


def keep_dtypes(interpreter: Any) -> None:
    """Keep the NumPy dtype of each type of numbers by its name."""
    find, tl = interpreter._get_np_dtype, interpreter.tl
    found: dict = {}

    def get_np_dtype(type):
        element = type.element_ty if isinstance(type, tl.block_type) else type
        if isinstance(element, tl.pointer_type):
            return np.dtype(np.uint64)
        if element.name not in found:
            found[element.name] = find(element)
        return found[element.name]

    interpreter._get_np_dtype = get_np_dtype


def reduce_by_pairs(operation: Any) -> None:
    """Have a reduction along an axis combine neighbours, all of them at once."""
    one_by_one = operation.generic_reduce

    def generic_reduce(self, input):
        axis = self.axis
        if axis is None:
            return one_by_one(self, input)
        types = [part.dtype for part in input]
        arrays = [part.handle.data for part in input]
        # A power of 2, as all sizes of blocks.
        while arrays[0].shape[axis] > 1:
            pairs = [
                self.to_tensor(np.take(array, range(first, array.shape[axis], 2), axis), type)
                for first in (0, 1)
                for array, type in zip(arrays, types)
            ]
            combined = self.combine_fn.fn(*pairs)
            combined = combined if isinstance(combined, tuple) else (combined,)
            arrays = [part.handle.data for part in combined]
        if not self.keep_dims:
            arrays = [array.squeeze(axis) for array in arrays]
        return [self.to_tensor(array, type) for array, type in zip(arrays, types)]

    operation.generic_reduce = generic_reduce
