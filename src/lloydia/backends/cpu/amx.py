r"""The scan on matrix units: Intel's AMX, tiles of bfloat16.

A float32 y is split into two bfloat16 numbers, ``y = h + l`` to within ``2**-16 |y|``, and an inner
product into three: ``y.b ~ l.h' + h.l' + h.h'``, one product of rows of length 3 d, summed in
float32.  A tile instruction takes 16 points, 16 centres and 32 of these columns; it is some twenty
times faster than the vector units, so three products still win.  Layouts, each tile 1 KiB:

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
    LEAST,
    VECTOR,
    VECTORS,
    fold,
    load,
    store,
)

__all__ = ["AVAILABLE", "BITS", "NOTHING", "TILE", "depth_of", "pack", "score_tiles"]

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
    return -(-3 * -(-n_features // 2) // TILE)


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


@intrinsic
def split_points(typingctx, y, n_pairs, out, rests):
    """Write the tiles of one vector of points; all are addresses or counts (intp).

    `y` holds an even number of features, twice `n_pairs`; what `out` holds beyond them stays.
    `rests` receives the squared norms of the following parts.
    """

    def codegen(context, builder, sig, args):
        y, n_pairs, out, rests = args
        total = cgutils.alloca_once_value(builder, ir.Constant(VECTOR, [0.0] * LANES))
        half = ir.Constant(IVECTOR, [0x8000] * LANES)
        high = ir.Constant(IVECTOR, [-0x10000] * LANES)
        shift = ir.Constant(IVECTOR, [16] * LANES)

        def split(value):
            """Return the leading and the following bfloat16, in the upper halves of 32 bits."""
            leading = builder.and_(builder.add(builder.bitcast(value, IVECTOR), half), high)
            rest = builder.fsub(value, builder.bitcast(leading, VECTOR))
            following = builder.and_(builder.add(builder.bitcast(rest, IVECTOR), half), high)
            return leading, following

        with cgutils.for_range(builder, n_pairs) as loop:
            pair = builder.add(y, builder.mul(loop.index, ir.Constant(ADDRESS, 8 * GROUP)))
            even = split(load(builder, pair, 0, VECTOR, BYTES))
            odd = split(load(builder, pair, 4 * GROUP, VECTOR, BYTES))
            for _, following in (even, odd):
                rest = builder.bitcast(following, VECTOR)
                square = builder.fmul(rest, rest)
                builder.store(builder.fadd(builder.load(total), square), total)
            leading, following = (builder.or_(builder.lshr(a, shift), b) for a, b in zip(even, odd))
            for part, value in enumerate((following, leading, leading)):
                row = builder.add(loop.index, builder.mul(n_pairs, ir.Constant(ADDRESS, part)))
                step = builder.lshr(row, ir.Constant(ADDRESS, 4))
                line = builder.and_(row, ir.Constant(ADDRESS, TILE - 1))
                place = builder.add(
                    builder.mul(step, ir.Constant(ADDRESS, ABREAST * KIB)),
                    builder.mul(line, _ROW),
                )
                store(builder, value, builder.add(out, place), 0)
        store(builder, builder.load(total), rests, 0)
        return context.get_dummy_value()

    return types.void(*[types.intp] * 4), codegen


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
            for first, operand in ((4, panel), (6, points)):
                for i in abreast:
                    place = _at(builder, builder.add(operand, step), KIB * i)
                    _call(builder, "tileloadd64", _tile(first + i), place, _ROW)
            for total, (c, v) in enumerate(totals):
                _call(builder, "tdpbf16ps", _tile(total), _tile(4 + c), _tile(6 + v))
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
                state = fold(builder, rows, name, fresh, *state)
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

# No panels: the scan does without tiles.
NOTHING = (
    np.empty((0, 1, ABREAST, TILE, TILE), np.int32),
    np.empty((0, ABREAST, TILE, LANES), np.float32),
    0.0,
)


def pack(panels, starts, each_block):
    """Return the tiles of centres, those that their scores start from, and a norm.

    It is the largest of what the leading parts of a centre leave.
    `panels` and `starts` are those of :class:`lloydia.backends.cpu.centers.Packed`.
    """
    d = panels.shape[1]
    width = ABREAST * TILE
    n_panels = -(-len(starts) // width)
    tiles = aligned((n_panels, steps(d), ABREAST, TILE, TILE), np.int32)
    tile_starts = aligned((n_panels, ABREAST, TILE, LANES), np.float32)
    rests = np.zeros(n_panels)
    each_block(
        lambda t, a, b: _fill(panels, starts, a, b, tiles, tile_starts, rests),
        4.0 * width * d,
        n_panels,
    )
    return tiles, tile_starts, float(np.sqrt(rests.max())) * (1.0 + d * 2.0**-22)


def aligned(shape, dtype):
    """Return an array of zeros that starts at a multiple of 64 bytes."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.zeros(size + 64, dtype=np.uint8)
    return raw[-raw.ctypes.data % 64 :][:size].view(dtype).reshape(shape)


