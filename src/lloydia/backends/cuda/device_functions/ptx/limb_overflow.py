"""What remains of numbers after the limbs of a table is added directly to global memory.

For float32 rows it is mostly 0, so it usually costs one comparison.
"""

from __future__ import annotations

import triton
import triton.language as tl

from lloydia.backends.cuda.device_functions.exact_numbers import power_of_two
from lloydia.backends.cuda.runtime.launching import COMPILED

__all__ = ["add_overflow", "overflow_operands", "overflow_ptx"]


def overflow_ptx(limbs: int, each: int) -> str:
    """Return the PTX that adds this many further limbs of this many numbers of a thread.

    Addresses and limbs are computed only if some remainder is not 0.
    """
    # Number i of each operand; the dummy results come first.
    sums, limb_size, to, off, m, column, left, shift, bits = (
        [f"${each * (operand + 1) + i}" for i in range(each)] for operand in range(9)
    )
    any_left = [f"mov.b64 any, {left[0]};"]
    for i in range(1, each):
        any_left += [f"mov.b64 v, {left[i]};", "or.b64 any, any, v;"]
    steps = []
    for i in range(each):
        steps += [
            f"setp.eq.f64 none, {left[i]}, 0d0000000000000000;", f"@none bra AFTER{i};",
            f"mad.lo.s32 number, {to[i]}, {m[i]}, {column[i]};",
            f"mad.wide.s32 to, number, 8, {sums[i]};",
            f"mad.lo.s32 number, {off[i]}, {m[i]}, {column[i]};",
            f"mad.wide.s32 off, number, 8, {sums[i]};",
            f"setp.ge.s32 there, {off[i]}, 0;",
            f"mov.f64 left, {left[i]};", f"mov.f64 shift, {shift[i]};",
            # 2**-bits.
            f"sub.s32 number, 1023, {bits[i]};", "shl.b32 number, number, 20;",
            "mov.b64 finer, {0, number};",
        ]  # fmt: skip
        for limb in range(limbs):
            if limb:
                steps += [
                    "sub.rn.f64 sum, sum, shift;", "sub.rn.f64 left, left, sum;",
                    f"add.s64 to, to, {limb_size[i]};", f"add.s64 off, off, {limb_size[i]};",
                ]  # fmt: skip
            steps += [
                "mul.rn.f64 shift, shift, finer;", "add.rn.f64 sum, left, shift;",
                "mov.b64 v, sum;", "mov.b64 number64, shift;", "sub.s64 v, v, number64;",
                "red.relaxed.gpu.global.add.u64 [to], v;", "neg.s64 v, v;",
                "@there red.relaxed.gpu.global.add.u64 [off], v;",
            ]  # fmt: skip
        steps.append(f"AFTER{i}:")
    return "\n".join([
        "{", ".reg .pred none, there;", ".reg .b32 number;",
        ".reg .b64 to, off, v, any, number64;", ".reg .f64 left, sum, shift, finer;",
        # -0.0 counts as 0 too.
        *any_left, "and.b64 any, any, 0x7FFFFFFFFFFFFFFF;", "setp.eq.s64 none, any, 0;",
        "@none bra DONE;", *steps, "DONE:", *(f"mov.b32 ${i}, 0;" for i in range(each)), "}",
    ])  # fmt: skip


def overflow_operands(each: int) -> str:
    """Return the constraints of the operands of :func:`overflow_ptx`."""
    return ",".join(["=r"] * each + [kind for kind in "llrrrrddr" for _ in range(each)])


@triton.jit
def add_overflow(
    p, to, off, f, shift, bits, sums, m, limb_size,
    LIMBS: tl.constexpr, NUMBERS: tl.constexpr, OVERFLOW_PTX: tl.constexpr, OPERANDS: tl.constexpr,
):  # fmt: skip
    """Add the remaining limbs of numbers, mostly 0, to sums in global memory, and subtract them.

    The numbers are of columns f, of which a cluster has m.  They are added to cluster `to` and
    subtracted from cluster `off`, unless that is negative; where there is no row the remainder is 0
    and `to` is past the last cluster.  `shift` is that of the limb before.  NUMBERS of a thread are
    checked at once, by what :func:`overflow_ptx` and :func:`overflow_operands` return.
    """
    if COMPILED:
        tl.inline_asm_elementwise(
            OVERFLOW_PTX, OPERANDS,
            [sums.to(tl.int64), 8 * limb_size, to, off, m, f, p, shift, bits],
            dtype=tl.int32, is_pure=False, pack=NUMBERS,
        )  # fmt: skip
    else:
        for limb in tl.static_range(LIMBS):
            shift *= power_of_two(-bits.to(tl.int64))
            shifted = p + shift
            v = shifted.to(tl.int64, bitcast=True) - shift.to(tl.int64, bitcast=True)
            tl.atomic_add(sums + limb * limb_size + (to * m + f), v, mask=v != 0)
            there = (off >= 0) & (v != 0)
            tl.atomic_add(sums + limb * limb_size + (off * m + f), -v, mask=there)
            p = p - (shifted - shift)
