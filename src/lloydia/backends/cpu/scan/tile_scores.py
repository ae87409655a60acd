"""Scores of pairs of vectors of points, a panel of centres at a time, on the units there are."""

from __future__ import annotations

from lloydia.backends.cpu.runtime.compiled import kernel, subroutine
from lloydia.backends.cpu.simd import amx, dot_pairs
from lloydia.backends.cpu.simd.pairs import (
    ABREAST,
    KIB,
    TILE,
    fold_tiles,
    split_points,
)
from lloydia.backends.cpu.simd.points import BYTES, VECTORS

__all__ = [
    "AVAILABLE",
    "COARSE",
    "WHOLE",
    "columns_of",
    "depth_of",
    "lead",
    "score_pairs",
    "score_tiles",
]

# Whether there are such units, and whether all three products take less time than one of float32.
AVAILABLE = amx.AVAILABLE or dot_pairs.AVAILABLE
WHOLE = amx.AVAILABLE

# Features from which on the leading parts may do alone: of few, all three take a matrix unit little
# longer.
COARSE = 64 if WHOLE else 24

SCORES = ABREAST * ABREAST * KIB

multiply, depth_of = (
    (amx.multiply, amx.depth_of) if WHOLE else (dot_pairs.multiply, dot_pairs.depth_of)
)


@subroutine
def _nothing_to_do():
    """Do what vector units want before and after."""


begin, end = (amx.begin, amx.end) if WHOLE else (_nothing_to_do, _nothing_to_do)


def lead(n_features: int) -> int:
    """Return the pairs of columns of the leading parts.

    Where they may do alone they end with a pair for their error, and those of tiles with whole
    ones.
    """
    n_pairs = -(-n_features // 2)
    if n_features < COARSE:
        return n_pairs
    return -(-(n_pairs + 1) // TILE) * TILE if WHOLE else n_pairs + 1


def columns_of(n_features: int) -> int:
    """Return the pairs of columns that are multiplied: of all three products, or the leading."""
    return lead(n_features) + (2 * -(-n_features // 2) if WHOLE else 0)


@kernel
def score_pairs(tiles, n_pairs, n_columns, panels, starts, best, second, which):
    """Score pairs of vectors of points by the first columns of the panels; keep the best two.

    The last three receive the best two scores of each point and the tile of centres of the best.
    `tiles`, shape (n_pairs * ABREAST + 8, n_steps * KIB / 4), ends with scratch; a step has TILE
    columns.
    """
    n_steps = -(-n_columns // TILE)
    pitch, panel_pitch = ABREAST * n_steps * KIB, ABREAST * panels.shape[1] * KIB
    scratch = tiles.ctypes.data + n_pairs * pitch
    begin()
    # A product is folded while the next one is computed: what a tile stores is not at hand soon.
    last = len(panels) * n_pairs
    for turn in range(last + 1):
        if turn < last:
            multiply(
                tiles.ctypes.data + turn % n_pairs * pitch,
                n_columns,
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
    end()


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
    n_pairs, n_columns = n_vectors // ABREAST, n_steps * TILE
    score_pairs(tiles, n_pairs, n_columns, panels, starts, best, second, which)


@kernel
def _nothing(y, groups, lead, tiles, panels, starts, best, second, which, rests):
    """Stand in where there are no such units: it is never called, but must compile."""


score_tiles = _score if WHOLE else _nothing
