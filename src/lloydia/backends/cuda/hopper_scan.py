"""The first stage for few centres and features on Hopper: :mod:`resident_scan`, in Gluon.

The two kernels share what is done with scores, and find the same.  While the matrix unit adds to
float32 sums, all other arithmetic runs at half its rate on Hopper; so what counts is that of two
programs of a multiprocessor one multiplies while the other compares.  Programs of one warpgroup
that wait for all products of a block at once come to take such turns; what Triton makes of the
other kernel waits twice, and compares with its rows spread over more threads.
"""

from __future__ import annotations

import torch
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    warpgroup_mma,
    warpgroup_mma_wait,
)

from lloydia.backends.cuda.flow import HALT, first_row, own_flow, programs_each
from lloydia.backends.cuda.grid_least import THREADS, UNNAMED, of_rows, of_threads, with_name
from lloydia.backends.cuda.half_centers import HalfCenters
from lloydia.backends.cuda.half_frame import NUMBERS
from lloydia.backends.cuda.half_rows import UNIT, HalfRows
from lloydia.backends.cuda.half_scores import START_WIDTH
from lloydia.backends.cuda.launching import ceil_div, processors
from lloydia.backends.cuda.recording import launch

__all__ = ["hopper_kernel", "hopper_scan"]

# Names that Triton 3.6 has for what later ones call otherwise.
copy_async = getattr(async_copy, "async_load", None) or async_copy.async_copy_global_to_shared
barrier = getattr(gl, "barrier", None) or gl.thread_barrier

# Rows of a program: those of one warpgroup; blocks of them in its memory, mostly.
ROWS, WARPS, STAGES = gl.constexpr(64), 4, 3
# Programs of so many columns that registers leave room for on a multiprocessor.
RESIDENT = {64: 8, 128: 5, 256: 3}
# The memory of a multiprocessor, and what of it each program takes beside its own, in bytes.
MEMORY, OWN = 228 << 10, 1 << 10
START = gl.constexpr(START_WIDTH.value)
# Of a warpgroup's scores a thread holds two neighbouring columns of every eight, of two rows, 8
# apart: of four numbers a row, those of BOTH_ROWS.  ONE_ROW has two of one row in a thread instead.
BOTH_ROWS = gl.constexpr(
    gl.DistributedLinearLayout(
        reg_bases=[[8, 0]],
        lane_bases=[[0, 1], [0, 2], [1, 0], [2, 0], [4, 0]],
        warp_bases=[[16, 0], [32, 0]],
        block_bases=[],
        shape=[64, 4],
    )
)
ONE_ROW = gl.constexpr(
    gl.DistributedLinearLayout(
        reg_bases=[[0, 1]],
        lane_bases=[[8, 0], [0, 2], [1, 0], [2, 0], [4, 0]],
        warp_bases=[[16, 0], [32, 0]],
        block_bases=[],
        shape=[64, 4],
    )
)


@gluon.jit
def copy_table(source, target, layout: gl.constexpr):
    """Ask for a table, row by row."""
    row = gl.arange(0, target.shape[0], gl.SliceLayout(1, layout))
    f = gl.arange(0, target.shape[1], gl.SliceLayout(0, layout))
    copy_async(target, source + row[:, None] * target.shape[1] + f[None, :])


@gluon.jit
def copy_rows(source, target, first, n, layout: gl.constexpr):
    """Ask for the block of rows from `first` on, or the last one."""
    WIDTH: gl.constexpr = target.shape[1]
    row = gl.arange(0, ROWS, gl.SliceLayout(1, layout))
    f = gl.arange(0, WIDTH, gl.SliceLayout(0, layout))
    begin = source + gl.minimum(first, n - ROWS).to(gl.int64) * WIDTH
    copy_async(target, begin + (row[:, None] * WIDTH + f[None, :]))
    async_copy.commit_group()


@gluon.jit
def least_of(scores, unnamed):
    """Return :func:`grid_least.least_of`, of each row in two threads."""
    slot, cell, others = of_threads((scores,), unnamed)
    cell, others = gl.convert_layout(cell, BOTH_ROWS), gl.convert_layout(others, BOTH_ROWS)
    thread = gl.arange(0, THREADS, gl.SliceLayout(0, BOTH_ROWS))[None, :]
    others = with_name(others, cell * THREADS + thread)
    slot, others = gl.convert_layout(slot, ONE_ROW), gl.convert_layout(others, ONE_ROW)
    return of_rows(slot, others)


