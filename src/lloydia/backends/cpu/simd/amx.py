"""Matrix units: Intel's AMX, tiles of bfloat16.

A tile instruction multiplies 16 rows, 16 centres and 32 columns.  It is some twenty times faster
than the vector units, so that three products instead of one in float32 still take less time.
Layouts are those of :mod:`pairs`.
"""

from __future__ import annotations

import ctypes
import sys

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from lloydia.backends.cpu.runtime.compiled import subroutine
from lloydia.backends.cpu.simd.microkernel_rows_in_lanes import ADDRESS
from lloydia.backends.cpu.simd.pairs import ABREAST, KIB, TILE, compiled_for

__all__ = ["AVAILABLE", "begin", "depth_of", "end", "multiply"]

BYTE = ir.IntType(8)
POINTER = BYTE.as_pointer()


def _permitted() -> bool:
    """Request the tile registers from Linux; return whether this process may use them."""
    arch_prctl, request, tile_data = 158, 0x1023, 18
    units = compiled_for("amx-bf16") and compiled_for("avx512f")
    if not (units and sys.platform == "linux"):
        return False
    return ctypes.CDLL(None).syscall(arch_prctl, request, tile_data) == 0


AVAILABLE = _permitted()


def depth_of(n_columns: int) -> int:
    """Return the largest number of additions that a product of this many pairs goes through.

    An instruction adds 16 products to 0 one after the other, twice, then both sums to each other
    and to the total (Intel, Instruction Set Extensions Programming Reference, TDPBF16PS).
    """
    return TILE + 1 + -(-n_columns // TILE)


def _call(builder, name, *args):
    kind = ir.FunctionType(ir.VoidType(), [arg.type for arg in args])
    builder.call(cgutils.get_or_insert_function(builder.module, kind, f"llvm.x86.{name}"), args)


def _tile(number):
    return ir.Constant(BYTE, number)


def _at(builder, address, offset=0):
    return builder.inttoptr(builder.add(address, ir.Constant(ADDRESS, offset)), POINTER)


_ROW = ir.Constant(ADDRESS, 64)


@intrinsic
def configure(typingctx, shape):
    """Set up all tiles of this thread; `shape` is the address of :data:`SHAPE`."""

    def codegen(context, builder, sig, args):
        _call(builder, "ldtilecfg", _at(builder, args[0]))
        return context.get_dummy_value()

    return types.void(types.intp), codegen


@intrinsic
def release(typingctx):
    """Release the tiles."""

    def codegen(context, builder, sig, args):
        _call(builder, "tilerelease")
        return context.get_dummy_value()

    return types.void(), codegen


@intrinsic
def multiply(typingctx, points, n_columns, panel, initial_scores, scores):
    """Write the scores of ABREAST vectors of points and tiles of centres, a tile each.

    All are addresses or counts (intp).  Columns are pairs; padding after the last one fills a tile.
    """

    def codegen(context, builder, sig, args):
        points, n_columns, panel, initial_scores, scores = args
        n_steps = builder.udiv(
            builder.add(n_columns, ir.Constant(ADDRESS, TILE - 1)), ir.Constant(ADDRESS, TILE)
        )
        abreast = range(ABREAST)
        totals = [(c, v) for c in abreast for v in abreast]
        for total, (c, _) in enumerate(totals):
            _call(builder, "tileloadd64", _tile(total), _at(builder, initial_scores, KIB * c), _ROW)
        with cgutils.for_range(builder, n_steps) as loop:
            step = builder.mul(loop.index, ir.Constant(ADDRESS, ABREAST * KIB))

            def operand(first, start, i):
                place = _at(builder, builder.add(start, step), KIB * i)
                _call(builder, "tileloadd64", _tile(first + i), place, _ROW)

            # Each operand is loaded just before the first product that needs it.
            operand(4, panel, 0)
            for v in abreast:
                operand(6, points, v)
                _call(builder, "tdpbf16ps", _tile(v), _tile(4), _tile(6 + v))
            operand(4, panel, 1)
            for v in abreast:
                _call(builder, "tdpbf16ps", _tile(2 + v), _tile(5), _tile(6 + v))
        for total in range(len(totals)):
            place = _at(builder, scores, KIB * total)
            _call(builder, "tilestored64", _tile(total), place, _ROW)
        return context.get_dummy_value()

    return types.void(*[types.intp] * 5), codegen


def _shape() -> np.ndarray:
    """Return the 64 bytes that describe tiles of 16 rows of 64 bytes."""
    shape = np.zeros(64, np.uint8)
    shape[0] = 1
    shape[16:32] = np.full(8, 64, np.uint16).view(np.uint8)
    shape[48:56] = TILE
    return shape


SHAPE = _shape()


@subroutine
def begin():
    """Make this thread ready for products."""
    configure(SHAPE.ctypes.data)


@subroutine
def end():
    """Release the tiles."""
    release()
