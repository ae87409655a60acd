"""The first stage for few centres and features: scores, and the verdict on them, in one kernel.

A program keeps all centres and goes from block to block of rows.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.flow import HALT, first_row, own_flow, programs_each
from lloydia.backends.cuda.grid_least import COLUMNS, least_of_tile
from lloydia.backends.cuda.half_centers import HalfCenters
from lloydia.backends.cuda.half_frame import NUMBERS, RADIUS
from lloydia.backends.cuda.half_rows import SHIFT, UNIT, HalfRows
from lloydia.backends.cuda.half_scores import START_WIDTH, error_of_sums
from lloydia.backends.cuda.launching import ceil_div, processors
from lloydia.backends.cuda.limits import limit
from lloydia.backends.cuda.recording import launch
from lloydia.backends.cuda.row_lists import divide
from lloydia.exact.half_certificate import canonical_error

__all__ = ["is_whole", "whole_scan"]

# Features of a stored row, at most; rows of a block, and programs a multiprocessor.
WIDEST, ROWS, AT_A_TIME = 32, 128, 5


def is_whole(width: int, k: int) -> bool:
    """Return whether this stage is for so many centres, and features of a stored row."""
    return width <= WIDEST and k <= COLUMNS.value


@triton.jit
def rows_ahead(y_ptr, rows, n, WIDTH: tl.constexpr):
    """Load some rows, where there are any."""
    at = rows.to(tl.int64)[:, None] * WIDTH + tl.arange(0, WIDTH)[None, :]
    return tl.load(y_ptr + at, mask=(rows < n)[:, None], other=0.0)


@triton.jit(do_not_specialize=["n"])
def whole_kernel(
    y_ptr, n, high_ptr, start_ptr, numbers, norm_ptr, rest_ptr,
    center_norm, center_rest, center_lowered, usual, summed, canonical,
    least_ptr, found, labels, changed_rows, changed_old, doubts, flow,
    WIDTH: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Give rows that are certified their labels; list the others, with their least scores."""
    flow = own_flow(flow)
    if tl.load(flow + HALT) != 0:
        return
    member = tl.program_id(2)
    begin = first_row(n)
    y_ptr += begin * WIDTH
    changed_rows += begin
    changed_old += begin
    doubts += begin
    numbers += member * NUMBERS
    usual += member * 2
    shift = tl.load(numbers + SHIFT).to(tl.float32)
    radius = tl.load(numbers + RADIUS).to(tl.float32)
    usual_norm, usual_rest = tl.load(usual), tl.load(usual + 1)
    part = tl.arange(0, START_WIDTH)
    units = tl.where(part < 3, tl.load(numbers + UNIT), 0.0).to(tl.float16)
    units = tl.broadcast_to(units[None, :], (ROWS, START_WIDTH))
    # Among the centres of all members.
    j = member * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    centers = tl.load(high_ptr + j * WIDTH + tl.arange(0, WIDTH)[:, None])
    starts = tl.load(start_ptr + j * START_WIDTH + part[:, None])
    row, step = tl.arange(0, ROWS), tl.num_programs(0) * ROWS
    y_next = rows_ahead(y_ptr, tl.program_id(0) * ROWS + row, n, WIDTH)
    for skip in tl.range(tl.program_id(0) * ROWS, n, step, num_stages=1):
        rows = skip + row
        mask = rows < n
        y, y_next = y_next, rows_ahead(y_ptr, rows + step, n, WIDTH)
        scores = tl.dot(units, starts, tl.dot(y, centers))
        new, least, others = least_of_tile(scores)
        # Among all members' rows, whose numbers are 32-bit integers.
        rows += begin.to(tl.int32)
        at = member * COLUMNS + tl.maximum(new, 0)
        top = limit(
            least, tl.load(norm_ptr + rows, mask=mask, other=0.0),
            tl.load(rest_ptr + rows, mask=mask, other=0.0), tl.load(center_norm + at),
            tl.load(center_rest + at), tl.load(center_lowered + at),
            shift, radius, usual_norm, usual_rest, summed, canonical,
        )  # fmt: skip
        sure = (new >= 0) & (others > top)
        tl.store(least_ptr + rows, least, mask=mask & ~sure)
        tl.store(found + rows, new, mask=mask & ~sure)
        old = tl.load(labels + rows, mask=mask, other=0)
        divide(rows, old, new, mask, sure, labels, changed_rows, changed_old, doubts, flow)


def whole_scan(
    halves: HalfRows,
    centers: HalfCenters,
    least: torch.Tensor,
    found: torch.Tensor,
    labels: torch.Tensor,
    changed_rows: torch.Tensor,
    changed_old: torch.Tensor,
    doubts: torch.Tensor,
    flow: torch.Tensor,
) -> None:
    """Queue it; `least` and `found`, of the rows in doubt, get their least scores and whose."""
    rows = halves.rows
    programs = min(
        ceil_div(rows.n_samples, ROWS),
        programs_each(AT_A_TIME * processors(rows.device), rows.members),
    )
    launch(
        whole_kernel, (programs, 1, rows.members),
        halves.high, rows.n_samples, centers.high, centers.start, halves.numbers,
        halves.norm, halves.rest, centers.norm, centers.rest, centers.lowered, centers.usual,
        error_of_sums(halves.width), canonical_error(rows.n_features),
        least, found, labels, changed_rows, changed_old, doubts, flow,
        WIDTH=halves.width, ROWS=ROWS, num_warps=4, maxnreg=96,
    )  # fmt: skip
