"""The least score of some tiles, and bounds of it and all others, against sorted rows."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.grid_least import MOST_COLUMNS, UNNAMED, least_of, told
from lloydia.backends.cuda.launching import place

ROWS = 64
LOST_OF_OTHERS = 2.0**-23 * 48


@triton.jit
def kernel(
    table, column, upper, lower, unnamed,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, TILES: tl.constexpr,
):  # fmt: skip
    row = tl.arange(0, ROWS)
    tiles = ()
    for t in tl.static_range(TILES):
        j = t * COLUMNS + tl.arange(0, COLUMNS)
        scores = tl.load(table + row[:, None] * (TILES * COLUMNS) + j[None, :])
        tiles = tiles + (scores,)  # noqa: RUF005  Triton knows no other
    found, least, others = told(least_of(tiles, unnamed))
    tl.store(column + row, found)
    tl.store(upper + row, least)
    tl.store(lower + row, others)


def told_of(S: np.ndarray, columns: int, tiles: int) -> tuple[np.ndarray, ...]:
    """Return the column of each row, and the bounds of its score and of all others."""
    device = place("cuda")
    column = torch.empty(ROWS, dtype=torch.int32, device=device)
    upper, lower = (torch.empty(ROWS, device=device) for _ in range(2))
    rows = torch.from_numpy(S).to(device)
    kernel[(1,)](rows, column, upper, lower, UNNAMED, ROWS=ROWS, COLUMNS=columns, TILES=tiles)
    return column.cpu().numpy(), upper.cpu().numpy(), lower.cpu().numpy()


def scores_of(kind: str, size: int) -> np.ndarray:
    rng = np.random.default_rng(7)
    shape = ROWS, size
    if kind == "ties":
        return rng.integers(1, size, shape).astype(np.float32)
    if kind == "neighbours":  # they differ by some last bits
        return (1000 + rng.integers(0, 1000 * size, shape) * 2.0**-14).astype(np.float32)
    return np.exp(10 * rng.normal(size=shape)).astype(np.float32)


@pytest.mark.parametrize(("columns", "tiles"), [(64, 1), (64, 2), (64, 3), (128, 2), (256, 1)])
@pytest.mark.parametrize("kind", ["ties", "neighbours", "wide"])
def test_the_least_and_all_others_are_bounded(kind, columns, tiles):
    S = scores_of(kind, columns * tiles)
    column, upper, lower = told_of(S, columns, tiles)
    own = np.where(column >= 0, S[np.arange(ROWS), column], S.min(axis=1))
    others = np.where(np.arange(S.shape[1]) == column[:, None], np.inf, S).min(axis=1)
    assert (own <= upper).all()
    assert (lower <= others).all()
    # The bounds are close, and a column is named where scores differ by more than is lost: three
    # bits of the least; of the others three, two names between them, and what five more can hold.
    lost, lost_of_others = 2.0**-23 * 8, LOST_OF_OTHERS
    assert (upper <= S.min(axis=1) * (1 + lost) + 1e-42).all()
    assert (lower >= others * (1 - lost_of_others)).all()
    first, second, *_ = np.sort(S, axis=1).T
    assert (column >= 0)[second > first * (1 + lost + lost_of_others) + 1e-42].all()
    assert (column >= 0).mean() > (0.3 if kind == "ties" else 0.9)


@pytest.mark.parametrize("where", [0, 7, 31, 32, 63])
def test_each_place_has_its_name(where):
    """Of all columns in turn, one score is less than the others, which are alike."""
    S = np.full((ROWS, MOST_COLUMNS), 2.0, np.float32)
    columns = (np.arange(ROWS) * 4 + where) % S.shape[1]
    S[np.arange(ROWS), columns] = 1.0
    column, _, lower = told_of(S, 64, 4)
    np.testing.assert_array_equal(column, columns)
    np.testing.assert_allclose(lower, 2.0, rtol=LOST_OF_OTHERS)


@pytest.mark.parametrize("slot", [0, 7])
@pytest.mark.parametrize("apart", range(1, 8))
def test_what_only_its_cell_tells_apart_is_bounded(apart, slot):
    """Of the next score the last bits are all there are: names must not make its bound larger."""
    row = np.arange(ROWS)
    thread, last = row % 4, row // 2
    place = slot // 2 * 8 + thread * 2 + slot % 2
    for cell in range(8 - apart):
        for one, other in ((cell, cell + apart), (cell + apart, cell)):
            S = np.full((ROWS, MOST_COLUMNS), 4.0, np.float32)
            S[row, one * 32 + place] = 1.0
            S[row, other * 32 + place] = (0x40000000 + last).astype(np.int32).view(np.float32)
            column, _, lower = told_of(S, MOST_COLUMNS, 1)
            np.testing.assert_array_equal(column, one * 32 + place)
            second = S[row, other * 32 + place]
            assert (lower <= second).all()
            assert (lower >= second * (1 - LOST_OF_OTHERS)).all()
