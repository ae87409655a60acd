"""The least scores, their columns, and the bounds of all others, against sorted rows."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.matmul import top_two
from lloydia.backends.cuda.runtime.launching import place

ROWS = 64


@triton.jit
def kernel(
    table, size, columns, nine, others, least, second_score, column,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, SLOTS: tl.constexpr, TILES: tl.constexpr,
):  # fmt: skip
    PARTS: tl.constexpr = COLUMNS // SLOTS
    row = tl.arange(0, ROWS)
    slots, first, second, tile = top_two.begin(ROWS, PARTS, SLOTS)
    more, a, b, c, name, next_name = top_two.begin_named(ROWS, PARTS, SLOTS)
    for t in range(TILES):
        scores = tl.load(table + row[:, None] * size + (t * COLUMNS + tl.arange(0, COLUMNS))[None])
        slots, first, second, tile = top_two.add_tile(slots, first, second, tile, scores, t, PARTS)
        more, a, b, c, name, next_name = top_two.add_named_tile(
            more, a, b, c, name, next_name, scores, t, PARTS
        )
    s, r, j = top_two.end(slots, first, second, tile)
    tl.store(least + row, s)
    tl.store(second_score + row, r)
    tl.store(column + row, j)
    slot1, slot2, slot3, cell1, cell2, cell3, bound, farther = top_two.crossed(
        more, a, b, c, name, next_name
    )
    slot = (slot1, slot2, slot3)
    cell = (cell1, cell2, cell3)
    for i in tl.static_range(4):
        tl.store(columns + row * 4 + i, top_two.crossing(slot[i // 2], cell[i % 2], SLOTS))
    for i in tl.static_range(9):
        tl.store(nine + row * 9 + i, top_two.crossing(slot[i // 3], cell[i % 3], SLOTS))
    tl.store(others + row, bound)
    tl.store(others + ROWS + row, farther)


@pytest.mark.parametrize(("slots", "parts", "tiles"), [(32, 1, 1), (32, 4, 3), (64, 2, 2)])
@pytest.mark.parametrize("values", [3, 20, 10_000])
def test_nothing_is_missed(slots, parts, tiles, values):
    """Few values make many ties."""
    size = slots * parts * tiles
    S = np.random.default_rng(values).integers(0, values, (ROWS, size)).astype(np.float32)
    device = place("cuda")
    columns, nine, column = (
        torch.empty(shape, dtype=torch.int32, device=device)
        for shape in ((ROWS, 4), (ROWS, 9), (ROWS,))
    )
    least, second_score = (torch.empty(ROWS, device=device) for _ in range(2))
    others = torch.empty((2, ROWS), device=device)
    kernel[(1,)](
        torch.from_numpy(S).to(device), size, columns, nine, others, least, second_score, column,
        ROWS=ROWS, COLUMNS=slots * parts, SLOTS=slots, TILES=tiles,
    )  # fmt: skip
    ordered = np.sort(S, axis=1)
    np.testing.assert_array_equal(least.cpu().numpy(), ordered[:, 0])
    np.testing.assert_array_equal(second_score.cpu().numpy(), ordered[:, 1])
    alone = ordered[:, 0] < ordered[:, 1]
    np.testing.assert_array_equal(column.cpu().numpy(), np.where(alone, S.argmin(axis=1), -1))
    for named, bounds in zip((columns, nine), others.cpu().numpy()):
        check_bounds(S, named.cpu().numpy(), bounds)
    # With few ties the third least is among the nine, as a rule.
    if values == 10_000:
        third = S.argsort(axis=1)[:, 2:3]
        assert (nine.cpu().numpy() == third).any(axis=1).mean() > 0.9


def check_bounds(S: np.ndarray, columns: np.ndarray, bounds: np.ndarray) -> None:
    for scores, named, bound in zip(S, columns, bounds):
        found = named[named >= 0]
        assert len(set(found)) == len(found)
        left = np.delete(scores, found)
        assert bound <= left.min(initial=np.inf)
        # Of ties none need be named: then the bound is as low.
        assert scores.min() in (bound, *scores[found])
