r"""The scan on matrix units: Intel's AMX, tiles of bfloat16.

A float32 y is split into two bfloat16 numbers, ``y = h + l`` to within ``2**-16 |y|``, and an inner
product into three: ``y.b ~ h.h' + l.h' + h.l'``, one product of rows of length 3 d, summed in
float32.  A tile instruction takes 16 points, 16 centres and 32 of these columns; it is some twenty
times faster than the vector units, so three products still win.  The leading parts alone are the
first :func:`lead` columns, which :mod:`coarse_scan` stops at.  Layouts, each tile 1 KiB:

* ABREAST vectors of points: ``[step, vector, pair of columns, point]``, a pair in 32 bits;
* a panel is ABREAST * TILE centres: ``[step, tile, centre, column]``; its scores start from tiles
  whose rows are minus half a squared norm each.

:mod:`points` defines the groups, and :func:`lloydia.backends.cpu.points.fold` the other end.
"""

from __future__ import annotations

import ctypes
import sys

import numpy as np
from llvmlite import ir
from llvmlite.binding import get_host_cpu_features
from numba.core import cgutils, types
from numba.extending import intrinsic

from lloydia.backends.cpu.compiled import kernel
from lloydia.backends.cpu.points import (
    ADDRESS,
    BYTES,
    GROUP,
    INT,
    IVECTOR,
    LANES,
    VECTOR,
    VECTORS,
    fold,
    load,
    store,
)

__all__ = [
    "ABREAST", "AVAILABLE", "BITS", "COARSE", "KIB", "TILE", "depth_of", "lead", "lead_points",
    "score_pairs", "score_tiles", "steps",
]  # fmt: skip

# Features from which on the leading parts may do alone.
COARSE = 64

# Rows of a tile; tiles of centres in a panel.
TILE = 16
ABREAST = 2
BITS = 4
KIB = 1024
SCORES = ABREAST * ABREAST * KIB

BYTE = ir.IntType(8)
POINTER = BYTE.as_pointer()


def _permitted() -> bool:
    """Ask Linux for the tile registers' state, which is off until a process asks."""
    arch_prctl, request, tile_data = 158, 0x1023, 18
    features = get_host_cpu_features()
    if not (features.get("amx-bf16") and features.get("avx512f") and sys.platform == "linux"):
        return False
    return ctypes.CDLL(None).syscall(arch_prctl, request, tile_data) == 0


AVAILABLE = _permitted()


