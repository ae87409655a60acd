"""The first stage for few centres and features on Hopper: :mod:`resident_scan`, in Gluon.

Both kernels do the same with scores and give the same results.  A *group* is a warpgroup that takes
one block of rows at a time: it multiplies, then compares.  On Hopper, integer arithmetic takes
nearly twice as long while the matrix unit adds to float32 sums, and groups that use the matrix unit
at once slow each other down.  So where registers allow three groups only, these belong to one
program and take turns: one multiplies while the others compare.  All other work of a block happens
during a product: it prefetches rows, waits for the next ones, and writes the results of the block
before.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    warpgroup_mma,
    warpgroup_mma_wait,
)

from lloydia.backends.cuda.device_functions.fp16_scores import HALF_NORM_WIDTH
from lloydia.backends.cuda.device_functions.run_state import (
    STOPPED,
    first_row,
    item_state,
    programs_each,
    wait_for_previous_kernel,
)
from lloydia.backends.cuda.matmul.fp16_centers import Fp16Centers
from lloydia.backends.cuda.matmul.packed_top_two import (
    RAISED,
    THREADS,
    of_rows,
    of_threads,
    packed,
    slots_of,
    with_name,
)
from lloydia.backends.cuda.rows.fp16_frame import NUMBERS
from lloydia.backends.cuda.rows.fp16_rows import UNIT, Fp16Rows
from lloydia.backends.cuda.runtime.launching import ceil_div, launch, processors

__all__ = ["hopper_kernel", "hopper_scan"]

# Names of Triton 3.6 that later versions changed.
copy_async = getattr(async_copy, "async_load", None) or async_copy.async_copy_global_to_shared
barrier = getattr(gl, "barrier", None) or gl.thread_barrier

# Rows of a block, which are those of one warpgroup, and how many blocks a group's memory holds.
ROWS, WARPS, STAGES = gl.constexpr(64), 4, 3
# Programs of one group, by number of columns, for which a multiprocessor has registers; with more
# columns: the groups of the only program, their blocks in memory, and registers of a thread.
RESIDENT = {64: 8, 128: 5}
GROUPS, GROUP_STAGES, GROUP_REGISTERS = 3, 4, 168
# Shared memory of a multiprocessor, and what each program takes of it besides its own, in bytes.
MEMORY, OWN = 228 << 10, 1 << 10
START = gl.constexpr(HALF_NORM_WIDTH.value)
# Each thread holds two neighbouring columns of every eight of a warpgroup's scores, for two rows
# that are 8 apart; BOTH_ROWS has four numbers of each row.  ONE_ROW has two of one row instead.
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
    """Start the copy of a table, row by row."""
    row = gl.arange(0, target.shape[0], gl.SliceLayout(1, layout))
    f = gl.arange(0, target.shape[1], gl.SliceLayout(0, layout))
    copy_async(target, source + row[:, None] * target.shape[1] + f[None, :])


@gluon.jit
def copy_rows(source, target, first, n, layout: gl.constexpr):
    """Start the copy of the block of rows from `first` on, or of the last block."""
    WIDTH: gl.constexpr = target.shape[1]
    row = gl.arange(0, ROWS, gl.SliceLayout(1, layout))
    f = gl.arange(0, WIDTH, gl.SliceLayout(0, layout))
    begin = source + gl.minimum(first, n - ROWS).to(gl.int64) * WIDTH
    copy_async(target, begin + (row[:, None] * WIDTH + f[None, :]))
    async_copy.commit_group()


@gluon.jit
def arrived(PENDING: gl.constexpr):
    """Wait for all copies but the latest PENDING; all threads synchronise here.

    Afterwards the matrix unit may read the copied rows.
    """
    async_copy.wait_group(PENDING)
    fence_async_shared()
    barrier()


@gluon.jit
def write_packed(found, n, skip, staging, complete):
    """Write what the threads of a block of rows left in the staging buffer, if it is complete."""
    left = staging.load(ONE_ROW)
    row = gl.arange(0, ROWS, gl.SliceLayout(1, ONE_ROW))
    of_row = of_rows(left.to(gl.uint32), (left >> 32).to(gl.uint32))
    gl.store(found + gl.minimum(skip, n - ROWS) + row, of_row, mask=complete & (row >= 0))


@gluon.jit
def memory_of_group(WIDTH: gl.constexpr, STAGES: gl.constexpr):
    """Return shared memory for a group's rows and results, and the barrier of its turn."""
    wide: gl.constexpr = gl.NVMMASharedLayout(2 * WIDTH, 16, 2)
    plain: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [1, 0])
    y = gl.allocate_shared_memory(gl.float16, [STAGES, ROWS, WIDTH], wide)
    staging = gl.allocate_shared_memory(gl.int64, [ROWS, THREADS], plain)
    turn = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(turn, count=1)
    return y, staging, turn


