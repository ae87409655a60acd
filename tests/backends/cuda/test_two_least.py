"""The least scores, their columns, and the bounds of all others, against sorted rows."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

from lloydia.backends.cuda import two_least
from lloydia.backends.cuda.launching import place

ROWS = 64


@triton.jit
def kernel(
    table, size, columns, others, least, rival, column,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, SLOTS: tl.constexpr, TILES: tl.constexpr,
):  # fmt: skip
    PARTS: tl.constexpr = COLUMNS // SLOTS
    row = tl.arange(0, ROWS)
    slots, first, second, tile = two_least.begin(ROWS, PARTS, SLOTS)
    more, a, b, c, name, next_name = two_least.begin_named(ROWS, PARTS, SLOTS)
    for t in range(TILES):
        scores = tl.load(table + row[:, None] * size + (t * COLUMNS + tl.arange(0, COLUMNS))[None])
        slots, first, second, tile = two_least.add_tile(
            slots, first, second, tile, scores, t, PARTS
        )
        more, a, b, c, name, next_name = two_least.add_named_tile(
            more, a, b, c, name, next_name, scores, t, PARTS
        )
    s, r, j = two_least.end(slots, first, second, tile)
    tl.store(least + row, s)
    tl.store(rival + row, r)
    tl.store(column + row, j)
    j0, j1, j2, j3, bound = two_least.crossings(more, a, b, c, name, next_name)
    tl.store(columns + row * 4, j0)
    tl.store(columns + row * 4 + 1, j1)
    tl.store(columns + row * 4 + 2, j2)
    tl.store(columns + row * 4 + 3, j3)
    tl.store(others + row, bound)


@pytest.mark.parametrize(("slots", "parts", "tiles"), [(32, 1, 1), (32, 4, 3), (64, 2, 2)])
@pytest.mark.parametrize("values", [3, 20, 10_000])
def test_nothing_is_missed(slots, parts, tiles, values):
    """Few values make many ties."""
    size = slots * parts * tiles
    S = np.random.default_rng(values).integers(0, values, (ROWS, size)).astype(np.float32)
    device = place("cuda")
    columns, column = (
        torch.empty(shape, dtype=torch.int32, device=device) for shape in ((ROWS, 4), (ROWS,))
    )
    others, least, rival = (torch.empty(ROWS, device=device) for _ in range(3))
    kernel[(1,)](
        torch.from_numpy(S).to(device), size, columns, others, least, rival, column,
        ROWS=ROWS, COLUMNS=slots * parts, SLOTS=slots, TILES=tiles,
    )  # fmt: skip
    ordered = np.sort(S, axis=1)
    np.testing.assert_array_equal(least.cpu().numpy(), ordered[:, 0])
    np.testing.assert_array_equal(rival.cpu().numpy(), ordered[:, 1])
    alone = ordered[:, 0] < ordered[:, 1]
    np.testing.assert_array_equal(column.cpu().numpy(), np.where(alone, S.argmin(axis=1), -1))
    for scores, named, bound in zip(S, columns.cpu().numpy(), others.cpu().numpy()):
        found = named[named >= 0]
        assert len(set(found)) == len(found)
        left = np.delete(scores, found)
        assert bound <= left.min(initial=np.inf)
        # Of ties none need be named: then the bound is as low.
        assert scores.min() in (bound, *scores[found])
