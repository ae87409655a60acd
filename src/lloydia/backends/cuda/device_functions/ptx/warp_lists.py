"""Lists of rows, one for each warp of the programs that fill them: without gaps, nothing shared.

List l holds its entries from place ``l * room`` on.  A warp counts its own list in registers, so
programs fill lists without atomic operations, and no thread waits for another warp.
"""

from __future__ import annotations

import triton
import triton.language as tl

from lloydia.backends.cuda.runtime.launching import COMPILED

__all__ = ["BLOCK", "LISTS", "THREADS", "append", "own_list", "write_counts"]

# Threads of a program, the lists that these fill, and the rows that a program labels at a time.
THREADS, LISTS, BLOCK = 128, 4, 512
LANES, WARPS, ROWS = tl.constexpr(THREADS), tl.constexpr(LISTS), tl.constexpr(BLOCK)
# Rows of a thread.
EACH = tl.constexpr(BLOCK // THREADS)

WARP_NUMBER = tl.constexpr("mov.u32 $0, %tid.x; shr.u32 $0, $0, 5;")


@triton.constexpr_function
def append_ptx(each, count):
    """Return the PTX of :func:`append`: so many rows of a thread, so many numbers of each.

    All of it is skipped where no row of the warp is listed.
    """
    rows = range(each)
    # Number e of each operand; the new ends come first.
    masks, ends, *rest = (
        [f"${each * (operand + 1) + e}" for e in rows] for operand in range(2 + 2 * count)
    )
    values, lists = rest[:count], rest[count:]
    lines = [
        "{", f".reg .pred listed<{each}>, none;", f".reg .b32 all<{each}>, own, below, end, some;",
        ".reg .b64 place, at;", f"mov.b32 end, {ends[0]};", "mov.u32 some, 0;",
    ]  # fmt: skip
    lines += [f"setp.ne.s32 listed{e}, {masks[e]}, 0;" for e in rows]
    # All ballots come first: none needs another's result.
    lines += [f"vote.sync.ballot.b32 all{e}, listed{e}, -1;" for e in rows]
    lines += [f"or.b32 some, some, all{e};" for e in rows]
    lines += ["setp.eq.u32 none, some, 0;", "@none bra DONE;", "mov.u32 below, %lanemask_lt;"]
    for e in rows:
        lines += [f"and.b32 own, all{e}, below;", "popc.b32 own, own;", "add.s32 own, end, own;"]
        lines += ["mul.wide.s32 place, own, 4;"]
        for value, at in zip(values, lists):
            lines += [f"add.s64 at, {at[0]}, place;"]
            lines += [f"@listed{e} st.global.b32 [at], {value[e]};"]
        lines += [f"popc.b32 own, all{e};", "add.s32 end, end, own;"]
    return "\n".join([*lines, "DONE:", *(f"mov.b32 ${e}, end;" for e in rows), "}"])


@triton.constexpr_function
def operands_of(each, count):
    """Return the constraints of the operands of :func:`append_ptx`."""
    return ",".join(["=&r"] * each + ["r"] * (each * (2 + count)) + ["l"] * (each * count))


@triton.jit
def own_list():
    """Return the number of the list of each row of a block, among those of this program."""
    lane = tl.arange(0, ROWS)
    if COMPILED:
        warp = tl.inline_asm_elementwise(
            WARP_NUMBER, "=r,r", [lane], dtype=tl.int32, is_pure=True, pack=1
        )
    else:
        warp = lane % LANES // (LANES // WARPS)
    return tl.program_id(0) * WARPS + warp


@triton.jit
def append(ends, mask, values, lists):
    """Append the rows in `mask` to their warps' lists; return where the lists end then.

    `values` are the numbers that a row has in each of the `lists`; `ends` is the same for all rows
    of a warp.
    """
    some = mask.to(tl.int32)
    count: tl.constexpr = len(values)
    if COMPILED:
        every = ()
        for i in tl.static_range(count):
            every = every + (tl.full((ROWS,), 0, tl.int64) + lists[i].to(tl.int64),)
        return tl.inline_asm_elementwise(
            append_ptx(EACH, count), operands_of(EACH, count), (some, ends) + values + every,
            dtype=tl.int32, is_pure=False, pack=EACH,
        )  # fmt: skip
    else:
        # A row for each warp.
        by_warp = some.reshape(EACH, WARPS, LANES // WARPS).permute(1, 0, 2)
        flat = by_warp.reshape(WARPS, EACH * (LANES // WARPS))
        before = (tl.cumsum(flat, 1) - flat).reshape(WARPS, EACH, LANES // WARPS)
        places = ends + before.permute(1, 0, 2).reshape(ROWS)
        for i in tl.static_range(count):
            tl.store(lists[i] + places, values[i], mask=mask)
        added = tl.sum(tl.sum(by_warp, 2), 1)[None, :, None]
        more = added + tl.zeros((EACH, WARPS, LANES // WARPS), tl.int32)
        return ends + more.reshape(ROWS)


@triton.jit
def write_counts(counts, which, ends, room):
    """Write how long each list of this program is; return the sum of these lengths."""
    count = ends - which * room
    # All rows of a warp write the same number.
    tl.store(counts + which, count)
    return tl.sum(count, 0) // (ROWS // WARPS)
