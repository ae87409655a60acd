"""The first stage for few centres and features: all centres stay in registers.

A program goes through blocks of rows and prefetches the next ones.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.device_functions.fp16_scores import HALF_NORM_WIDTH, half_norm_units
from lloydia.backends.cuda.device_functions.run_state import (
    STOPPED,
    first_row,
    item_state,
    programs_each,
    wait_for_previous_kernel,
)
from lloydia.backends.cuda.dispatch import MAX_RESIDENT_CENTERS, PADDED
from lloydia.backends.cuda.matmul.fp16_centers import Fp16Centers
from lloydia.backends.cuda.matmul.packed_top_two import (
    RAISED,
    packed_top_two_of,
    slots_of,
)
from lloydia.backends.cuda.rows.fp16_frame import NUMBERS
from lloydia.backends.cuda.rows.fp16_rows import UNIT, Fp16Rows
from lloydia.backends.cuda.runtime.launching import ceil_div, launch, processors

__all__ = ["resident_scan"]

# Rows of a program, its warps, and programs on a multiprocessor by the most centres: the fastest
# measured on an H200 that keep everything in registers.
ROWS, WARPS, RESIDENT = 64, 4, {64: 8, 128: 4, MAX_RESIDENT_CENTERS: 3}
# Blocks of rows that are prefetched.
STAGES = 3


@triton.jit
def tiles_of(
    high_ptr, half_norm_ptr, WIDTH: tl.constexpr, COLUMNS: tl.constexpr, TILES: tl.constexpr
):  # fmt: skip
    """Return the centres and the half norms of all tiles."""
    f, part = tl.arange(0, WIDTH)[:, None], tl.arange(0, HALF_NORM_WIDTH)[:, None]
    centers = ()
    starts = ()
    for t in tl.static_range(TILES):
        j = t * COLUMNS + tl.arange(0, COLUMNS)[None, :]
        centers = centers + (tl.load(high_ptr + j * WIDTH + f),)
        starts = starts + (tl.load(half_norm_ptr + j * HALF_NORM_WIDTH + part),)
    return centers, starts


@triton.jit(do_not_specialize=["n", "raised"])
def resident_kernel(
    y_ptr, n, high_ptr, half_norm_ptr, numbers, found, run_state, raised,
    WIDTH: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, TILES: tl.constexpr,
    SLOTS: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Write one 64-bit integer for each row: its best score and column, and a bound of the others.

    :func:`packed_top_two.unpacked` reads it.

    Parameters
    ----------
    y_ptr : float16 (batch_size, n, WIDTH), IN
    n : int, IN
    high_ptr : float16 (batch_size, TILES COLUMNS, WIDTH), IN
    half_norm_ptr : float16 (batch_size, TILES COLUMNS, HALF_NORM_WIDTH), IN
    numbers : float64 (batch_size, NUMBERS), IN
    found : int64 (batch_size, n), OUT
    run_state : int32 (batch_size, SIZE), IN
    raised : int, IN
        RAISED.
    """
    # No early return: the loads of centres below are already in flight.
    wait_for_previous_kernel()
    stopped = tl.load(item_state(run_state) + STOPPED) != 0
    batch_item, begin = tl.program_id(2), first_row(n)
    y_ptr += begin * WIDTH
    found += begin
    high_ptr += batch_item * TILES * COLUMNS * WIDTH
    half_norm_ptr += batch_item * TILES * COLUMNS * HALF_NORM_WIDTH
    units = half_norm_units(tl.load(numbers + batch_item * NUMBERS + UNIT), ROWS)
    centers, starts = tiles_of(high_ptr, half_norm_ptr, WIDTH, COLUMNS, TILES)
    f, step = tl.arange(0, WIDTH)[None, :], tl.num_programs(0) * ROWS
    n = tl.where(stopped, 0, n)
    for skip in tl.range(tl.program_id(0) * ROWS, n, step, num_stages=STAGES):
        rows = skip + tl.arange(0, ROWS)
        mask = rows < n
        y_at = y_ptr + rows.to(tl.int64)[:, None] * WIDTH + f
        y = tl.load(y_at, mask=mask[:, None], other=0.0)
        tiles = ()
        for t in tl.static_range(TILES):
            tiles = tiles + (tl.dot(units, starts[t], tl.dot(y, centers[t])),)
        tl.store(found + rows, packed_top_two_of(tiles, raised, SLOTS), mask=mask)


def resident_scan(
    fp16_rows: Fp16Rows, centers: Fp16Centers, found: torch.Tensor, run_state: torch.Tensor
) -> None:
    """Queue the scan of all rows; `found` is an int64 tensor of shape (n,)."""
    rows, size = fp16_rows.rows, centers.size
    columns = size if size & (size - 1) == 0 else PADDED
    resident = next(programs for most, programs in RESIDENT.items() if size <= most)
    programs = programs_each(resident * processors(rows.device), rows.batch_size)
    launch(
        resident_kernel, (min(ceil_div(rows.n_samples, ROWS), programs), 1, rows.batch_size),
        fp16_rows.high, rows.n_samples, centers.high, centers.half_norm, fp16_rows.numbers,
        found, run_state, RAISED,
        WIDTH=fp16_rows.width, ROWS=ROWS, COLUMNS=columns, TILES=size // columns,
        SLOTS=slots_of(size), STAGES=STAGES, num_warps=WARPS, maxnreg=512 // resident // 8 * 8,
    )  # fmt: skip
