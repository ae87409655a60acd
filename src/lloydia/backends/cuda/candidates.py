"""The second stage for d > 8: the few centres that can be nearest to a row in doubt.

The scores of the rows in doubt are computed once more, and four columns are named that the least
are among (:func:`lloydia.backends.cuda.two_least.crossings`).  Where all other scores are above a
row's limit (:mod:`lloydia.exact.half_certificate`), those are its *candidates*, between which
:mod:`duel` decides.  The other rows are left to the last stage.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.flow import HALT, N_DOUBT, N_DOUBT2
from lloydia.backends.cuda.halves import (
    CHUNK,
    RADIUS,
    RESIDENT,
    SHIFT,
    START_WIDTH,
    UNIT,
    HalfCenters,
    HalfRows,
)
from lloydia.backends.cuda.launching import processors
from lloydia.backends.cuda.limits import limit_of
from lloydia.backends.cuda.recording import launch
from lloydia.backends.cuda.row_lists import append
from lloydia.backends.cuda.two_least import add_named_tile, begin_named, crossings
from lloydia.exact.half_certificate import canonical_error, summation

__all__ = ["COUNT", "nominate"]

# Candidates of a row.
COUNT = tl.constexpr(4)
# Rows and slots of a tile of scores, and its most columns.
ROWS, SLOTS, MOST_COLUMNS = 128, 32, 128
# Programs that a multiprocessor holds at a time.
AT_A_TIME, WARPS, STAGES = 2, 8, 2


@triton.jit(do_not_specialize=["n_tiles"])
def candidates_kernel(
    y_ptr, width, b_ptr, start_ptr, n_tiles, numbers, score_ptr, found_ptr, norm_ptr, rest_ptr,
    center_norm, center_rest, center_lowered, usual, summed, canonical,
    doubts, doubts2, candidates, flow,
    WIDE: tl.constexpr, CHUNK: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
    SLOTS: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Write the candidates of the rows listed in `doubts`, or -1; list the rows without any."""
    if tl.load(flow + HALT) != 0:
        return
    PARTS: tl.constexpr = COLUMNS // SLOTS
    n_listed = tl.load(flow + N_DOUBT)
    stride = width if WIDE else CHUNK
    row = tl.arange(0, ROWS)
    f = tl.arange(0, CHUNK)
    part = tl.arange(0, START_WIDTH)
    units = tl.where(part < 3, tl.load(numbers + UNIT), 0.0).to(tl.float16)
    units = tl.broadcast_to(units[None, :], (ROWS, START_WIDTH))
    for block in range(tl.program_id(0), tl.cdiv(n_listed, ROWS), tl.num_programs(0)):
        position = block * ROWS + row
        mask = position < n_listed
        rows = tl.load(doubts + position, mask=mask, other=0)
        y_block = y_ptr + rows.to(tl.int64)[:, None] * stride + f[None, :]
        if not WIDE:
            y = tl.load(y_block)
        slots, first, second, third, tile, next_tile = begin_named(ROWS, PARTS, SLOTS)
        for t in tl.range(0, n_tiles, num_stages=1 if WIDE else STAGES):
            j = (t * COLUMNS + tl.arange(0, COLUMNS)).to(tl.int64)
            b_block = b_ptr + j[None, :] * stride + f[:, None]
            if WIDE:
                scores = tl.zeros((ROWS, COLUMNS), tl.float32)
                for skip in tl.range(0, width, CHUNK, num_stages=STAGES):
                    scores = tl.dot(tl.load(y_block + skip), tl.load(b_block + skip), scores)
            else:
                scores = tl.dot(y, tl.load(b_block))
            starts = tl.load(start_ptr + j[None, :] * START_WIDTH + part[:, None])
            scores = tl.dot(units, starts, scores)
            slots, first, second, third, tile, next_tile = add_named_tile(
                slots, first, second, third, tile, next_tile, scores, t, PARTS
            )
        a, b, c, d, others = crossings(slots, first, second, third, tile, next_tile)
        top = limit_of(
            rows, mask, score_ptr, found_ptr, norm_ptr, rest_ptr, center_norm, center_rest,
            center_lowered, usual, tl.load(numbers + SHIFT).to(tl.float32),
            tl.load(numbers + RADIUS).to(tl.float32), summed, canonical,
        )  # fmt: skip
        known = others > top
        at = candidates + position.to(tl.int64) * COUNT
        tl.store(at, tl.where(known, a, -1), mask=mask)
        tl.store(at + 1, tl.where(known, b, -1), mask=mask)
        tl.store(at + 2, tl.where(known, c, -1), mask=mask)
        tl.store(at + 3, tl.where(known, d, -1), mask=mask)
        append(rows, mask & ~known, doubts2, flow + N_DOUBT2)


def nominate(
    halves: HalfRows,
    centers: HalfCenters,
    scores: torch.Tensor,
    found: torch.Tensor,
    doubts: torch.Tensor,
    doubts2: torch.Tensor,
    candidates: torch.Tensor,
    flow: torch.Tensor,
) -> None:
    """Queue it: `candidates` of the rows in `doubts`, shape (n, COUNT), or a place in `doubts2`.

    `scores` are the least of each row, `found` the centres that have them.
    """
    wide = halves.width > RESIDENT
    columns = min(centers.tile, MOST_COLUMNS)
    launch(
        candidates_kernel, (AT_A_TIME * processors(halves.high.device),),
        halves.high, halves.width, centers.high, centers.start, centers.size // columns,
        halves.numbers, scores, found, halves.norm, halves.rest,
        centers.norm, centers.rest, centers.lowered, centers.usual,
        summation(halves.width), canonical_error(halves.rows.n_features),
        doubts, doubts2, candidates, flow,
        WIDE=wide, CHUNK=CHUNK if wide else halves.width, ROWS=ROWS, COLUMNS=columns,
        SLOTS=SLOTS, STAGES=STAGES, num_warps=WARPS,
    )  # fmt: skip
