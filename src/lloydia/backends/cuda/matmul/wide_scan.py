"""The best two scores of wide rows, which are loaded again for every tile of centres.

One loop goes through the chunks of features of all tiles, so that those of the next tile are
prefetched while the scores of this one are compared.
"""

from __future__ import annotations

import triton
import triton.language as tl

from lloydia.backends.cuda.matmul.top_two import add_tile, begin, end

__all__ = ["wide_top_two"]


@triton.jit
def wide_top_two(
    y_at, mask, high_ptr, half_norm_f32_ptr, width, n_tiles,
    CHUNK: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, SLOTS: tl.constexpr,
    STAGES: tl.constexpr,
):  # fmt: skip
    """Return the best two scores of each row, and the column of the best.

    `y_at` points to the first chunk of the rows, the other pointers to the first tile of centres.
    """
    PARTS: tl.constexpr = COLUMNS // SLOTS
    column = tl.arange(0, COLUMNS)
    b_at = high_ptr + column[None, :] * width + tl.arange(0, CHUNK)[:, None]
    single_at = half_norm_f32_ptr + column
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
