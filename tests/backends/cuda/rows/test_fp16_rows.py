"""Rows in half precision: what is said of them against float64, and their measurement."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from lloydia.backends.cuda.placement import place_rows
from lloydia.backends.cuda.rows.fp16_rows import Fp16Rows
from lloydia.backends.cuda.rows.magnitudes import magnitudes, new_bounds, queue_bounds
from lloydia.backends.cuda.runtime.relocation import replay
from nasty import FLAVOURS, rows_of
from table import blobs


def rows_like(kind: str, dtype: str) -> np.ndarray:
    return blobs(150, 20, dtype) if kind == "blobs" else rows_of(kind, 150, 20, dtype, seed=4)


@pytest.mark.parametrize("kind", ["blobs", *FLAVOURS])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_norms_and_rests_are_upper_bounds_and_close(kind, dtype):
    X = rows_like(kind, dtype)
    with np.errstate(all="ignore"):
        rows = place_rows(X, None, "cuda")
        fp16_rows = Fp16Rows(rows)
        replay(*fp16_rows.storing)
    numbers, offset = fp16_rows.numbers.cpu().numpy()[0], fp16_rows.offsets.cpu().numpy()[0]
    y = fp16_rows.high.cpu().numpy().astype(np.float64)[:, :20]
    norm, residual = fp16_rows.norm.cpu().numpy(), fp16_rows.residual.cpu().numpy()
    with np.errstate(all="ignore"):
        moved = X.astype(np.longdouble) * numbers[0] - offset
    true_norm = np.sqrt(np.square(y).sum(axis=1))
    left_out = np.sqrt(np.square(moved - y).sum(axis=1))
    assert (norm >= true_norm).all()
    assert (norm <= 1.0001 * true_norm).all()
    # What float32 cannot hold is infinite.
    assert (residual >= left_out).all()
    held = left_out < 1e15
    assert (residual[held] <= 1.0001 * left_out[held] + 2.0**-22 * norm[held] + 1e-12).all()


@pytest.mark.parametrize("kind", ["blobs", *FLAVOURS])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_rows_are_measured_as_they_are_stored(kind, dtype):
    wide = "float32" if dtype == "float16" else dtype
    with np.errstate(all="ignore"):
        rows = place_rows(rows_like(kind, wide).astype(dtype), None, "cuda")
        bounds = new_bounds(rows.X)
        replay(*Fp16Rows(rows, bounds=bounds).storing)
    double = rows.X.dtype == torch.float64
    stored = magnitudes(bounds.cpu().numpy(), double)
    alone = magnitudes(queue_bounds(rows.X).cpu().numpy(), double)
    np.testing.assert_array_equal(stored, alone)
