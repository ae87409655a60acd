"""The first stage for few centres and features: all centres stay in a multiprocessor.

A program goes from block to block of rows, the next of which are on their way.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from lloydia.backends.cuda import grid_least
from lloydia.backends.cuda.flow import HALT, first_row, own_flow, programs_each
from lloydia.backends.cuda.grid_least import MOST_COLUMNS
from lloydia.backends.cuda.half_centers import HalfCenters
from lloydia.backends.cuda.half_frame import NUMBERS
from lloydia.backends.cuda.half_rows import UNIT, HalfRows
from lloydia.backends.cuda.half_scores import START_WIDTH
from lloydia.backends.cuda.launching import ceil_div, processors
from lloydia.backends.cuda.recording import launch

__all__ = ["PADDED", "is_resident", "resident_scan"]

# Features of a stored row, at most; what the number of centres is padded to a multiple of.
WIDEST, PADDED = 64, 64
# Rows of a program, its warps, and programs a multiprocessor, for PADDED centres and for more:
# the fastest measured on an H200 that keep all in registers.
FEW, MORE = (64, 4, 8), (128, 8, 2)
# Blocks of rows that are on their way.
STAGES = 3


def is_resident(width: int, k: int) -> bool:
    """Return whether this stage is for so many centres, and features of a stored row."""
    return width <= WIDEST and k <= MOST_COLUMNS


@triton.jit
def tiles_of(
    high_ptr, start_ptr, WIDTH: tl.constexpr, COLUMNS: tl.constexpr, TILES: tl.constexpr
):  # fmt: skip
    """Return the centres and the starts of all tiles."""
    f, part = tl.arange(0, WIDTH)[:, None], tl.arange(0, START_WIDTH)[:, None]
    centers = ()
    starts = ()
    for t in tl.static_range(TILES):
        j = t * COLUMNS + tl.arange(0, COLUMNS)[None, :]
        centers = centers + (tl.load(high_ptr + j * WIDTH + f),)
        starts = starts + (tl.load(start_ptr + j * START_WIDTH + part),)
    return centers, starts


@triton.jit(do_not_specialize=["n"])
def resident_kernel(
    y_ptr, n, high_ptr, start_ptr, numbers, least_ptr, rival_ptr, found, flow,
    WIDTH: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, TILES: tl.constexpr,
    STAGES: tl.constexpr,
):  # fmt: skip
    """Write a column of each row, a bound of its score, and a bound of all others."""
    # Not a return: centres are on their way while this is waited for.
    halted = tl.load(own_flow(flow) + HALT) != 0
    member, begin = tl.program_id(2), first_row(n)
    y_ptr += begin * WIDTH
    least_ptr += begin
    rival_ptr += begin
    found += begin
    high_ptr += member * TILES * COLUMNS * WIDTH
    start_ptr += member * TILES * COLUMNS * START_WIDTH
    part = tl.arange(0, START_WIDTH)
    units = tl.where(part < 3, tl.load(numbers + member * NUMBERS + UNIT), 0.0).to(tl.float16)
    units = tl.broadcast_to(units[None, :], (ROWS, START_WIDTH))
    centers, starts = tiles_of(high_ptr, start_ptr, WIDTH, COLUMNS, TILES)
    f, step = tl.arange(0, WIDTH)[None, :], tl.num_programs(0) * ROWS
    n = tl.where(halted, 0, n)
    for skip in tl.range(tl.program_id(0) * ROWS, n, step, num_stages=STAGES):
        rows = skip + tl.arange(0, ROWS)
        mask = rows < n
        y_at = y_ptr + rows.to(tl.int64)[:, None] * WIDTH + f
        y = tl.load(y_at, mask=mask[:, None], other=0.0)
        slots, first, second = grid_least.begin(ROWS)
        for t in tl.static_range(TILES):
            scores = tl.dot(units, starts[t], tl.dot(y, centers[t]))
            slots, first, second = grid_least.add_tile(slots, first, second, scores, t)
        column, least, others = grid_least.end(slots, first, second)
        tl.store(least_ptr + rows, least, mask=mask)
        tl.store(rival_ptr + rows, others, mask=mask)
        tl.store(found + rows, column, mask=mask)


def resident_scan(
    halves: HalfRows,
    centers: HalfCenters,
    least: torch.Tensor,
    rival: torch.Tensor,
    found: torch.Tensor,
    flow: torch.Tensor,
) -> None:
    """Queue it."""
    rows = halves.rows
    block, warps, resident = FEW if centers.size == PADDED else MORE
    # Half as many products, twice as wide: faster where both are the most.
    columns = 2 * PADDED if centers.size == MOST_COLUMNS and halves.width == WIDEST else PADDED
    programs = programs_each(resident * processors(rows.device), rows.members)
    launch(
        resident_kernel, (min(ceil_div(rows.n_samples, block), programs), 1, rows.members),
        halves.high, rows.n_samples, centers.high, centers.start, halves.numbers,
        least, rival, found, flow,
        WIDTH=halves.width, ROWS=block, COLUMNS=columns, TILES=centers.size // columns,
        STAGES=STAGES, num_warps=warps, maxnreg=65536 // (32 * warps * resident),
    )  # fmt: skip
