"""Scores from pairs of bfloat16: AMX matrix units, or AVX-512 vectors that multiply pairs."""

from __future__ import annotations

from lloydia.backends.cpu.runtime.compiled import kernel, subroutine
from lloydia.backends.cpu.simd import amx, dot_pairs
from lloydia.backends.cpu.simd.microkernel_rows_in_lanes import BYTES, VECTORS
from lloydia.backends.cpu.simd.pairs import (
    ABREAST,
    KIB,
    TILE,
    fold_tiles,
    split_points,
)

__all__ = [
    "AMX",
    "AVAILABLE",
    "PREFILTER_FEATURES",
    "columns_of",
    "depth_of",
    "head_pairs_of",
    "score_pairs",
    "score_tiles",
]

# Whether there are such units, and whether they are matrix units, on which all three products of a
# split number take less time than one in float32.
AVAILABLE = amx.AVAILABLE or dot_pairs.AVAILABLE
AMX = amx.AVAILABLE

# Features from which on the heads are a prefilter.  For fewer, all three products take a matrix
# unit little longer.
PREFILTER_FEATURES = 64 if AMX else 24

SCORES = ABREAST * ABREAST * KIB

multiply, depth_of = (
    (amx.multiply, amx.depth_of) if AMX else (dot_pairs.multiply, dot_pairs.depth_of)
)


@subroutine
def _nothing_to_do():
    """Do nothing: vector units need no set-up."""


begin, end = (amx.begin, amx.end) if AMX else (_nothing_to_do, _nothing_to_do)


def head_pairs_of(n_features: int) -> int:
    """Return the pairs of columns of the heads.

    Where the heads are a prefilter, a pair for their error follows; on matrix units the number is
    rounded up to whole tiles.
    """
    n_pairs = -(-n_features // 2)
    if n_features < PREFILTER_FEATURES:
        return n_pairs
    return -(-(n_pairs + 1) // TILE) * TILE if AMX else n_pairs + 1


def columns_of(n_features: int) -> int:
    """Return the pairs of columns that are multiplied: of all three products, or of the heads."""
    return head_pairs_of(n_features) + (2 * -(-n_features // 2) if AMX else 0)


@kernel
def score_pairs(tiles, n_pairs, n_columns, panels, half_squares, best, second, which):
    """Find the best two scores of pairs of vectors of rows, by the first columns of the panels.

    Parameters
    ----------
    tiles : IN, ndarray (n_pairs * ABREAST + 8, n_steps * KIB / 4), float32
        The rows; the last 8 are scratch.  A step has TILE columns.
    panels, half_squares : IN
        Those of :mod:`tile_panels`.
    best, second : OUT, float32, one per row
    which : OUT, int32
        The tile of centres of the best.
    """
    n_steps = -(-n_columns // TILE)
    pitch, panel_pitch = ABREAST * n_steps * KIB, ABREAST * panels.shape[1] * KIB
    scratch = tiles.ctypes.data + n_pairs * pitch
    begin()
    # A product is folded while the next one is computed, since tile stores have a long latency.
    last = len(panels) * n_pairs
    for turn in range(last + 1):
        if turn < last:
            multiply(
                tiles.ctypes.data + turn % n_pairs * pitch,
                n_columns,
                panels.ctypes.data + turn // n_pairs * panel_pitch,
                half_squares.ctypes.data + turn // n_pairs * ABREAST * KIB,
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
def _score(y, groups, n_head_pairs, tiles, panels, half_squares, best, second, which, residuals):
    """Split framed rows into bfloat16, and find their best two scores.

    Parameters
    ----------
    y : IN, ndarray (groups, d or d + 1, GROUP), float32
        An even number of groups, and of features.
    tiles : scratch, ndarray (n + 8, n_steps * KIB / 4), float32, for n vectors of rows
        Columns that belong to no feature are 0.
    panels, half_squares, best, second, which
        As in :func:`score_pairs`.
    residuals : OUT, float32, one per row
        The squared norms of the tails.
    """
    n_steps = panels.shape[1]
    n_vectors = groups * VECTORS
    for v in range(n_vectors):
        points = y.ctypes.data + v // VECTORS * y.strides[0] + v % VECTORS * BYTES
        out = tiles.ctypes.data + (v // ABREAST * n_steps * ABREAST + v % ABREAST) * KIB
        split_points(points, y.shape[1] // 2, n_head_pairs, out, residuals.ctypes.data + v * BYTES)
    n_pairs, n_columns = n_vectors // ABREAST, n_steps * TILE
    score_pairs(tiles, n_pairs, n_columns, panels, half_squares, best, second, which)


@kernel
def _nothing(y, groups, n_head_pairs, tiles, panels, half_squares, best, second, which, residuals):
    """Replace the function above where there are no matrix units: this compiles but never runs."""


score_tiles = _score if AMX else _nothing
