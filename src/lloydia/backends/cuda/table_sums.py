r"""Rows that changed move from cluster to cluster: their sums, by tables in shared memory.

Where a table of all clusters' sums of some columns has room in a multiprocessor, rows need not be
sorted: a program adds those of its share up in a table of its own, and then the table to memory.  A
sum takes two words, of which the lower one's carry goes to the upper one, so a table holds what
memory would, modulo :math:`2^{64}`, whatever the order.  What later limbs hold, which is seldom
anything of float32 rows, is added to memory at once.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.flow import HALT, N_CHANGED, first_row, own_flow, programs_each
from lloydia.backends.cuda.lane_sums import shifts_of
from lloydia.backends.cuda.launching import COMPILED, EXACT, INTERPRETED, ceil_div, processors
from lloydia.backends.cuda.recording import launch
from lloydia.backends.cuda.shared_table import (
    add,
    add_long,
    own_table,
    read,
    read_long,
    reserve,
    take_long,
    write,
)
from lloydia.backends.cuda.sums import Lattice

__all__ = ["has_table", "queue_table", "table_memory"]

# Warps of a program; rows of a tile, and its columns.
WARPS, ROWS, COLUMNS = 8, tl.constexpr(64), tl.constexpr(16)
# Programs a multiprocessor, registers that leave room for as many, and rows that one is worth.
RESIDENT, REGISTERS, WORTH = 3, 80, tl.constexpr(256)
# Words of shared memory, of which a program may have 48 KiB, that leave Triton some; tables take
# multiples of so many, for kernels to be few.
WORDS, STEP = 11520, 1024
# Features, at most: of more, sorting is little beside adding.
TABLE_FEATURES = 256
# Copies of the sums of few clusters: as many as a warp has rows at most, which then never meet.
COPIES = 8
# Entries that are looked at together, one a thread.  Were there fewer, or fewer numbers in a tile,
# several threads would have the same one, and each would add it.
CELLS = tl.constexpr(32 * WARPS)
assert ROWS.value * COLUMNS.value >= CELLS.value
# Rows that are counted together: several a thread, which are waited for together.
COUNTED = tl.constexpr(2 * CELLS.value)


class Table(NamedTuple):
    """What a program's table has for clusters, and for rows that are not there.

    Attributes
    ----------
    held : int
        Limbs: those that are mostly not 0.
    each : int
        Columns of a row that come to a thread.
    pitch : int
        Words from the sums of one copy to the next, so that copies begin in different banks.
    copies : int
        Of the sums of each cluster.
    words : int
        All that is reserved.
    """

    held: int
    each: int
    pitch: int
    copies: int
    words: int

    @staticmethod
    def of(k: int, itemsize: int) -> Table | None:
        """Return that of k clusters of rows of a type, None if there is no room."""
        held, each = (2, 2) if itemsize == 8 else (1, 4)
        pitch = COLUMNS.value + COLUMNS.value // each
        for copies in (COPIES, 1):
            # Two words for a sum, and one that counts rows.  One more cluster than there are: rows
            # that are not there would all add their zeros to one that is busy.
            words = (k + 1) * (2 * held * pitch * copies + 1)
            if words <= WORDS:
                reserved = min(WORDS, ceil_div(words, STEP) * STEP)
                return Table(held, each, pitch, copies, reserved)
        return None


def has_table(X: torch.Tensor, k: int, weights: torch.Tensor | None) -> bool:
    """Return whether rows, without weights, are added up by tables of k clusters."""
    few = X.shape[-1] <= TABLE_FEATURES and weights is None
    return few and Table.of(k, X.element_size()) is not None


def table_memory(device: torch.device) -> torch.Tensor | None:
    """Return what any table is in where there is no shared memory: that is in the interpreter."""
    return torch.empty(WORDS, dtype=torch.int32, device=device) if INTERPRETED else None


@triton.jit
def empty_table(table, words):
    """Empty the table."""
    for first in range(0, words, CELLS):
        at = first + tl.arange(0, CELLS)
        write(table, tl.minimum(at, words - 1), tl.zeros((CELLS,), tl.int32))
    tl.debug_barrier()


@triton.jit
def place_of(column, EACH: tl.constexpr):
    """Return where a column is among a cluster's.

    Columns that different threads, of EACH, add at the same moment lie side by side: in different
    banks.
    """
    return column % EACH * (COLUMNS // EACH) + column // EACH


@triton.jit
def names(tile, changed_rows, changed_old, n_changed):
    """Return a tile's rows, the clusters that they leave, -1 where none is, and which are there."""
    at = tile * ROWS + tl.arange(0, ROWS)
    there = at < n_changed
    row = tl.load(changed_rows + at, mask=there, other=0)
    return row, tl.load(changed_old + at, mask=there, other=-1), there


@triton.jit
def values(X, labels, found, d, f, k):
    """Return the labels of rows that `names` found, k where none is, and features of them."""
    row, _, there = found
    at = row.to(tl.int64)[:, None] * d + f[None, :]
    x = tl.load(X + at, mask=there[:, None] & (f < d)[None, :], other=0.0)
    return tl.load(labels + row, mask=there, other=k), x


