"""The least score of some tiles, and bounds of it and all others, against sorted rows."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.dispatch import MAX_RESIDENT_CENTERS
from lloydia.backends.cuda.matmul.packed_top_two import (
    RAISED,
    SMALLEST_SCORE,
    packed_top_two_of,
    slots_of,
    unpacked,
)
from lloydia.backends.cuda.runtime.launching import place

ROWS = 64
# A name more, one less, and what five bits of names can hold, of numbers 16 times as fine.
LOST_OF_OTHERS = 2.0**-23 * 4


@triton.jit
def kernel(
    table, column, upper, lower, raised, slots,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, TILES: tl.constexpr, SLOTS: tl.constexpr,
):  # fmt: skip
    row = tl.arange(0, ROWS)
    tiles = ()
    for t in tl.static_range(TILES):
        j = t * COLUMNS + tl.arange(0, COLUMNS)
        scores = tl.load(table + row[:, None] * (TILES * COLUMNS) + j[None, :])
        tiles = tiles + (scores,)  # noqa: RUF005  Triton knows no other
    found, least, others = unpacked(packed_top_two_of(tiles, raised, SLOTS), slots, TILES * COLUMNS)
    tl.store(column + row, found)
    tl.store(upper + row, least)
    tl.store(lower + row, others)


def told_of(S: np.ndarray, columns: int, tiles: int) -> tuple[np.ndarray, ...]:
    """Return the column of each row, and the bounds of its score and of all others."""
    device = place("cuda")
    column = torch.empty(ROWS, dtype=torch.int32, device=device)
    upper, lower = (torch.empty(ROWS, device=device) for _ in range(2))
    rows = torch.from_numpy(S).to(device)
    slots = slots_of(columns * tiles)
    kernel[(1,)](
        rows, column, upper, lower, RAISED, slots,
        ROWS=ROWS, COLUMNS=columns, TILES=tiles, SLOTS=slots,
    )  # fmt: skip
    return column.cpu().numpy(), upper.cpu().numpy(), lower.cpu().numpy()


def scores_of(kind: str, size: int) -> np.ndarray:
    rng = np.random.default_rng(7)
    shape = ROWS, size
    if kind == "ties":
        return rng.integers(3, size, shape).astype(np.float32)
    if kind == "neighbours":  # they differ by some last bits
        return (1000 + rng.integers(0, 1000 * size, shape) * 2.0**-14).astype(np.float32)
    return np.exp(rng.uniform(np.log(SMALLEST_SCORE), 33 * np.log(2), shape)).astype(np.float32)


@pytest.mark.parametrize(("columns", "tiles"), [(64, 1), (64, 2), (64, 3), (128, 2), (256, 1)])
@pytest.mark.parametrize("kind", ["ties", "neighbours", "wide"])
def test_the_least_and_all_others_are_bounded(kind, columns, tiles):
    S = scores_of(kind, columns * tiles)
    column, upper, lower = told_of(S, columns, tiles)
    own = np.where(column >= 0, S[np.arange(ROWS), column], S.min(axis=1))
    others = np.where(np.arange(S.shape[1]) == column[:, None], np.inf, S).min(axis=1)
    assert (own <= upper).all()
    assert (lower <= others).all()
    # The least is told as it is; a column is named where others differ by more than they lose.
    np.testing.assert_array_equal(upper, S.min(axis=1))
    assert (lower >= others * (1 - LOST_OF_OTHERS)).all()
    first, second, *_ = np.sort(S, axis=1).T
    assert (column >= 0)[second > first * (1 + LOST_OF_OTHERS)].all()
    assert (column >= 0).mean() > (0.3 if kind == "ties" else 0.9)


@pytest.mark.parametrize("size", [64, 128, 192, 256])
@pytest.mark.parametrize("where", range(4))
def test_each_place_has_its_name(where, size):
    """Of all columns in turn, one score is less than the others, which are alike."""
    S = np.full((ROWS, size), 6.0, np.float32)
    columns = (np.arange(ROWS) * 4 + where) % size
    S[np.arange(ROWS), columns] = SMALLEST_SCORE
    column, least, lower = told_of(S, 64, size // 64)
    np.testing.assert_array_equal(column, columns)
    np.testing.assert_array_equal(least, np.float32(SMALLEST_SCORE))
    assert (lower <= 6.0).all()
    np.testing.assert_allclose(lower, 6.0, rtol=LOST_OF_OTHERS)


def place_of(number, thread):
    """Return the column of a number of each thread."""
    return number // 2 * 8 + thread * 2 + number % 2


@pytest.mark.parametrize("slot", [0, 8])
@pytest.mark.parametrize("apart", range(1, 7))
def test_what_only_its_cell_tells_apart_is_bounded(apart, slot):
    """Of the next score the last bits are all there are: names must not make its bound larger."""
    row = np.arange(ROWS)
    thread, last = row % 4, row // 2
    for cell in range(7 - apart):
        for one, other in ((cell, cell + apart), (cell + apart, cell)):
            S = np.full((ROWS, MAX_RESIDENT_CENTERS), 8.0, np.float32)
            least, next_one = place_of(one * 9 + slot, thread), place_of(other * 9 + slot, thread)
            S[row, least] = SMALLEST_SCORE
            S[row, next_one] = (0x40800000 + last).astype(np.int32).view(np.float32)
            column, _, lower = told_of(S, MAX_RESIDENT_CENTERS, 1)
            np.testing.assert_array_equal(column, least)
            second = S[row, next_one]
            assert (lower <= second).all()
            assert (lower >= second * (1 - LOST_OF_OTHERS)).all()


def test_scores_out_of_range_name_no_column_that_is_not_there():
    rng = np.random.default_rng(3)
    for size in (64, 256):
        S = (4 * rng.normal(size=(ROWS, size))).astype(np.float32)
        column, _, _ = told_of(S, 64, size // 64)
        assert ((column >= -1) & (column < size)).all()
