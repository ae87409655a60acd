"""The first stage for wide rows, which are loaded again for every tile of centres.

One loop goes through the chunks of features of all tiles, so that those of the next tile are
prefetched while the scores of this one are compared.
"""

from __future__ import annotations

import triton
import triton.language as tl

from lloydia.backends.cuda.device_functions.run_state import (
    STOPPED,
    first_row,
    item_state,
    wait_for_previous_kernel,
)
from lloydia.backends.cuda.matmul.top_two import add_tile, begin, end

__all__ = ["wide_kernel", "wide_top_two"]


@triton.jit
def wide_top_two(
    y_at, mask, b_at, single_at, width, n_tiles,
    CHUNK: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, SLOTS: tl.constexpr,
    STAGES: tl.constexpr,
):  # fmt: skip
    """Return the best two scores of each row, and the column of the best.

    The pointers are to the first chunk of the rows, of the first tile, and to its half norms.
    """
    PARTS: tl.constexpr = COLUMNS // SLOTS
    slots, first, second, tile = begin(ROWS, PARTS, SLOTS)
    scores = tl.zeros((ROWS, COLUMNS), tl.float32)
    n_chunks = width // CHUNK
    for i in tl.range(0, n_tiles * n_chunks, num_stages=STAGES):
        t = i // n_chunks
        skip = (i - t * n_chunks) * CHUNK
        y = tl.load(y_at + skip, mask=mask[:, None], other=0.0)
        b = tl.load(b_at + ((t * COLUMNS).to(tl.int64) * width + skip))
        scores = tl.dot(y, b, scores)
        if skip + CHUNK == width:
            # No product here: after one in a branch, the matrix unit would wait before the next.
            start = tl.load(single_at + t * COLUMNS)
            slots, first, second, tile = add_tile(
                slots, first, second, tile, scores + start[None, :], t, PARTS
            )
            scores = tl.zeros((ROWS, COLUMNS), tl.float32)
    return end(slots, first, second, tile)


@triton.jit(do_not_specialize=["n", "n_tiles"])
def wide_kernel(
    y_ptr, n, width, high_ptr, half_norm_f32_ptr, n_tiles, best_ptr, second_ptr, found, run_state,
    CHUNK: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, SLOTS: tl.constexpr,
    STAGES: tl.constexpr,
):  # fmt: skip
    """Write the best two scores of each row, and the column of the best."""
    wait_for_previous_kernel()
    stopped = tl.load(item_state(run_state) + STOPPED) != 0
    batch_item = tl.program_id(2).to(tl.int64)
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    mask = rows < n
    at = first_row(n) + rows
    f = tl.arange(0, CHUNK)
    column = tl.arange(0, COLUMNS)
    y_at = y_ptr + at[:, None] * width + f[None, :]
    high_ptr += batch_item * n_tiles * COLUMNS * width
    half_norm_f32_ptr += batch_item * n_tiles * COLUMNS
    b_at = high_ptr + column[None, :] * width + f[:, None]
    # No early return: no branch around the loop.
    n_tiles = tl.where(stopped, 0, n_tiles)
    best_score, second_score, label = wide_top_two(
        y_at, mask, b_at, half_norm_f32_ptr + column, width, n_tiles, CHUNK, ROWS, COLUMNS, SLOTS,
        STAGES,
    )  # fmt: skip
    tl.store(best_ptr + at, best_score, mask=mask)
    tl.store(second_ptr + at, second_score, mask=mask)
    tl.store(found + at, label, mask=mask)