# Places are looked for only where there is something to add, which is seldom.
ADD_SELDOM = tl.constexpr(
    """{
    .reg .pred none;
    .reg .b64 at, taken;
    setp.eq.s64 none, $5, 0;
    @none bra DONE;
    mad.wide.s32 at, $2, $4, $1;
    red.relaxed.gpu.global.add.u64 [at], $5;
    setp.lt.s32 none, $3, 0;
    @none bra DONE;
    mad.wide.s32 at, $3, $4, $1;
    neg.s64 taken, $5;
    red.relaxed.gpu.global.add.u64 [at], taken;
    DONE:
    mov.b32 $0, 0;
    }"""
)


@triton.jit
def add_seldom(sums, to, off, m, v):
    """Add integers, most of which are 0, to sums in memory, and take them from others.

    In memory clusters have m sums; `off` is negative where there is none to take from.
    """
    if COMPILED:
        tl.inline_asm_elementwise(
            ADD_SELDOM, "=r,l,r,r,r,l", [sums.to(tl.int64), to, off, 8 * m, v],
            dtype=tl.int32, is_pure=False, pack=1,
        )  # fmt: skip
    else:
        tl.atomic_add(sums + to.to(tl.int64) * m, v, mask=v != 0)
        tl.atomic_add(sums + off.to(tl.int64) * m, -v, mask=(off >= 0) & (v != 0))


@triton.jit
def move(
    p, to, off, shifts, table, place, size, rest, m, limb_size,
    APART: tl.constexpr, HELD: tl.constexpr, LIMBS: tl.constexpr,
):  # fmt: skip
    """Add numbers to sums of the clusters that rows join, and take them from those they leave.

    The table has `size` sums of a limb, APART for each cluster, where `place` is that of a
    number; `rest` is where memory has those of the columns, of limb 0, and m for each cluster.
    """
    to, off = to[:, None], off[:, None]
    for limb in tl.static_range(LIMBS):
        # See :mod:`lloydia.backends.cuda.lane_sums`.
        shifted = p + shifts[limb]
        v = shifted.to(tl.int64, bitcast=True) - shifts[limb].to(tl.int64, bitcast=True)
        if limb < HELD:
            at = place + 2 * limb * size
            add_long(table, to * APART + at, size, v)
            take_long(table, off * APART + at, size, v, off)
        else:
            add_seldom(rest + limb * limb_size, to, off, m, v)
        if limb + 1 < LIMBS:
            p = p - (shifted - shifts[limb])


@triton.jit
def count(table, counts, labels, changed_rows, changed_old, n_changed, program, programs):
    """Count the rows of this program's share that clusters gain and lose: some rows a thread.

    A turn of all programs, past the last row, is within 32 bits: placed.MOST_ROWS leaves room.
    """
    lane = tl.arange(0, COUNTED)
    one = tl.full((COUNTED,), 1, tl.int32)
    for first in range(program * COUNTED, n_changed, programs * COUNTED):
        at = first + lane
        there = at < n_changed
        row = tl.load(changed_rows + at, mask=there, other=0)
        old = tl.load(changed_old + at, mask=there, other=-1)
        new = tl.load(labels + row, mask=there, other=-1)
        add(table, counts + new, one, new >= 0)
        add(table, counts + old, -one, old >= 0)


@triton.jit
def flush(
    table, sums, k, d, first, bits, limb_size, size,
    EACH: tl.constexpr, PITCH: tl.constexpr, COPIES: tl.constexpr, HELD: tl.constexpr,
):  # fmt: skip
    """Add the table, whose columns begin at `first`, to the sums; and counts of rows."""
    tl.debug_barrier()
    for begin in range(0, k * COLUMNS, CELLS):
        cell = begin + tl.arange(0, CELLS)
        j, column = cell // COLUMNS, cell % COLUMNS
        f = first + column
        real = (cell < k * COLUMNS) & (f < d)
        at = tl.where(real, j * (PITCH * COPIES) + place_of(column, EACH), 0)
        to = sums + j.to(tl.int64) * (d + 1) + f
        for limb in tl.static_range(HELD):
            total = tl.zeros((CELLS,), tl.int64)
            for copy in tl.static_range(COPIES):
                total += read_long(table, at + (2 * limb * size + copy * PITCH), size)
            tl.atomic_add(to + limb * limb_size, total, mask=real & (total != 0), sem="relaxed")
    for begin in range(0, k, CELLS):
        j = begin + tl.arange(0, CELLS)
        weight = read(table, 2 * HELD * size + tl.where(j < k, j, 0)).to(tl.int64) << bits
        to = sums + j.to(tl.int64) * (d + 1) + d
        tl.atomic_add(to, weight, mask=(j < k) & (weight != 0), sem="relaxed")


