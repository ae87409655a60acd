"""A table of 32-bit integers in a program's shared memory, updated by atomics.

All threads of the program share it.  A vector of places must have at least one entry for each
thread: of a shorter one several threads would have copies, and each would be added.  The
interpreter, which has no shared memory, uses memory that it is given.
"""

from __future__ import annotations

import triton
import triton.language as tl

from lloydia.backends.cuda.runtime.launching import COMPILED

__all__ = [
    "add",
    "add_all",
    "entry",
    "operands",
    "own_table",
    "read",
    "read_long",
    "reserve",
    "update_long",
    "update_ptx",
    "write",
]


def update_ptx(each: int, size: int) -> str:
    """Return the PTX of :func:`update_long` for `each` integers of a thread, and that `size`.

    All lower words are added before any carry is used, so that one wait serves all: a carry may be
    late, since no upper word is read before the end.  If some integer leaves a cluster, all are
    then subtracted in the same way; those that leave none, from a spare place.
    """
    # Number i of each operand; the dummy results come first.
    to, off, lower, upper, takes = (
        [f"${each * (operand + 1) + i}" for i in range(each)] for operand in range(5)
    )
    some, begin, end, take, end_taking = [], [], [], [], []
    for i in range(each):
        some.append(f"setp.ge.or.s32 some, {takes[i]}, 0, some;")
        begin.append(f"atom.shared.add.u32 before{i}, [{to[i]}], {lower[i]};")
        end += [
            f"add.cc.u32 word, before{i}, {lower[i]};", f"addc.u32 word, {upper[i]}, 0;",
            f"red.shared.add.u32 [{to[i]}+{4 * size}], word;",
        ]  # fmt: skip
        take += [
            f"neg.s32 word, {lower[i]};", f"atom.shared.add.u32 before{i}, [{off[i]}], word;",
        ]  # fmt: skip
        end_taking += [
            f"sub.cc.u32 word, before{i}, {lower[i]};", f"subc.u32 word, 0, {upper[i]};",
            f"red.shared.add.u32 [{off[i]}+{4 * size}], word;",
        ]  # fmt: skip
    words = ", ".join(f"before{i}" for i in range(each))
    return "\n".join([
        "{", ".reg .pred some;", f".reg .u32 word, {words};", "setp.ne.s32 some, 0, 0;",
        *some, *begin, *end, "@!some bra DONE;", *take, *end_taking, "DONE:",
        *(f"mov.b32 ${i}, 0;" for i in range(each)), "}",
    ])  # fmt: skip


@triton.constexpr_function
def operands(count: int, each: int) -> str:
    """Return the constraints of `count` operands, of `each` integers of a thread.

    They follow a dummy result for each integer.
    """
    return ",".join(["=r"] * each + ["r"] * (count * each))


def reserve(words: int) -> str:
    """Return the PTX that declares a table of this many words, at most 48 KiB."""
    return f"""{{
    .shared .align 16 .b32 table[{words}];
    mov.u32 $0, table;
    }}"""


# Adds where the mask, the last operand, is not 0.
ADD = tl.constexpr(
    """{
    .reg .pred there;
    setp.ne.s32 there, $3, 0;
    @there red.shared.add.u32 [$1], $2;
    mov.b32 $0, 0;
    }"""
)
READ = tl.constexpr("ld.shared.b32 $0, [$1];")
WRITE = tl.constexpr("{ st.shared.b32 [$1], $2; mov.b32 $0, 0; }")


@triton.jit
def own_table(memory, RESERVE: tl.constexpr):
    """Return the address of this program's table, declared by :func:`reserve`; a kernel has one."""
    if COMPILED:
        table = tl.inline_asm_elementwise(
            RESERVE, "=r,r", [tl.program_id(0)], dtype=tl.int32, is_pure=False, pack=1
        )
    else:
        table = memory
    return table


@triton.jit
def entry(table, at):
    """Return the address of an entry, which can serve as a table that begins there."""
    return table + 4 * at if COMPILED else table + at


@triton.jit
def add(table, at, values, mask):
    """Add values, one or several for each thread, to entries of the table, where `mask` is set."""
    if COMPILED:
        tl.inline_asm_elementwise(
            ADD, "=r,r,r,r", [table + 4 * at, values, mask.to(tl.int32)],
            dtype=tl.int32, is_pure=False, pack=1,
        )  # fmt: skip
    else:
        tl.atomic_add(table + at, values, mask=mask)


@triton.constexpr_function
def all_ptx(count):
    """Return the PTX of :func:`add_all` for this many values.

    Additions are unconditional, so that the compiler may schedule them freely; the subtractions
    share one condition.
    """
    each = [(4 * i, f"${4 + i}") for i in range(count)]
    lines = [f"red.shared.add.u32 [$1+{at}], {value};" for at, value in each]
    lines += ["setp.eq.s32 none, $3, 0;", "@none bra DONE;"]
    for at, value in each:
        lines += [f"neg.s32 less, {value};", f"red.shared.add.u32 [$2+{at}], less;"]
    return "\n".join(
        ["{", ".reg .pred none;", ".reg .s32 less;", *lines, "DONE:", "mov.b32 $0, 0;", "}"]
    )


@triton.jit
def add_all(table, to, off, values, takes):
    """Add each thread's values to entries that follow each other, from `to` on.

    Where `takes` is set they are also subtracted from the entries from `off` on; elsewhere `off`
    may be anything.
    """
    count: tl.constexpr = len(values)
    if COMPILED:
        tl.inline_asm_elementwise(
            all_ptx(count), operands(count + 3, 1),
            (table + 4 * to, table + 4 * off, takes.to(tl.int32)) + values,
            dtype=tl.int32, is_pure=False, pack=1,
        )  # fmt: skip
    else:
        for i in tl.static_range(count):
            tl.atomic_add(table + to + i, values[i])
            tl.atomic_add(table + off + i, -values[i], mask=takes)


@triton.jit
def update_long(
    base, to, off, values, takes,
    SIZE: tl.constexpr, NUMBERS: tl.constexpr, UPDATE_PTX: tl.constexpr, OPERANDS: tl.constexpr,
):  # fmt: skip
    """Add 64-bit integers to sums, and subtract them from others.

    Where `takes` is negative nothing need be subtracted, but may be: `off` is a valid place there
    too.  Places count from `base`: the table, or an :func:`entry` for each integer.  The lower word
    of a sum is the entry at its place, its upper word SIZE entries later.  NUMBERS integers of a
    thread are added at once, by what :func:`update_ptx` returns, and :func:`operands` for 5
    operands.
    """
    lower, upper = values.to(tl.int32), (values >> 32).to(tl.int32)
    if COMPILED:
        tl.inline_asm_elementwise(
            UPDATE_PTX, OPERANDS,
            [base + 4 * to, base + 4 * off, lower, upper, takes],
            dtype=tl.int32, is_pure=False, pack=NUMBERS,
        )  # fmt: skip
    else:
        add_long(base, to, SIZE, values)
        add_long(base, off, SIZE, -values)


@triton.jit
def add_long(table, at, size, values):
    """Add integers as :func:`update_long` does, in the interpreter."""
    lower, upper = values.to(tl.int32), (values >> 32).to(tl.int32)
    before = tl.atomic_add(table + at, lower)
    over = (before + lower).to(tl.uint32, bitcast=True) < lower.to(tl.uint32, bitcast=True)
    tl.atomic_add(table + at + size, upper + over.to(tl.int32))


@triton.jit
def read_long(table, at, size):
    """Return the sums of :func:`update_long`."""
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
