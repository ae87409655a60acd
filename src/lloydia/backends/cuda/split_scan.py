"""The second stage for d > 8: rows in doubt again, by pairs of half-precision numbers.

A row and a centre are sums of two float16 numbers, about 22 bits, so a score takes three products a
feature; they are summed chunk by chunk, which keeps the error from growing with d.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.certain import certain
from lloydia.backends.cuda.flow import HALT, N_DOUBT, N_DOUBT2
from lloydia.backends.cuda.halves import CHUNK, START_WIDTH, HalfCenters, HalfRows
from lloydia.backends.cuda.launching import processors
from lloydia.backends.cuda.row_lists import append, relabel
from lloydia.backends.cuda.two_least import add_tile, begin, end
from lloydia.exact.half_certificate import canonical_error, pair_rest, summation

__all__ = ["split_scan"]

ROWS, SLOTS = 64, 32
MOST_COLUMNS = 128
# The part of what one float16 number leaves out that a second one leaves out, too.
LEFT_OUT = tl.constexpr(pair_rest(1.0, 0))
LOST = tl.constexpr(2.0**-50)
# Error of all products, relative to that of the large ones.
SMALL_PRODUCTS = 1.0 + 2.0**-7


@triton.jit(do_not_specialize=["n_tiles"])
def split_kernel(
    high_ptr, low_ptr, norm_ptr, rest_ptr, b_high_ptr, b_low_ptr, start_ptr, n_tiles, maxima,
    shift, radius, unit, summed, canonical, smallest,
    doubts, doubts2, labels, changed_rows, changed_old, flow,
    WIDTH: tl.constexpr, CHUNK: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
    SLOTS: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Settle the rows listed in `doubts` where pairs are enough; list the others."""
    if tl.load(flow + HALT) != 0:
        return
    n_listed = tl.load(flow + N_DOUBT)
    largest = tl.load(maxima)
    low_largest = tl.load(maxima + 3)
    residual = low_largest * LEFT_OUT + smallest + largest * LOST
    f = tl.arange(0, CHUNK)
    column = tl.arange(0, COLUMNS)
    part = tl.arange(0, START_WIDTH)
    units = tl.where(part < 3, unit, 0.0).to(tl.float16)
    units = tl.broadcast_to(units[None, :], (ROWS, START_WIDTH))
    for block in range(tl.program_id(0), tl.cdiv(n_listed, ROWS), tl.num_programs(0)):
        position = block * ROWS + tl.arange(0, ROWS)
        mask = position < n_listed
        rows = tl.load(doubts + position, mask=mask, other=0)
        of_row = rows.to(tl.int64)[:, None] * WIDTH + f[None, :]
        slots, first, second, tile = begin(ROWS, COLUMNS // SLOTS, SLOTS)
        for t in range(n_tiles):
            j = (t * COLUMNS + column).to(tl.int64)
            of_center = j[None, :] * WIDTH + f[:, None]
            starts = tl.load(start_ptr + j[None, :] * START_WIDTH + part[:, None])
            scores = tl.zeros((ROWS, COLUMNS), tl.float32)
            for skip in tl.range(0, WIDTH, CHUNK, num_stages=STAGES):
                high = tl.load(high_ptr + of_row + skip)
                low = tl.load(low_ptr + of_row + skip)
                b_high = tl.load(b_high_ptr + of_center + skip)
                b_low = tl.load(b_low_ptr + of_center + skip)
                # Chained, hence not fused with `scores`.
                scores += tl.dot(high, b_high, tl.dot(high, b_low, tl.dot(low, b_high)))
            scores = tl.dot(units, starts, scores)
            slots, first, second, tile = add_tile(
                slots, first, second, tile, scores, t, COLUMNS // SLOTS
            )
        least, rival, label = end(slots, first, second, tile)
        rest = tl.load(rest_ptr + rows)
        norm = tl.load(norm_ptr + rows) + rest
        sure = certain(
            least, rival, norm, rest * LEFT_OUT + smallest + norm * LOST,
            shift, radius, largest, residual, tl.load(maxima + 2), summed, canonical,
            1.001 * rest * low_largest,
        )  # fmt: skip
        relabel(rows, label, mask & sure, labels, changed_rows, changed_old, flow)
        append(rows, mask & ~sure, doubts2, flow + N_DOUBT2)


def split_scan(
    halves: HalfRows,
    centers: HalfCenters,
    doubts: torch.Tensor,
    doubts2: torch.Tensor,
    labels: torch.Tensor,
    changed_rows: torch.Tensor,
    changed_old: torch.Tensor,
    flow: torch.Tensor,
) -> None:
    """Queue the second stage: labels of the rows in `doubts`, or their listing in `doubts2`."""
    width = halves.width
    chunk = min(width, CHUNK)
    columns = min(centers.tile, MOST_COLUMNS)
    split_kernel[(2 * processors(halves.high.device),)](
        halves.high, halves.low, halves.norm, halves.rest,
        centers.high, centers.low, centers.pair_start, centers.size // columns, centers.maxima,
        halves.shift, halves.radius, halves.unit,
        summation(width, chunk) * SMALL_PRODUCTS, canonical_error(width), pair_rest(0.0, width),
        doubts, doubts2, labels, changed_rows, changed_old, flow,
        WIDTH=width, CHUNK=chunk, ROWS=ROWS, COLUMNS=columns, SLOTS=SLOTS, STAGES=2, num_warps=4,
    )  # fmt: skip