@gluon.jit(do_not_specialize=["n", "unnamed"])
def hopper_kernel(
    y_ptr, n, high_ptr, start_ptr, numbers, found, flow, unnamed,
    WIDTH: gl.constexpr, COLUMNS: gl.constexpr, STAGES: gl.constexpr,
):  # fmt: skip
    """As :func:`resident_scan.resident_kernel`, of one tile."""
    sums: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, COLUMNS, 16])
    operand: gl.constexpr = gl.DotOperandLayout(0, sums, 2)
    wide: gl.constexpr = gl.NVMMASharedLayout(2 * WIDTH, 16, 2)
    narrow: gl.constexpr = gl.NVMMASharedLayout(2 * START, 16, 2)
    # Of each thread 16 bytes.
    of_wide: gl.constexpr = gl.BlockedLayout([1, 8], [256 // WIDTH, WIDTH // 8], [4, 1], [1, 0])
    of_narrow: gl.constexpr = gl.BlockedLayout([1, 8], [256 // START, START // 8], [4, 1], [1, 0])
    halted = gl.load(own_flow(flow) + HALT) != 0
    member, begin = gl.program_id(2), first_row(n)
    y_ptr += begin * WIDTH
    found += begin
    y = gl.allocate_shared_memory(gl.float16, [STAGES, ROWS, WIDTH], wide)
    centers = gl.allocate_shared_memory(gl.float16, [COLUMNS, WIDTH], wide)
    starts = gl.allocate_shared_memory(gl.float16, [COLUMNS, START], narrow)
    copy_table(high_ptr + member * COLUMNS * WIDTH, centers, of_wide)
    copy_table(start_ptr + member * COLUMNS * START, starts, of_narrow)
    async_copy.commit_group()
    unit = gl.load(numbers + member * NUMBERS + UNIT).to(gl.float16)
    part = gl.arange(0, START, gl.SliceLayout(0, operand))[None, :]
    units = gl.where(part < 3, unit, gl.zeros((ROWS, START), gl.float16, operand))
    none = gl.zeros((ROWS, COLUMNS), gl.float32, sums)
    end = gl.where(halted, 0, n)
    first, step = gl.program_id(0) * ROWS, gl.num_programs(0) * ROWS
    for stage in gl.static_range(STAGES - 1):
        copy_rows(y_ptr, y.index(stage), first + stage * step, n, of_wide)
    here, coming = 0, STAGES - 1
    row = gl.arange(0, ROWS, gl.SliceLayout(1, ONE_ROW))
    for skip in range(first, end, step):
        # Of all threads, before the unit reads them; and all have read what is overwritten next.
        async_copy.wait_group(STAGES - 2)
        fence_async_shared()
        barrier()
        copy_rows(y_ptr, y.index(coming), skip + (STAGES - 1) * step, n, of_wide)
        scores = warpgroup_mma(
            y.index(here), centers.permute((1, 0)), none, use_acc=False, is_async=True
        )
        scores = warpgroup_mma(units, starts.permute((1, 0)), scores, is_async=True)
        scores = warpgroup_mma_wait(0, deps=[scores])
        gl.store(found + gl.minimum(skip, n - ROWS) + row, least_of(scores, unnamed))
        here = gl.where(here + 1 == STAGES, 0, here + 1)
        coming = gl.where(coming + 1 == STAGES, 0, coming + 1)


def tiling_of(width: int, columns: int) -> tuple[int, int]:
    """Return how many programs share a multiprocessor, and how many blocks of rows each has there.

    No more programs may have room: some multiprocessors would get more of them than others.
    """
    if (width, columns) == (64, 256):
        # Two take turns, which is faster; more blocks than they need leave no room for a third.
        return 2, 5
    taken = OWN + 2 * columns * (width + START.value) + 2 * ROWS.value * width * STAGES
    return min(RESIDENT[columns], MEMORY // taken), STAGES


def hopper_scan(
    halves: HalfRows,
    centers: HalfCenters,
    found: torch.Tensor,
    flow: torch.Tensor,
) -> None:
    """Queue it: see :func:`resident_scan.resident_scan`; with padding, centres are a power of 2."""
    rows, width, columns = halves.rows, halves.width, centers.size
    assert rows.n_samples >= ROWS.value  # The last block is a whole one.
    resident, stages = tiling_of(width, columns)
    programs = programs_each(resident * processors(rows.device), rows.members)
    launch(
        hopper_kernel, (min(ceil_div(rows.n_samples, ROWS.value), programs), 1, rows.members),
        halves.high, rows.n_samples, centers.high, centers.start, halves.numbers,
        found, flow, UNNAMED,
        WIDTH=width, COLUMNS=columns, STAGES=stages, num_warps=WARPS,
        # All there are, though it takes fewer: two of what is compiled without do not take turns.
        maxnreg=255 if resident == 2 else None,
    )  # fmt: skip
