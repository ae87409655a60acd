r"""Cluster sums of the rows that changed, by tables in shared memory.

If a table of all clusters' sums of some columns fits in a multiprocessor, rows need not be sorted:
a program adds its share of the rows to a table of its own, and then the table to global memory.  A
sum has two words, and the lower word's carry goes to the upper one, so that a table holds the sums
modulo :math:`2^{64}`, whatever the order.  Further limbs, which are mostly 0 for float32 rows, are
added directly to global memory.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.device_functions.lane_sums import shifts_of
from lloydia.backends.cuda.device_functions.ptx.limb_overflow import (
    add_overflow,
    overflow_operands,
    overflow_ptx,
)
from lloydia.backends.cuda.device_functions.ptx.shared_table import (
    add,
    entry,
    operands,
    own_table,
    read,
    read_long,
    reserve,
    update_long,
    update_ptx,
    write,
)
from lloydia.backends.cuda.device_functions.run_state import (
    N_CHANGED,
    STOPPED,
    first_row,
    item_state,
    programs_each,
    wait_for_previous_kernel,
)
from lloydia.backends.cuda.dispatch import Kernels, Stage, Work, chosen
from lloydia.backends.cuda.protocols import LabelChanges, WholeRows
from lloydia.backends.cuda.rows.fixed_point_grid import FixedPointGrid
from lloydia.backends.cuda.runtime.launching import EXACT, INTERPRETED, ceil_div, launch, processors
from lloydia.backends.cuda.update.bank_swizzle import bank_swizzled, places_of
from lloydia.backends.cuda.update.table_layout import WORDS, Table, Tiling

__all__ = ["has_table", "interpreter_table", "queue_table"]

# The number of changed rows for which one more program pays.
WORTH = tl.constexpr(256)


def has_table(rows: WholeRows, k: int) -> bool:
    """Return whether tables of k clusters add up these rows; weighted rows have none."""
    work = replace(Work.over(rows, k), aligned=rows.X.data_ptr() % 16 == 0)
    return chosen(Stage.SUMS, work).kernels is Kernels.TABLES


def has_vectors(X: torch.Tensor) -> bool:
    """Return whether Triton knows that rows begin at multiples of 16 bytes."""
    return X.shape[-1] % 16 == 0 and X.data_ptr() % 16 == 0


def interpreter_table(device: torch.device) -> torch.Tensor | None:
    """Return the table of the interpreter, which has no shared memory; None on a GPU."""
    return torch.empty(WORDS, dtype=torch.int32, device=device) if INTERPRETED else None


@triton.jit
def empty_table(table, words, THREADS: tl.constexpr):
    """Empty the table."""
    for first in range(0, words, THREADS):
        at = first + tl.arange(0, THREADS)
        write(table, tl.minimum(at, words - 1), tl.zeros((THREADS,), tl.int32))
    tl.debug_barrier()


@triton.jit
def rows_of(tile, changed_rows, n_changed, ROWS: tl.constexpr):
    """Return the rows of a tile, 0 where there is none.

    Tiles up to three steps of the loop past the last still have 32-bit numbers: run_kinds.MAX_ROWS
    leaves room.
    """
    at = tile * ROWS + tl.arange(0, ROWS)
    return tl.load(changed_rows + at, mask=at < n_changed, other=0)


@triton.jit
def load_tile(X, labels, row, tile, changed_old, n_changed, d, f, k, ROWS: tl.constexpr):
    """Return the clusters that a tile's rows join (or k) and leave, and the features.

    A row that was in no cluster leaves -1.
    """
    at = tile * ROWS + tl.arange(0, ROWS)
    there = at < n_changed
    off = tl.load(changed_old + at, mask=there, other=-1)
    to = tl.load(labels + row, mask=there, other=k)
    at = row.to(tl.int64)[:, None] * d + f[None, :]
    return to, off, tl.load(X + at, mask=there[:, None] & (f < d)[None, :], other=0.0)


@triton.jit
def move(
    p, to, off, f, shifts, bits, places, k, sums, m, limb_size,
    STRIDE: tl.constexpr, SIZE: tl.constexpr, TABLE_LIMBS: tl.constexpr, LIMBS: tl.constexpr,
    NUMBERS: tl.constexpr, UPDATE_PTX: tl.constexpr, OPERANDS: tl.constexpr,
    OVERFLOW_PTX: tl.constexpr, OVERFLOW_OPERANDS: tl.constexpr,
):  # fmt: skip
    """Add numbers to sums of the clusters that rows join, and subtract them from those they leave.

    Numbers p, and their columns f, have shape (rows, columns).  The table has SIZE sums for each
    limb, STRIDE for each cluster; `places` are the entries of cluster 0 for these numbers; `sums`
    are those in global memory, of limb 0, m for each cluster.
    """
    # A row that was in no cluster is subtracted from the spare one, which is never read.
    left = tl.where(off < 0, k, off)[:, None]
    to, off = to[:, None], off[:, None]
    for limb in tl.static_range(TABLE_LIMBS):
        # See :mod:`lloydia.backends.cuda.device_functions.lane_sums`.
        shifted = p + shifts[limb]
        v = shifted.to(tl.int64, bitcast=True) - shifts[limb].to(tl.int64, bitcast=True)
        p = p - (shifted - shifts[limb])
        at = 2 * limb * SIZE
        update_long(
            places, to * STRIDE + at, left * STRIDE + at, v, off, SIZE, NUMBERS, UPDATE_PTX,
            OPERANDS
        )  # fmt: skip
    if TABLE_LIMBS < LIMBS:
        add_overflow(
            p, to, off, f, shifts[TABLE_LIMBS - 1], bits, sums + TABLE_LIMBS * limb_size, m,
            limb_size, LIMBS - TABLE_LIMBS, NUMBERS, OVERFLOW_PTX, OVERFLOW_OPERANDS,
        )  # fmt: skip


@triton.jit
def count(
    table, counts, labels, changed_rows, changed_old, n_changed, program, programs,
    ROWS_PER_STEP: tl.constexpr,
):  # fmt: skip
    """Count the rows that clusters gain and lose, in this program's share of the list.

    Numbers up to one step of all programs past the last row fit in 32 bits: run_kinds.MAX_ROWS
    leaves room.
    """
    lane = tl.arange(0, ROWS_PER_STEP)
    one = tl.full((ROWS_PER_STEP,), 1, tl.int32)
    for first in range(program * ROWS_PER_STEP, n_changed, programs * ROWS_PER_STEP):
        at = first + lane
        there = at < n_changed
        row = tl.load(changed_rows + at, mask=there, other=0)
        old = tl.load(changed_old + at, mask=there, other=-1)
        new = tl.load(labels + row, mask=there, other=-1)
        add(table, counts + new, one, new >= 0)
        add(table, counts + old, -one, old >= 0)


@triton.jit
def flush(
    table, sums, k, d, first, bits, limb_size,
    COLUMNS: tl.constexpr, COPIES: tl.constexpr, SIZE: tl.constexpr, TABLE_LIMBS: tl.constexpr,
    THREADS: tl.constexpr,
):  # fmt: skip
    """Add the table, whose columns begin at `first`, to the sums, and the row counts to weights."""
    tl.debug_barrier()
    for begin in range(0, k * COLUMNS, THREADS):
        cell = begin + tl.arange(0, THREADS)
        j, column = cell // COLUMNS, cell % COLUMNS
        f = first + column
        real = (cell < k * COLUMNS) & (f < d)
        at = tl.where(real, j * (COLUMNS * COPIES) + column, 0)
        to = sums + j.to(tl.int64) * (d + 1) + f
        for limb in tl.static_range(TABLE_LIMBS):
            total = tl.zeros((THREADS,), tl.int64)
            for copy in tl.static_range(COPIES):
                total += read_long(table, at + (2 * limb * SIZE + copy * COLUMNS), SIZE)
            tl.atomic_add(to + limb * limb_size, total, mask=real & (total != 0), sem="relaxed")
    for begin in range(0, k, THREADS):
        j = begin + tl.arange(0, THREADS)
        weight = read(table, 2 * TABLE_LIMBS * SIZE + tl.where(j < k, j, 0)).to(tl.int64) << bits
        to = sums + j.to(tl.int64) * (d + 1) + d
        tl.atomic_add(to, weight, mask=(j < k) & (weight != 0), sem="relaxed")


@triton.jit(do_not_specialize=["n", "k", "bits"])
def table_kernel(
    X, n, d, fixed_point_grid, labels, changed_rows, changed_old, run_state, sums, k, bits, memory,
    THREADS: tl.constexpr, NUMBERS: tl.constexpr, PREFETCH_DEPTH: tl.constexpr, LIMBS: tl.constexpr,
    TABLE_LIMBS: tl.constexpr, COLUMNS: tl.constexpr, EACH: tl.constexpr, COPIES: tl.constexpr,
    SIZE: tl.constexpr, RESERVE: tl.constexpr, UPDATE_PTX: tl.constexpr, OPERANDS: tl.constexpr,
    OVERFLOW_PTX: tl.constexpr, OVERFLOW_OPERANDS: tl.constexpr,
):  # fmt: skip
    """Move the listed rows between sums; a program without rows returns.

    `memory` is the table of the interpreter.
    """
    ROWS: tl.constexpr = THREADS * NUMBERS // COLUMNS
    table = own_table(memory, RESERVE)
    # The previous kernel may still be running; shared memory belongs to this program alone, so it
    # may be written before wait_for_previous_kernel.
    empty_table(table, 2 * TABLE_LIMBS * SIZE + k, THREADS)
    wait_for_previous_kernel()
    run_state = item_state(run_state)
    stopped, n_changed = tl.load(run_state + STOPPED), tl.load(run_state + N_CHANGED)
    program = tl.program_id(0)
    programs = tl.minimum(tl.num_programs(0), tl.cdiv(n_changed, WORTH))
    if (stopped != 0) | (program >= programs):
        return
    batch_item = tl.program_id(2).to(tl.int64)
    # The listed numbers count the rows of all items.
    changed_rows += first_row(n)
    changed_old += first_row(n)
    m = d + 1
    fixed_point_grid += batch_item * 3 * m
    sums += batch_item * LIMBS * k * m
    limb_size = k.to(tl.int64) * m
    first = tl.program_id(1) * COLUMNS
    column = tl.arange(0, COLUMNS)
    f = first + column
    in_tile = tl.arange(0, ROWS)[:, None]
    added, place = places_of(in_tile, COLUMNS, EACH, COPIES)
    places = entry(table, place)
    scale = tl.load(fixed_point_grid + f, mask=f < d, other=1.0)[None, :]
    quantum = tl.load(fixed_point_grid + m + f, mask=f < d, other=1.0)[None, :]
    double: tl.constexpr = X.dtype.element_ty == tl.float64
    kind: tl.constexpr = tl.float64 if double else tl.float32
    if not double:
        # Float32 rows are not scaled: none is so small that its limbs would underflow.
        quantum = quantum / scale
    else:
        scale = bank_swizzled(tl.broadcast_to(scale, (ROWS, COLUMNS)), in_tile, EACH)
    quantum = bank_swizzled(tl.broadcast_to(quantum, (ROWS, COLUMNS)), in_tile, EACH)
    shifts = shifts_of(quantum, bits, TABLE_LIMBS)
    # Row numbers are loaded two steps of the loop ahead, features one step ahead.  A step adds
    # PREFETCH_DEPTH tiles; the loads after a tile go to the registers that the tile had, because
    # moving them from other registers would wait for them.
    first_rows = ()
    next_rows = ()
    for i in tl.static_range(PREFETCH_DEPTH):
        tile = program + i * programs
        first_rows = first_rows + (rows_of(tile, changed_rows, n_changed, ROWS),)
        after = tile + PREFETCH_DEPTH * programs
        next_rows = next_rows + (rows_of(after, changed_rows, n_changed, ROWS),)
    loaded = ()
    for i in tl.static_range(PREFETCH_DEPTH):
        tile = program + i * programs
        loaded = loaded + (
            load_tile(X, labels, first_rows[i], tile, changed_old, n_changed, d, f, k, ROWS),
        )
    # The programs of all columns share this, while their first rows are in flight; a thread waits
    # once for two rows.
    count(
        table, 2 * TABLE_LIMBS * SIZE, labels, changed_rows, changed_old, n_changed,
        tl.program_id(1) * programs + program, tl.num_programs(1) * programs, 2 * THREADS,
    )  # fmt: skip
    for first_tile in tl.range(
        program, tl.cdiv(n_changed, ROWS), PREFETCH_DEPTH * programs, num_stages=1
    ):
        coming_rows = ()
        coming = ()
        for i in tl.static_range(PREFETCH_DEPTH):
            tile = first_tile + i * programs
            to, off, x = loaded[i]
            p = bank_swizzled(x, in_tile, EACH).to(kind).to(tl.float64)
            if double:
                p *= scale
            if tile * ROWS < n_changed:
                move(
                    p, to, off, first + added, shifts, bits, places, k, sums, m, limb_size,
                    COLUMNS * COPIES, SIZE, TABLE_LIMBS, LIMBS, NUMBERS, UPDATE_PTX, OPERANDS,
                    OVERFLOW_PTX, OVERFLOW_OPERANDS,
                )  # fmt: skip
            # Into the registers that are free now.
            after = tile + PREFETCH_DEPTH * programs
            coming = coming + (
                load_tile(X, labels, next_rows[i], after, changed_old, n_changed, d, f, k, ROWS),
            )
            coming_rows = coming_rows + (
                rows_of(after + PREFETCH_DEPTH * programs, changed_rows, n_changed, ROWS),
            )
        next_rows, loaded = coming_rows, coming
    flush(table, sums, k, d, first, bits, limb_size, COLUMNS, COPIES, SIZE, TABLE_LIMBS, THREADS)


def options_of(table: Table, cut: Tiling, n_limbs: int) -> dict[str, Any]:
    """Return the compile-time constants and launch options of the kernel."""
    table_limbs = min(table.table_limbs, n_limbs)
    return {
        "THREADS": cut.threads, "NUMBERS": cut.numbers, "PREFETCH_DEPTH": cut.prefetch_depth,
        "LIMBS": n_limbs, "TABLE_LIMBS": table_limbs, "COLUMNS": table.columns, "EACH": table.each,
        "COPIES": table.copies, "SIZE": table.size, "RESERVE": reserve(table.words),
        "UPDATE_PTX": update_ptx(cut.numbers, table.size), "OPERANDS": operands(5, cut.numbers),
        "OVERFLOW_PTX": overflow_ptx(n_limbs - table_limbs, cut.numbers),
        "OVERFLOW_OPERANDS": overflow_operands(cut.numbers), "num_warps": cut.threads // 32,
        "maxnreg": cut.registers, **EXACT,
    }  # fmt: skip


def queue_table(
    X: torch.Tensor, fixed_point_grid: FixedPointGrid, changes: LabelChanges, sums: torch.Tensor,
    memory: torch.Tensor | None,
) -> None:  # fmt: skip
    """Queue the moves of listed rows between sums, where :func:`has_table` allows it.

    Parameters
    ----------
    X : tensor of shape (n, d), or (batch_size, n, d) for a batch, IN
    fixed_point_grid : FixedPointGrid
    changes : LabelChanges, IN
    sums : int64 tensor of shape (batch_size, n_limbs, k, d + 1), IN and OUT
    memory : int32 tensor, or None
        What :func:`interpreter_table` returned.
    """
    batch_size, n_limbs, k, m = sums.shape
    n, d, itemsize = X.shape[-2], m - 1, X.element_size()
    vectors = has_vectors(X)
    table, cut = Table.of(k, itemsize, vectors), Tiling.choose(itemsize, vectors)
    assert table is not None
    blocks = ceil_div(d, table.columns)
    # A single data set gets no more programs than fit: further ones would start after these.
    most = programs_each(max(1, cut.resident * processors(X.device) // blocks), batch_size)
    launch(
        table_kernel, (min(most, ceil_div(n, WORTH.value)), blocks, batch_size),
        X, n, d, fixed_point_grid.columns, *changes, sums, k,
        fixed_point_grid.grid.bits, memory, shared=table.shared(cut.resident),
        **options_of(table, cut, n_limbs),
    )  # fmt: skip
