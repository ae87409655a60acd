r"""Centres as pairs of bfloat16 (:mod:`simd.pairs`): panels of tiles.

A centre is split as the rows are, ``b = h' + l'`` (head and tail).  Its columns are the pairs of
h', then, on matrix units, those of h' again, which are multiplied by the tails of the rows, and of
l'.  Where the heads are a prefilter, the pair after the first h' is ``(N, P)``: bounds on
``|h'|`` and on ``|b - h'|``, rounded up to bfloat16.  Rows of which all three products are computed
have zeros there.
"""

from __future__ import annotations

import numpy as np

from lloydia.backends.cpu.runtime.compiled import kernel, subroutine
from lloydia.backends.cpu.scan.tile_scores import AMX, PREFILTER_FEATURES, columns_of, head_pairs_of
from lloydia.backends.cpu.simd.microkernel_rows_in_lanes import LANES, LOWEST_SCORE
from lloydia.backends.cpu.simd.pairs import ABREAST, TILE

__all__ = ["NOTHING", "not_less", "pack"]

# No panels, for scans without tiles.
NOTHING = (
    np.empty((0, 1, ABREAST, TILE, TILE), np.int32),
    np.empty((0, ABREAST, TILE, LANES), np.float32),
    0.0,
)


def pack(panels, half_squares, each_block):
    """Return the tiles of centres, the tiles of their initial scores, and a norm.

    The norm is the largest ``|b - h'|``.  `panels` and `half_squares` are those of
    :class:`lloydia.backends.cpu.scan.centers.Packed`.
    """
    d = panels.shape[1]
    width = ABREAST * TILE
    n_panels = -(-len(half_squares) // width)
    n_steps = -(-columns_of(d) // TILE)
    tiles = aligned((n_panels, n_steps, ABREAST, TILE, TILE), np.int32)
    tile_half_squares = aligned((n_panels, ABREAST, TILE, LANES), np.float32)
    residuals = np.zeros(n_panels)
    each_block(
        lambda t, a, b: _fill(
            panels,
            half_squares,
            a,
            b,
            head_pairs_of(d),
            d >= PREFILTER_FEATURES,
            3 if AMX else 1,
            tiles,
            tile_half_squares,
            residuals,
        ),
        4.0 * width * d,
        n_panels,
    )
    return tiles, tile_half_squares, float(np.sqrt(residuals.max())) * (1.0 + d * 2.0**-22)


def aligned(shape, dtype):
    """Return an array of zeros that starts at a multiple of 64 bytes."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.zeros(size + 64, dtype=np.uint8)
    return raw[-raw.ctypes.data % 64 :][:size].view(dtype).reshape(shape)


@kernel
def _fill(
    panels, half_squares, start, stop, after, bounded, parts, tiles, tile_half_squares, residuals
):
    """Write the tiles of panels ``start`` to ``stop``; `tiles` is zero.

    `after` is the number of columns before the second h', `bounded` whether to write (N, P), and
    `parts` how many of h', h' and l' to write.
    """
    d, width = panels.shape[1:]
    n_pairs = (d + 1) // 2
    for number in range(start, stop):
        for lane in range(ABREAST * TILE):
            j = number * ABREAST * TILE + lane
            there = j < len(half_squares)
            c, row = lane // TILE, lane % TILE
            for p in range(LANES):
                tile_half_squares[number, c, row, p] = (
                    half_squares[j] if there else np.float32(LOWEST_SCORE)
                )
            residual_square = head_square = 0.0
            for i in range(n_pairs if there else 0):
                head = tail = np.int64(0)
                for half in range(min(2, d - 2 * i)):
                    value = panels[j // width, 2 * i + half, j % width]
                    high = upper(value)
                    residual = value - np.int32(high << 16).view(np.float32)
                    low = upper(residual)
                    residual_square += np.float64(residual) * np.float64(residual)
                    head_square += np.float64(value - residual) * np.float64(value - residual)
                    head |= high << (16 * half)
                    tail |= low << (16 * half)
                for part in range(parts):
                    column = (after + (part - 1) * n_pairs if part else 0) + i
                    pair = tail if part == 2 else head
                    tiles[number, column // TILE, c, row, column % TILE] = np.int32(pair)
            if bounded and there:
                pair = (
                    not_less(np.sqrt(head_square), d) | not_less(np.sqrt(residual_square), d) << 16
                )
                tiles[number, n_pairs // TILE, c, row, n_pairs % TILE] = np.int32(pair)
            residuals[number] = max(residuals[number], residual_square)


@subroutine
def upper(value):
    """Return the upper half of the bits of a float32, rounded: a bfloat16."""
    return ((np.int64(np.float32(value).view(np.int32)) + 0x8000) >> 16) & 0xFFFF


@subroutine
def not_less(norm, d):
    """Return the bits of a bfloat16 that is at least a norm of d features.

    It covers the roundings of the computed norm, and squares that underflow.
    """
    value = np.float32(norm * (1.0 + (d + 8) * 2.0**-22) + 2.0**-60)
    return (np.int64(value.view(np.int32)) + 0xFFFF) >> 16 & 0xFFFF
