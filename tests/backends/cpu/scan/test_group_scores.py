"""The scans' inner loops against NumPy: the best two scores, and where the best is."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from lloydia.backends.cpu.scan import group_scores, tile_scores
from lloydia.backends.cpu.scan import nearest as scan
from lloydia.backends.cpu.scan.centers import aligned, pack
from lloydia.backends.cpu.scan.close_centers import list_close_centers
from lloydia.backends.cpu.simd import microkernel_rows_in_lanes as points
from lloydia.backends.cpu.simd import pairs
from lloydia.backends.cpu.simd.microkernel_low_dim import LOW_DIM


@njit
def frame_rows(X, rows, at, m, shape, origin, scale, y, squares, next_rows, part):
    scan.frame_rows(X, rows, at, m, shape, origin, scale, y, squares, next_rows, part)


@njit
def score_panels(y, d, groups, panels, half_squares, best, second, which, shape, next_rows, part):
    group_scores.score_panels(
        y, d, groups, panels, half_squares, best, second, which, shape, next_rows, part
    )


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
    shape = tuple(range(d)) if d <= LOW_DIM else None
    frame_rows(X, rows, 0, n, shape, *packed.frame, y, squares, 0, 0)
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
    shape = True if d > points.DEEP else None
    score_panels(y, d, len(y), *packed.scores[:2], high, low, which, shape, 0, 0)
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
    axes = tuple(range(d))
    for shape in (axes, (axes, k)):
        score_panels(y, d, len(y), *packed.scores[:2], high, low, which, shape, 0, 0)
        a, b, _ = packed.errors[3]
        check(n, exact, high, low, which, 1, a + b * squares)


@pytest.mark.skipif(not tile_scores.AMX, reason="this processor has no tiles")
@pytest.mark.parametrize("k", [2, 31, 32, 33, 100])
@pytest.mark.parametrize("d", [1, 5, 32, 301])
def test_tiles_find_the_best_two(d, k):
    n = 100
    packed, y, squares, flat, exact = framed(n, d, k, tiles=True)
    size = y.shape[0] * points.GROUP
    high, low, residuals = aligned((3, size))
    which = aligned((size,), np.int32)
    scratch = aligned(((3 * len(y) + 8) * packed.tiles[0].shape[1] * 256,))
    scratch[:] = 0.0
    tile_scores.score_tiles(
        y, len(y), tile_scores.head_pairs_of(d), scratch, *packed.tiles, high, low, which, residuals
    )
    a, b, c = packed.errors[1]
    check(n, exact, high, low, which, pairs.TILE, a + b * squares + c * residuals[:n])
    heads = ((flat.view(np.int32) + 0x8000) & -0x10000).view(np.float32)
    assert residuals[:n] == pytest.approx(np.square(flat - heads).sum(axis=1), rel=0.02)


@njit
def close_centers_of(y, d, panels, starts, reach, requested, names, rows):
    return list_close_centers(
        y.ctypes.data, d, panels.ctypes.data, starts.ctypes.data, len(panels), reach.ctypes.data,
        requested, names.ctypes.data, rows.ctypes.data,
    )  # fmt: skip


@pytest.mark.parametrize("d", [3, 40, 300])
def test_close_centers_are_those_whose_scores_reach(d):
    n, k = points.GROUP, 21
    packed, y, _, _, exact = framed(n, d, k, False)
    panels, starts, _ = packed.scores
    # In the middle between two scores, where rounding decides nothing.
    ordered = np.sort(exact, axis=1)
    counts = np.arange(n) % 5 + 1
    at = np.arange(n), -counts
    reach = aligned((n,))
    reach[:] = (ordered[at] + ordered[np.arange(n), -counts - 1]) / 2
    reach[2] = np.nan
    requested = [p for p in range(n) if p % 3 != 1]
    names, rows = np.empty((2, len(starts)), dtype=np.int64)
    bits = np.int64(sum(1 << p for p in requested))
    found = close_centers_of(y, d, panels, starts, reach, bits, names, rows)
    listed = {(j, p) for j, b in zip(names[:found], rows[:found]) for p in range(n) if b >> p & 1}
    expected = {(j, p) for p in requested for j in range(k) if p == 2 or exact[p, j] > reach[p]}
    assert {(j, p) for j, p in listed if j < k} == expected
    assert (np.diff(names[:found]) > 0).all()