@gluon.jit
def scan_blocks(
    y_ptr, found, n, end, step, start_unit, raised, centers, starts,
    first, y, staging, turn, next_turn, WAITS: gl.constexpr, SLOTS: gl.constexpr,
):  # fmt: skip
    """Scan the blocks of one group.

    Groups take turns.  WAITS is 0 for the first group, whose first turn does not wait, 1 for the
    others, and None for a group by itself.  Block i of a group comes after block i of the group
    before it; block i of the first group comes after block i - 1 of the last.  Groups run out of
    blocks in that order, so every turn that a group waits for is passed on, and no turn is passed
    on twice before it is taken.
    """
    STAGES: gl.constexpr = y.shape[0]
    WIDTH: gl.constexpr = y.shape[2]
    COLUMNS: gl.constexpr = centers.shape[0]
    sums: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, COLUMNS, 16])
    operand: gl.constexpr = gl.DotOperandLayout(0, sums, 2)
    # 16 bytes for each thread.
    of_wide: gl.constexpr = gl.BlockedLayout([1, 8], [256 // WIDTH, WIDTH // 8], [4, 1], [1, 0])
    part = gl.arange(0, START, gl.SliceLayout(0, operand))[None, :]
    units = gl.where(part < 3, start_unit, gl.zeros((ROWS, START), gl.float16, operand))
    none = gl.zeros((ROWS, COLUMNS), gl.float32, sums)
    thread = gl.arange(0, THREADS, gl.SliceLayout(0, BOTH_ROWS))[None, :].to(gl.uint32)
    for stage in gl.static_range(STAGES - 1):
        copy_rows(y_ptr, y.index(stage), first + stage * step, n, of_wide)
    here, coming, turns = 0, STAGES - 1, 0
    arrived(STAGES - 2)
    for skip in range(first, end, step):
        if WAITS is not None:
            # The phase of this block; before any arrival the first group does not wait.
            mbarrier.wait(turn, (turns + WAITS + 1) & 1)
            turns += 1
        scores = warpgroup_mma(
            y.index(here), centers.permute((1, 0)), none, use_acc=False, is_async=True
        )
        scores = warpgroup_mma(units, starts.permute((1, 0)), scores, is_async=True)
        # All threads synchronise here: the product of the block before, whose rows the copy
        # overwrites, is complete, and its results are written.
        arrived(STAGES - 3)
        copy_rows(y_ptr, y.index(coming), skip + (STAGES - 1) * step, n, of_wide)
        if WAITS is not None:
            # Products that other groups start from here on follow this one.
            mbarrier.arrive(next_turn)
        write_packed(found, n, skip - step, staging, skip != first)
        scores = warpgroup_mma_wait(0, deps=[scores])
        slot, cell, others = of_threads((scores,), raised, SLOTS)
        slot = gl.convert_layout(slot, BOTH_ROWS)
        cell, others = gl.convert_layout(cell, BOTH_ROWS), gl.convert_layout(others, BOTH_ROWS)
        staging.store(packed(slot, with_name(others, cell * THREADS + thread)))
        here = gl.where(here + 1 == STAGES, 0, here + 1)
        coming = gl.where(coming + 1 == STAGES, 0, coming + 1)
    arrived(0)
    last = first + (gl.cdiv(end - first, step) - 1) * step
    write_packed(found, n, last, staging, first < end)


@gluon.jit(do_not_specialize=["n", "raised"])
def hopper_kernel(
    y_ptr, n, high_ptr, half_norm_ptr, numbers, found, run_state, raised,
    WIDTH: gl.constexpr, COLUMNS: gl.constexpr, SLOTS: gl.constexpr, STAGES: gl.constexpr,
    GROUPS: gl.constexpr, REGISTERS: gl.constexpr,
):  # fmt: skip
    """Write what :func:`resident_scan.resident_kernel` does, for one tile of centres.

    The parameters are those of that kernel.
    """
    wide: gl.constexpr = gl.NVMMASharedLayout(2 * WIDTH, 16, 2)
    half_norm_layout: gl.constexpr = gl.NVMMASharedLayout(2 * START, 16, 2)
    of_wide: gl.constexpr = gl.BlockedLayout([1, 8], [256 // WIDTH, WIDTH // 8], [4, 1], [1, 0])
    half_norm_threads: gl.constexpr = gl.BlockedLayout(
        [1, 8], [256 // START, START // 8], [4, 1], [1, 0]
    )
    wait_for_previous_kernel()
    stopped = gl.load(item_state(run_state) + STOPPED) != 0
    batch_item, begin = gl.program_id(2), first_row(n)
    y_ptr += begin * WIDTH
    found += begin
    centers = gl.allocate_shared_memory(gl.float16, [COLUMNS, WIDTH], wide)
    starts = gl.allocate_shared_memory(gl.float16, [COLUMNS, START], half_norm_layout)
    copy_table(high_ptr + batch_item * COLUMNS * WIDTH, centers, of_wide)
    copy_table(half_norm_ptr + batch_item * COLUMNS * START, starts, half_norm_threads)
    async_copy.commit_group()
    start_unit = gl.load(numbers + batch_item * NUMBERS + UNIT).to(gl.float16)
    end = gl.where(stopped, 0, n)
    first, step = gl.program_id(0) * (GROUPS * ROWS), gl.num_programs(0) * (GROUPS * ROWS)
    y, staging, turn = memory_of_group(WIDTH, STAGES)
    if GROUPS == 1:
        scan_blocks(
            y_ptr, found, n, end, step, start_unit, raised, centers, starts,
            first, y, staging, turn, turn, None, SLOTS,
        )  # fmt: skip
    else:
        gl.static_assert(GROUPS == 3)
        y1, staging1, turn1 = memory_of_group(WIDTH, STAGES)
        y2, staging2, turn2 = memory_of_group(WIDTH, STAGES)
        arrived(0)
        # A group's arguments may not be tuples.
        gl.warp_specialize(
            [
                (scan_blocks, (
                    y_ptr, found, n, end, step, start_unit, raised, centers, starts,
                    first, y, staging, turn, turn1, 0, SLOTS,
                )),
                (scan_blocks, (
                    y_ptr, found, n, end, step, start_unit, raised, centers, starts,
                    first + ROWS, y1, staging1, turn1, turn2, 1, SLOTS,
                )),
                (scan_blocks, (
                    y_ptr, found, n, end, step, start_unit, raised, centers, starts,
                    first + 2 * ROWS, y2, staging2, turn2, turn, 1, SLOTS,
                )),
            ],
            [4, 4], [REGISTERS, REGISTERS],
        )  # fmt: skip


@dataclass(frozen=True)
class Tiling:
    """How the scan is tiled: programs on a multiprocessor, groups of each, blocks of a group."""

    resident: int
    groups: int
    stages: int
    registers: int | None

    @staticmethod
    def of(width: int, columns: int) -> Tiling:
        """Return the fastest tiling measured on an H200 for a width of rows and some columns.

        RESIDENT is the number of programs for which compiled kernels leave memory and registers:
        with room for more, some multiprocessors would get more programs than others.
        """
        if columns not in RESIDENT:
            return Tiling(1, GROUPS, GROUP_STAGES, GROUP_REGISTERS)
        taken = OWN + 2 * columns * (width + START.value)
        taken += ROWS.value * (2 * width * STAGES + 8 * THREADS.value)
        return Tiling(min(RESIDENT[columns], MEMORY // taken), 1, STAGES, None)


def hopper_scan(
    fp16_rows: Fp16Rows,
    centers: Fp16Centers,
    found: torch.Tensor,
    run_state: torch.Tensor,
) -> None:
    """Queue :func:`resident_scan.resident_scan` for k, with padding, that is a power of two."""
    rows, width, columns = fp16_rows.rows, fp16_rows.width, centers.size
    assert rows.n_samples >= ROWS.value  # The last block is complete.
    cut = Tiling.of(width, columns)
    programs = programs_each(cut.resident * processors(rows.device), rows.batch_size)
    needed = ceil_div(rows.n_samples, cut.groups * ROWS.value)
    launch(
        hopper_kernel, (min(needed, programs), 1, rows.batch_size),
        fp16_rows.high, rows.n_samples, centers.high, centers.half_norm, fp16_rows.numbers,
        found, run_state, RAISED,
        WIDTH=width, COLUMNS=columns, SLOTS=slots_of(columns), STAGES=cut.stages,
        GROUPS=cut.groups, REGISTERS=cut.registers, num_warps=WARPS, maxnreg=cut.registers,
    )  # fmt: skip
