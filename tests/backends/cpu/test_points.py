"""The scans' inner loops against NumPy: the best two scores, and where the best is."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from lloydia.backends.cpu import amx, points, scan
from lloydia.backends.cpu.centers import aligned, pack
from lloydia.exact import certificate


@njit
def frame_rows(*args):
    scan.frame_rows(*args)


@njit
def score_panels(*args):
    scan.score_panels(*args)


def straight(task, cost, n):
    task(0, 0, n)


def framed(n, d, k, tiles, dtype="float32"):
    rng = np.random.default_rng(d)
    centers = (rng.normal(size=(k, d)) + 3.0).astype(dtype)
    X = (rng.normal(size=(n, d)) + 3.0).astype(dtype)
    packed = pack(centers, tiles, straight)
    groups = 2 * -(-n // (2 * points.GROUP))
    y = aligned((groups, d + d % 2, points.GROUP))
    y[:] = 0.0
    squares = aligned((groups * points.GROUP,))
    rows = np.empty(0, dtype=np.int64)
    frame_rows(X, rows, 0, n, *packed.frame, y, squares)
    flat = y[:, :d].transpose(0, 2, 1).reshape(-1, d)[:n]
    origin, scale = packed.frame
    assert (flat == ((X - origin) * scale).astype(np.float32)).all()
    exact = flat.astype(np.float64) @ packed.scores[2].astype(np.float64)
    exact += packed.scores[1][:k].astype(np.float64)
    return packed, y, squares[:n], flat, exact


def check(n, exact, high, low, which, width, errors):
    names = high.view(np.int32)[:n] & (width - 1)
    labels = which[:n] * width + names
    two = np.sort(exact, axis=1)[:, -2:]
    assert (np.abs(high[:n] - two[:, 1]) <= errors).all()
    assert (np.abs(low[:n] - two[:, 0]) <= errors).all()
    assert (two[:, 1] - exact[np.arange(n), labels] <= 2 * errors).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("k", [2, 7, 8, 9, 40])
@pytest.mark.parametrize("d", [1, 3, 16, 300])
def test_panels_find_the_best_two(d, k, dtype):
    n = 100
    packed, y, squares, _, exact = framed(n, d, k, tiles=False, dtype=dtype)
    high, low = aligned((2, y.shape[0] * points.GROUP))
    which = aligned((y.shape[0] * points.GROUP,), np.int32)
    score_panels(
        y, d, len(y), *packed.scores[:2], high, low, which, True if d > points.DEEP else None
    )
    a, b, _ = packed.errors[2]
    check(n, exact, high, low, which, points.PANEL, a + b * squares)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("k", [2, 7, 8, 9, 40])
@pytest.mark.parametrize("d", [1, 3, 8])
def test_few_features_find_the_best_two(d, k, dtype):
    n = 100
    packed, y, squares, _, exact = framed(n, d, k, tiles=False, dtype=dtype)
    high, low = aligned((2, y.shape[0] * points.GROUP))
    which = aligned((y.shape[0] * points.GROUP,), np.int32)
    score_panels(y, d, len(y), *packed.scores[:2], high, low, which, tuple(range(d)))
    a, b, _ = packed.errors[3]
    check(n, exact, high, low, which, 1, a + b * squares)


@pytest.mark.skipif(not amx.AVAILABLE, reason="this processor has no tiles")
@pytest.mark.parametrize("k", [2, 31, 32, 33, 100])
@pytest.mark.parametrize("d", [1, 5, 32, 301])
def test_tiles_find_the_best_two(d, k):
    n = 100
    packed, y, squares, flat, exact = framed(n, d, k, tiles=True)
    size = y.shape[0] * points.GROUP
    high, low, rests = aligned((3, size))
    which = aligned((size,), np.int32)
    scratch = aligned(((3 * len(y) + 8) * packed.tiles[0].shape[1] * 256,))
    scratch[:] = 0.0
    amx.score_tiles(y, len(y), amx.lead(d), scratch, *packed.tiles, high, low, which, rests)
    a, b, c = packed.errors[1]
    check(n, exact, high, low, which, amx.TILE, a + b * squares + c * rests[:n])
    leading = ((flat.view(np.int32) + 0x8000) & -0x10000).view(np.float32)
    assert rests[:n] == pytest.approx(np.square(flat - leading).sum(axis=1), rel=0.02)


def test_the_line_bounds_the_error_terms():
    for reach in (0.0, 1e-3, 1.0, 30.0):
        a, b, c = certificate.error_terms(20, reach, 1.0, depth=12, named=4)
        low, slope, _ = certificate.error_line(20, reach, 1.0, depth=12, named=4)
        for R in (0.0, 1e-3, 0.5, 1.0, 7.0, 1e4):
            assert low + slope * R * R >= a + b * R + c * R * R