@triton.jit(do_not_specialize=["n", "k", "bits"])
def table_kernel(
    X, n, d, lattice, labels, changed_rows, changed_old, flow, sums, k, bits, memory,
    LIMBS: tl.constexpr, HELD: tl.constexpr, EACH: tl.constexpr, PITCH: tl.constexpr,
    COPIES: tl.constexpr, RESERVE: tl.constexpr,
):  # fmt: skip
    """Move the listed rows; programs that no rows are left for have nothing to do.

    `memory` is what the table is in where there is no shared memory.
    """
    table = own_table(memory, RESERVE)
    size = (k + 1) * (PITCH * COPIES)
    # It is this program's own: nobody need be waited for.
    empty_table(table, 2 * HELD * size + k)
    flow = own_flow(flow)
    halted, n_changed = tl.load(flow + HALT), tl.load(flow + N_CHANGED)
    program = tl.program_id(0)
    programs = tl.minimum(tl.num_programs(0), tl.cdiv(n_changed, WORTH))
    if (halted != 0) | (program >= programs):
        return
    member = tl.program_id(2).to(tl.int64)
    # The listed numbers count the rows of all members.
    changed_rows += first_row(n)
    changed_old += first_row(n)
    m = d + 1
    lattice += member * 3 * m
    sums += member * LIMBS * k * m
    limb_size = k.to(tl.int64) * m
    first = tl.program_id(1) * COLUMNS
    column = tl.arange(0, COLUMNS)
    # The rows of a warp add to different copies.
    copy = tl.arange(0, ROWS)[:, None] % COPIES
    place = place_of(column, EACH)[None, :] + copy * PITCH
    f = first + column
    scale = tl.load(lattice + f, mask=f < d, other=1.0)[None, :]
    quantum = tl.load(lattice + m + f, mask=f < d, other=1.0)[None, :]
    double: tl.constexpr = X.dtype.element_ty == tl.float64
    kind: tl.constexpr = tl.float64 if double else tl.float32
    if not double:
        # No float32 number is so small that its limbs would underflow.
        quantum = quantum / scale
    shifts = shifts_of(quantum, bits, LIMBS)
    rest = (sums + f)[None, :]
    # What is loaded is of the next tile, and of the one after it.
    here = names(program, changed_rows, changed_old, n_changed)
    new, x = values(X, labels, here, d, f, k)
    coming = names(program + programs, changed_rows, changed_old, n_changed)
    # Programs of all columns share this out, while their first rows are on their way.
    count(
        table, 2 * HELD * size, labels, changed_rows, changed_old, n_changed,
        tl.program_id(1) * programs + program, tl.num_programs(1) * programs,
    )  # fmt: skip
    for tile in tl.range(program, tl.cdiv(n_changed, ROWS), programs, num_stages=1):
        off, to, p = here[1], new, x.to(kind).to(tl.float64)
        here = coming
        new, x = values(X, labels, here, d, f, k)
        coming = names(tile + 2 * programs, changed_rows, changed_old, n_changed)
        if double:
            p *= scale
        move(
            p, to, off, shifts, table, place, size, rest, m, limb_size,
            PITCH * COPIES, HELD, LIMBS,
        )  # fmt: skip
    flush(table, sums, k, d, first, bits, limb_size, size, EACH, PITCH, COPIES, HELD)


def queue_table(
    X: torch.Tensor, lattice: Lattice, labels: torch.Tensor, changed_rows: torch.Tensor,
    changed_old: torch.Tensor, flow: torch.Tensor, sums: torch.Tensor,
    memory: torch.Tensor | None,
) -> None:  # fmt: skip
    """Queue the moves of listed rows, where :func:`has_table` allows it.

    Parameters
    ----------
    X : tensor of shape (n, d), or (members, n, d) of a batch
    lattice : Lattice
    labels : int32 tensor of shape (members n,)
    changed_rows, changed_old : int32 tensors of shape (members n,)
        As many rows, and their old labels, as ``flow[N_CHANGED]`` says.
    flow : int32 tensor
    sums : int64 tensor of shape (members, n_limbs, k, d + 1)
    memory : int32 tensor, or None
        What :func:`table_memory` returned.
    """
    members, n_limbs, k, m = sums.shape
    n, table = X.shape[-2], Table.of(k, X.element_size())
    assert table is not None
    blocks = ceil_div(m - 1, COLUMNS.value)
    most = ceil_div(RESIDENT * processors(X.device), blocks)
    programs = min(programs_each(most, members), ceil_div(n, WORTH.value))
    launch(
        table_kernel, (programs, blocks, members),
        X, n, m - 1, lattice.columns, labels, changed_rows, changed_old, flow, sums, k,
        lattice.grid.bits, memory,
        LIMBS=n_limbs, HELD=min(table.held, n_limbs), EACH=table.each, PITCH=table.pitch,
        COPIES=table.copies, RESERVE=reserve(table.words), num_warps=WARPS, maxnreg=REGISTERS,
        **EXACT,
    )  # fmt: skip
