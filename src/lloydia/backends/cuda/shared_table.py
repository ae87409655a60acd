"""A table of 32-bit integers that a program has to itself: shared memory, which adds at once.

All threads of a program reach it, and no other.  Vectors of places have an entry for each thread,
or several: what several threads held would be added by each.  The interpreter, which knows no
shared memory, takes memory that it is given.
"""

from __future__ import annotations

import triton
import triton.language as tl

from lloydia.backends.cuda.launching import INTERPRETED

__all__ = ["WORDS", "add", "add_two", "own_table", "read", "write"]

# What holds a table: two programs that have one fit into 64 KiB with what else they need.
WORDS = 7168

COMPILED = tl.constexpr(not INTERPRETED)
RESERVE = tl.constexpr(
    f"""{{
    .shared .align 16 .b32 table[{WORDS}];
    mov.u32 $0, table;
    }}"""
)
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
    .reg .pred there;
    setp.eq.s32 there, $5, 0;
    @there bra DONE;
    red.shared.add.u32 [$1], $3;
    red.shared.add.u32 [$2], $4;
    DONE:
    mov.b32 $0, 0;
    }"""
)
READ = tl.constexpr("ld.shared.b32 $0, [$1];")
WRITE = tl.constexpr("{ st.shared.b32 [$1], $2; mov.b32 $0, 0; }")


@triton.jit
def own_table(memory):
    """Return where this program's table is; a kernel has one."""
    if COMPILED:
        table = tl.inline_asm_elementwise(
            RESERVE, "=r,r", [tl.program_id(0)], dtype=tl.int32, is_pure=False, pack=1
        )
    else:
        table = memory
    return table


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
