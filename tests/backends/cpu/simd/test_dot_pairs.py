"""Products of pairs of bfloat16 on vector units, as laid out for them."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from lloydia.backends.cpu.scan import tile_scores
from lloydia.backends.cpu.scan.centers import aligned
from lloydia.backends.cpu.simd import dot_pairs
from lloydia.backends.cpu.simd.pairs import ABREAST, KIB, TILE


@njit
def multiply(points, n_columns, panel, starts, scores):
    dot_pairs.multiply(
        points.ctypes.data, n_columns, panel.ctypes.data, starts.ctypes.data, scores.ctypes.data
    )


def pairs_of(rng, shape):
    """Return pairs of bfloat16, in 32 bits each, and their numbers along a last axis."""
    halves = rng.normal(size=(*shape, 2)).astype(np.float32).view(np.uint32) >> 16
    values = (halves << 16).view(np.float32).astype(np.float64)
    return (halves[..., 0] | halves[..., 1] << 16).view(np.int32), values


@pytest.mark.skipif(not dot_pairs.AVAILABLE, reason="this processor's vectors multiply no pairs")
@pytest.mark.parametrize("n_columns", [1, 15, 16, 17, 33])
def test_products_are_those_of_the_pairs(n_columns):
    rng = np.random.default_rng(n_columns)
    n_steps = -(-n_columns // TILE)
    points = aligned((n_steps, ABREAST, TILE, TILE), np.int32)
    panel = aligned((n_steps, ABREAST, TILE, TILE), np.int32)
    # What is not a number stands wherever nothing is to be read.
    points[:], panel[:] = -1, -1
    x, values = pairs_of(rng, (n_columns, ABREAST, TILE))
    c, others = pairs_of(rng, (n_columns, ABREAST, TILE))
    for column in range(n_columns):
        points[column // TILE, :, column % TILE] = x[column]
        panel[column // TILE, :, :, column % TILE] = c[column]
    starts = aligned((ABREAST, TILE, TILE))
    starts[:] = rng.normal(size=(ABREAST, TILE, 1))
    scores = aligned((ABREAST, ABREAST, TILE, TILE))
    assert scores.nbytes == ABREAST * ABREAST * KIB
    multiply(points, n_columns, panel, starts, scores)
    exact = np.einsum("jvph,jtch->tvcp", values, others) + starts[:, None]
    sizes = np.einsum("jvph,jtch->tvcp", abs(values), abs(others)) + abs(starts[:, None])
    assert (abs(scores - exact) <= dot_pairs.depth_of(n_columns) * 2.0**-24 * sizes).all()


def test_the_certificate_counts_all_additions():
    # Two to each instruction, or sixteen to one before they join the total.
    for n_columns in (1, 17, 400):
        sequential = 2 * n_columns
        if tile_scores.AMX:
            sequential = TILE + -(-n_columns // TILE)
        assert tile_scores.depth_of(n_columns) >= sequential
