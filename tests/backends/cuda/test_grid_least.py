"""The least score of a tile, and bounds of it and all others, against sorted rows."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.grid_least import COLUMNS, least_of_tile
from lloydia.backends.cuda.launching import place

ROWS = 64


@triton.jit
def kernel(
    table, column, upper, lower, ROWS: tl.constexpr,
):  # fmt: skip
    row = tl.arange(0, ROWS)
    scores = tl.load(table + row[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :])
    found, least, others = least_of_tile(scores)
    tl.store(column + row, found)
    tl.store(upper + row, least)
    tl.store(lower + row, others)


def scores_of(kind: str) -> np.ndarray:
    rng = np.random.default_rng(7)
    shape = ROWS, COLUMNS.value
    if kind == "ties":
        return rng.integers(0, 30, shape).astype(np.float32)
    if kind == "neighbours":  # they differ by some last bits
        return (1000 + rng.integers(0, 4000, shape) * 2.0**-14).astype(np.float32)
    return np.exp(10 * rng.normal(size=shape)).astype(np.float32)


@pytest.mark.parametrize("kind", ["ties", "neighbours", "wide"])
def test_the_least_and_all_others_are_bounded(kind):
    S = scores_of(kind)
    device = place("cuda")
    column = torch.empty(ROWS, dtype=torch.int32, device=device)
    upper, lower = (torch.empty(ROWS, device=device) for _ in range(2))
    kernel[(1,)](torch.from_numpy(S).to(device), column, upper, lower, ROWS=ROWS)
    column, upper, lower = column.cpu().numpy(), upper.cpu().numpy(), lower.cpu().numpy()
    own = np.where(column >= 0, S[np.arange(ROWS), column], S.min(axis=1))
    others = np.where(np.arange(COLUMNS.value) == column[:, None], np.inf, S).min(axis=1)
    assert (own <= upper).all()
    assert (lower <= others).all()
    # The bounds are close, and a column is named where scores differ by more than is lost.
    lost = 2.0**-22 * COLUMNS.value
    assert (upper <= S.min(axis=1) * (1 + 2 * lost) + 1e-42).all()
    assert (lower >= others * (1 - lost)).all()
    first, second, *_ = np.sort(S, axis=1).T
    assert (column >= 0)[second > first * (1 + 2 * lost) + 1e-42].all()
    # Threads hold a quarter of a row's scores each: most that are alike are not the same one's.
    assert (column >= 0).mean() > 0.5