def steps(n_features: int) -> int:
    """Return the tile instructions that one product of d features takes."""
    return -(-(lead(n_features) + 2 * -(-n_features // 2)) // TILE)


def lead(n_features: int) -> int:
    """Return the pairs of columns of the leading parts.

    Where they may do alone they end with a pair for their error, and whole tiles.
    """
    n_pairs = -(-n_features // 2)
    return n_pairs if n_features < COARSE else -(-(n_pairs + 1) // TILE) * TILE


def depth_of(n_features: int) -> int:
    """Return how many additions a product goes through at most.

    An instruction adds 16 products to 0 one after the other, twice, then both sums to each other
    and to the total (Intel, Instruction Set Extensions Programming Reference, TDPBF16PS).
    """
    return TILE + 1 + steps(n_features)


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
    """Give the tiles back."""

    def codegen(context, builder, sig, args):
        _call(builder, "tilerelease")
        return context.get_dummy_value()

    return types.void(), codegen


def _split(whole: bool):
    """Return the code that writes both parts of a vector of points, or the leading ones alone."""
    half = ir.Constant(IVECTOR, [0x8000] * LANES)
    high = ir.Constant(IVECTOR, [-0x10000] * LANES)
    shift = ir.Constant(IVECTOR, [16] * LANES)

    def rounded(builder, value):
        """Return the nearest bfloat16, in the upper halves of 32 bits."""
        return builder.and_(builder.add(builder.bitcast(value, IVECTOR), half), high)

    def codegen(context, builder, sig, args):
        y, n_pairs, lead, out, rests = args
        total = cgutils.alloca_once_value(builder, ir.Constant(VECTOR, [0.0] * LANES))
        with cgutils.for_range(builder, n_pairs) as loop:
            pair = builder.add(y, builder.mul(loop.index, ir.Constant(ADDRESS, 8 * GROUP)))
            halves = []
            for offset in (0, 4 * GROUP):
                value = load(builder, pair, offset, VECTOR, BYTES)
                leading = rounded(builder, value)
                rest = builder.fsub(value, builder.bitcast(leading, VECTOR))
                following = rounded(builder, rest)
                if whole:
                    rest = builder.bitcast(following, VECTOR)
                square = builder.fmul(rest, rest)
                builder.store(builder.fadd(builder.load(total), square), total)
                halves.append((leading, following))
            leading, following = (builder.or_(builder.lshr(a, shift), b) for a, b in zip(*halves))
            after = builder.add(lead, loop.index)
            parts = [(leading, loop.index)]
            if whole:
                parts += [(following, after), (leading, builder.add(after, n_pairs))]
            for value, row in parts:
                step = builder.lshr(row, ir.Constant(ADDRESS, 4))
                line = builder.and_(row, ir.Constant(ADDRESS, TILE - 1))
                place = builder.add(
                    builder.mul(step, ir.Constant(ADDRESS, ABREAST * KIB)),
                    builder.mul(line, _ROW),
                )
                store(builder, value, builder.add(out, place), 0)
        store(builder, builder.load(total), rests, 0)
        return context.get_dummy_value()

    return types.void(*[types.intp] * 5), codegen


# An intrinsic is found by its name when a kernel is read from the disk cache, so each is one.
@intrinsic
def split_points(typingctx, y, n_pairs, lead, out, rests):
    """Write the tiles of one vector of points; all are addresses or counts (intp).

    `y` holds an even number of features, twice `n_pairs`; the following parts begin at column
    `lead`, and what `out` holds elsewhere stays.  `rests` receives the squared norms of the
    following parts.
    """
    return _split(whole=True)


@intrinsic
def lead_points(typingctx, y, n_pairs, lead, out, rests):
    """Write the leading parts alone; `rests` receives the squared norms of what they leave."""
    return _split(whole=False)


@intrinsic
def multiply(typingctx, points, n_steps, panel, starts, scores):
    """Write the scores of ABREAST vectors of points and tiles of centres, a tile each.

    All are addresses or counts (intp).
    """

    def codegen(context, builder, sig, args):
        points, n_steps, panel, starts, scores = args
        abreast = range(ABREAST)
        totals = [(c, v) for c in abreast for v in abreast]
        for total, (c, _) in enumerate(totals):
            _call(builder, "tileloadd64", _tile(total), _at(builder, starts, KIB * c), _ROW)
        with cgutils.for_range(builder, n_steps) as loop:
            step = builder.mul(loop.index, ir.Constant(ADDRESS, ABREAST * KIB))

            def operand(first, start, i):
                place = _at(builder, builder.add(start, step), KIB * i)
                _call(builder, "tileloadd64", _tile(first + i), place, _ROW)

            # Each operand just before the first product that needs it.
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


@intrinsic
def fold_tiles(typingctx, scores, best, second, which, number):
    """Fold what :func:`multiply` wrote into the points' best two scores.

    All are addresses (intp) but the number of the panel; 0 starts anew.
    """

    def codegen(context, builder, sig, args):
        scores, best, second, which, number = args
        anew = builder.icmp_signed("==", number, ir.Constant(ADDRESS, 0))
        first = builder.trunc(builder.mul(number, ir.Constant(ADDRESS, ABREAST)), INT)
        for v in range(ABREAST):
            at = BYTES * v
            state = (
                load(builder, best, at, VECTOR, BYTES),
                load(builder, second, at, VECTOR, BYTES),
                load(builder, which, at, IVECTOR, BYTES),
            )
            for c in range(ABREAST):
                place = KIB * (ABREAST * c + v)
                rows = [load(builder, scores, place + 64 * r, VECTOR, BYTES) for r in range(TILE)]
                name = builder.add(first, ir.Constant(INT, c))
                fresh = anew if c == 0 else ir.Constant(ir.IntType(1), 0)
                state = fold(builder, rows, len(rows), name, fresh, *state)
            for value, address in zip(state, (best, second, which)):
                store(builder, value, address, at)
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


@kernel
def score_pairs(tiles, n_pairs, n_steps, panels, starts, best, second, which):
    """Score pairs of vectors of points by the first `n_steps` of the panels; keep the best two.

    The last three receive the best two scores of each point and the tile of centres of the best.
    `tiles`, shape (n_pairs * ABREAST + 8, n_steps * KIB / 4), ends with scratch.
    """
    pitch, panel_pitch = ABREAST * n_steps * KIB, ABREAST * panels.shape[1] * KIB
    scratch = tiles.ctypes.data + n_pairs * pitch
    configure(SHAPE.ctypes.data)
    # A product is folded while the next one is computed: what a tile stores is not at hand soon.
    last = len(panels) * n_pairs
    for turn in range(last + 1):
        if turn < last:
            multiply(
                tiles.ctypes.data + turn % n_pairs * pitch,
                n_steps,
                panels.ctypes.data + turn // n_pairs * panel_pitch,
                starts.ctypes.data + turn // n_pairs * ABREAST * KIB,
                scratch + turn % 2 * SCORES,
            )
        if turn > 0:
            at = (turn - 1) % n_pairs * ABREAST * BYTES
            fold_tiles(
                scratch + (turn - 1) % 2 * SCORES,
                best.ctypes.data + at,
                second.ctypes.data + at,
                which.ctypes.data + at,
                (turn - 1) // n_pairs,
            )
    release()


@kernel
def _score(y, groups, lead, tiles, panels, starts, best, second, which, rests):
    """Scan framed rows; the last four receive what is found of each.

    That is what :func:`score_pairs` writes, and the squared norm of the following parts.
    `y` is (groups, an even number of features, GROUP) and `groups` even; `tiles`, shape
    (n + 8, n_steps * KIB / 4) for n vectors of points, is scratch whose columns that are no
    feature's are 0.
    """
    n_steps = panels.shape[1]
    n_vectors = groups * VECTORS
    for v in range(n_vectors):
        points = y.ctypes.data + v // VECTORS * y.strides[0] + v % VECTORS * BYTES
        out = tiles.ctypes.data + (v // ABREAST * n_steps * ABREAST + v % ABREAST) * KIB
        split_points(points, y.shape[1] // 2, lead, out, rests.ctypes.data + v * BYTES)
    score_pairs(tiles, n_vectors // ABREAST, n_steps, panels, starts, best, second, which)


@kernel
def _nothing(y, groups, lead, tiles, panels, starts, best, second, which, rests):
    """Stand in where there are no such units: it is never called, but must compile."""


score_tiles = _score if AVAILABLE else _nothing
