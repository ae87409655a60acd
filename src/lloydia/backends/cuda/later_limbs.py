"""What numbers leave beyond the limbs that tables hold: later limbs, which go to memory at once.

That is mostly 0, of float32 rows, so it costs a comparison.
"""

from __future__ import annotations

import triton
import triton.language as tl

from lloydia.backends.cuda.exact_numbers import power_of_two
from lloydia.backends.cuda.launching import COMPILED

__all__ = ["move_later", "moving_later"]


def moving_later(limbs: int) -> str:
    """Return the PTX that moves so many later limbs of a number: of what is left, mostly 0.

    Only where it is not are places looked for, and its limbs.
    """
    steps = []
    for limb in range(limbs):
        if limb:
            steps += [
                "sub.rn.f64 sum, sum, shift;", "sub.rn.f64 left, left, sum;",
                "add.s64 to, to, $2;", "add.s64 off, off, $2;",
            ]  # fmt: skip
        steps += [
            "mul.rn.f64 shift, shift, finer;", "add.rn.f64 sum, left, shift;",
            "mov.b64 v, sum;", "mov.b64 bits, shift;", "sub.s64 v, v, bits;",
            "red.relaxed.gpu.global.add.u64 [to], v;", "neg.s64 v, v;",
            "@there red.relaxed.gpu.global.add.u64 [off], v;",
        ]  # fmt: skip
    return "\n".join([
        "{", ".reg .pred none, there;", ".reg .b32 number;", ".reg .b64 to, off, v, bits;",
        ".reg .f64 left, sum, shift, finer;",
        "setp.eq.f64 none, $7, 0d0000000000000000;", "@none bra DONE;",
        "mad.lo.s32 number, $3, $5, $6;", "mad.wide.s32 to, number, 8, $1;",
        "mad.lo.s32 number, $4, $5, $6;", "mad.wide.s32 off, number, 8, $1;",
        "setp.ge.s32 there, $4, 0;", "mov.f64 left, $7;", "mov.f64 shift, $8;",
        # Two to the power of minus bits.
        "sub.s32 number, 1023, $9;", "shl.b32 number, number, 20;", "mov.b64 finer, {0, number};",
        *steps, "DONE:", "mov.b32 $0, 0;", "}",
    ])  # fmt: skip


@triton.jit
def move_later(
    p, to, off, f, shift, bits, sums, m, limb_size, LIMBS: tl.constexpr, LATER: tl.constexpr
):  # fmt: skip
    """Move the limbs of what is left of numbers, mostly 0, from and to sums in memory.

    Those of columns f, of which clusters have m; `off` is negative where there is none to take
    from.  `shift` is that of the limb before.
    """
    if COMPILED:
        tl.inline_asm_elementwise(
            LATER, "=r,l,l,r,r,r,r,d,d,r",
            [sums.to(tl.int64), 8 * limb_size, to, off, m, f, p, shift, bits],
            dtype=tl.int32, is_pure=False, pack=1,
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