@kernel
def _fill(panels, starts, start, stop, tiles, tile_starts, rests):
    """Write the tiles of panels ``start`` to ``stop``; `tiles` is zero."""
    d, width = panels.shape[1:]
    n_pairs = (d + 1) // 2
    for number in range(start, stop):
        for lane in range(ABREAST * TILE):
            j = number * ABREAST * TILE + lane
            there = j < len(starts)
            c, row = lane // TILE, lane % TILE
            for p in range(LANES):
                tile_starts[number, c, row, p] = starts[j] if there else np.float32(LEAST)
            square = 0.0
            for i in range(n_pairs if there else 0):
                leading = following = np.int64(0)
                for half in range(min(2, d - 2 * i)):
                    value = panels[j // width, 2 * i + half, j % width]
                    high = upper(value)
                    rest = value - np.int32(high << 16).view(np.float32)
                    low = upper(rest)
                    square += np.float64(rest) * np.float64(rest)
                    leading |= high << (16 * half)
                    following |= low << (16 * half)
                for part in range(3):
                    column = part * n_pairs + i
                    pair = following if part == 1 else leading
                    tiles[number, column // TILE, c, row, column % TILE] = np.int32(pair)
            rests[number] = max(rests[number], square)


@kernel
def upper(value):
    """Return the upper half of the bits of a float32, rounded: a bfloat16."""
    return ((np.int64(np.float32(value).view(np.int32)) + 0x8000) >> 16) & 0xFFFF


@kernel
def _score(y, groups, tiles, panels, starts, best, second, which, rests):
    """Scan framed rows; the last four receive what is found of each.

    That is its best two scores, the tile of centres of the best, and the squared norm of its
    following parts.
    `y` is (groups, an even number of features, GROUP) and `groups` even; `tiles`, shape
    (n + 8, n_steps * KIB / 4) for n vectors of points, is scratch whose columns beyond the
    features are 0.
    """
    n_steps = panels.shape[1]
    n_vectors = groups * VECTORS
    pitch = ABREAST * n_steps * KIB
    for v in range(n_vectors):
        points = y.ctypes.data + v // VECTORS * y.strides[0] + v % VECTORS * BYTES
        out = tiles.ctypes.data + v // ABREAST * pitch + v % ABREAST * KIB
        split_points(points, y.shape[1] // 2, out, rests.ctypes.data + v * BYTES)
    scratch = tiles.ctypes.data + n_vectors // ABREAST * pitch
    configure(SHAPE.ctypes.data)
    n_pairs = n_vectors // ABREAST
    # A product is folded while the next one is computed: what a tile stores is not at hand soon.
    last = len(panels) * n_pairs
    for turn in range(last + 1):
        if turn < last:
            multiply(
                tiles.ctypes.data + turn % n_pairs * pitch,
                n_steps,
                panels.ctypes.data + turn // n_pairs * pitch,
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
def _nothing(y, groups, tiles, panels, starts, best, second, which, rests):
    """Stand in where there are no such units: it is never called, but must compile."""


score_tiles = _score if AVAILABLE else _nothing
