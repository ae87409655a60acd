"""Framed rows: the same numbers in any layout and order, and bounds on their norms."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from lloydia.backends.cpu.scan import nearest
from lloydia.backends.cpu.scan.centers import aligned
from lloydia.backends.cpu.simd import microkernel_rows_in_lanes as points
from lloydia.backends.cpu.simd.microkernel_low_dim import LOW_DIM


@njit
def frame_rows(X, rows, at, m, shape, origin, scale, y, squares, next_rows, part):
    nearest.frame_rows(X, rows, at, m, shape, origin, scale, y, squares, next_rows, part)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("d", [5, 8, 19, 40])
def test_rows_are_framed_alike_in_any_layout_and_order(d, dtype):
    n = 70
    rng = np.random.default_rng(d)
    X = rng.normal(size=(n, d)).astype(dtype)
    origin, scale = X.mean(axis=0), X.dtype.type(0.25)
    every, turned = np.empty(0, dtype=np.int64), np.arange(n)[::-1].copy()
    wide = np.zeros((n, 2 * d), dtype)
    wide[:, ::2] = X
    for rows, given in (
        (every, X),
        (turned, X),
        (every, wide[:, ::2]),
    ):
        y, squares = aligned((2, d, points.GROUP)), aligned((2 * points.GROUP,))
        shape = tuple(range(d)) if d <= LOW_DIM else None
        frame_rows(given, rows, 0, n, shape, origin, scale, y, squares, 0, 0)
        flat = y.transpose(0, 2, 1).reshape(-1, d)[:n]
        expected = ((X - origin) * scale).astype(np.float32)[rows if len(rows) else slice(None)]
        assert (flat == expected).all()
        exact = np.square(flat.astype(np.float64)).sum(axis=1)
        assert (squares[:n] >= exact).all()
        assert (squares[:n] <= exact * (1 + (d + 8) * 2.0**-21)).all()
