"""A table of 32-bit integers that a program has to itself: shared memory, which adds at once.

All threads of a program reach it, and no other.  Vectors of places have an entry for each thread,
or several: what several threads held would be added by each.  The interpreter, which knows no
shared memory, takes memory that it is given.
"""

from __future__ import annotations

import triton
import triton.language as tl

from lloydia.backends.cuda.launching import COMPILED

__all__ = [
    "add",
    "add_any",
    "add_long",
    "add_two",
    "own_table",
    "read",
    "read_long",
    "reserve",
    "take_long",
    "write",
]


def reserve(words: int) -> str:
    """Return the PTX that declares a table of so many words: of at most 48 KiB."""
    return f"""{{
    .shared .align 16 .b32 table[{words}];
    mov.u32 $0, table;
    }}"""


# Without a branch: what is around it may be mixed with it.
ADD_ANY = tl.constexpr("{ red.shared.add.u32 [$1], $2; mov.b32 $0, 0; }")
# Where a mask, the last operand, is not 0.
ADD = tl.constexpr(
    """{
    .reg .pred there;
    setp.ne.s32 there, $3, 0;
    @there red.shared.add.u32 [$1], $2;
    mov.b32 $0, 0;
    }"""
)
ADD_TWO = tl.constexpr(
    """{
    .reg .pred none;
    setp.eq.s32 none, $5, 0;
    @none bra DONE;
    red.shared.add.u32 [$1], $3;
    red.shared.add.u32 [$2], $4;
    DONE:
    mov.b32 $0, 0;
    }"""
)
# The carry of the lower word goes to the upper one, whenever it comes there.
ADD_LONG = tl.constexpr(
    """{
    .reg .u32 before;
    atom.shared.add.u32 before, [$1], $3;
    add.cc.u32 before, before, $3;
    addc.u32 before, $4, 0;
    red.shared.add.u32 [$2], before;
    mov.b32 $0, 0;
    }"""
)
# Nothing where the last operand is negative.
TAKE_LONG = tl.constexpr(
    """{
    .reg .pred none;
    .reg .u32 low, high, before;
    setp.lt.s32 none, $5, 0;
    @none bra DONE;
    sub.cc.u32 low, 0, $3;
    subc.u32 high, 0, $4;
    atom.shared.add.u32 before, [$1], low;
    add.cc.u32 before, before, low;
    addc.u32 before, high, 0;
    red.shared.add.u32 [$2], before;
    DONE:
    mov.b32 $0, 0;
    }"""
)
READ = tl.constexpr("ld.shared.b32 $0, [$1];")
WRITE = tl.constexpr("{ st.shared.b32 [$1], $2; mov.b32 $0, 0; }")


@triton.jit
def own_table(memory, RESERVE: tl.constexpr):
    """Return where this program's table is, by what :func:`reserve` gives; a kernel has one."""
    if COMPILED:
        table = tl.inline_asm_elementwise(
            RESERVE, "=r,r", [tl.program_id(0)], dtype=tl.int32, is_pure=False, pack=1
        )
    else:
        table = memory
    return table


@triton.jit
def add_any(table, at, values):
    """Add values, as many as there are threads, to entries of the table, also where they are 0."""
    if COMPILED:
        tl.inline_asm_elementwise(
            ADD_ANY, "=r,r,r", [table + 4 * at, values], dtype=tl.int32, is_pure=False, pack=1
        )
    else:
        tl.atomic_add(table + at, values)


@triton.jit
def add(table, at, values, mask):
    """Add values, as many as there are threads, to entries of the table."""
    if COMPILED:
        tl.inline_asm_elementwise(
            ADD, "=r,r,r,r", [table + 4 * at, values, mask.to(tl.int32)],
            dtype=tl.int32, is_pure=False, pack=1,
        )  # fmt: skip
    else:
        tl.atomic_add(table + at, values, mask=mask)


@triton.jit
def add_two(table, first, second, one, other, mask):
    """Add values at two entries."""
    if COMPILED:
        tl.inline_asm_elementwise(
            ADD_TWO, "=r,r,r,r,r,r",
            [table + 4 * first, table + 4 * second, one, other, mask.to(tl.int32)],
            dtype=tl.int32, is_pure=False, pack=1,
        )  # fmt: skip
    else:
        tl.atomic_add(table + first, one, mask=mask)
        tl.atomic_add(table + second, other, mask=mask)


@triton.jit
def add_long(table, at, size, values):
    """Add integers of 64 bits to sums of as many.

    A sum's lower word is the entry at its place, its upper word is `size` entries later.
    """
    lower, upper = values.to(tl.int32), (values >> 32).to(tl.int32)
    if COMPILED:
        place = table + 4 * at
        tl.inline_asm_elementwise(
            ADD_LONG, "=r,r,r,r,r", [place, place + 4 * size, lower, upper],
            dtype=tl.int32, is_pure=False, pack=1,
        )  # fmt: skip
    else:
        before = tl.atomic_add(table + at, lower)
        over = (before + lower).to(tl.uint32, bitcast=True) < lower.to(tl.uint32, bitcast=True)
        tl.atomic_add(table + at + size, upper + over.to(tl.int32))


@triton.jit
def take_long(table, at, size, values, unless_negative):
    """Take integers from sums as :func:`add_long` adds them, but where the last is negative."""
    if COMPILED:
        place = table + 4 * at
        tl.inline_asm_elementwise(
            TAKE_LONG, "=r,r,r,r,r,r",
            [place, place + 4 * size, values.to(tl.int32), (values >> 32).to(tl.int32),
             unless_negative],
            dtype=tl.int32, is_pure=False, pack=1,
        )  # fmt: skip
    else:
        there = unless_negative >= 0
        add_long(table, tl.where(there, at, 0), size, tl.where(there, -values, 0))


@triton.jit
def read_long(table, at, size):
    """Return what :func:`add_long` has added up."""
    lower = read(table, at).to(tl.uint32, bitcast=True).to(tl.int64)
    return lower + (read(table, at + size).to(tl.int64) << 32)


@triton.jit
def read(table, at):
    """Return entries of the table."""
    if COMPILED:
        values = tl.inline_asm_elementwise(
            READ, "=r,r", [table + 4 * at], dtype=tl.int32, is_pure=False, pack=1
        )
    else:
        values = tl.load(table + at)
    return values


@triton.jit
def write(table, at, values):
    """Write entries of the table."""
    if COMPILED:
        tl.inline_asm_elementwise(
            WRITE, "=r,r,r", [table + 4 * at, values], dtype=tl.int32, is_pure=False, pack=1
        )
    else:
        tl.store(table + at, values)
