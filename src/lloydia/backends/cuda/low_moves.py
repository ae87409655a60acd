"""Rows of few features move from sum to sum: a row a thread, its features in registers.

The integers are those of :func:`lloydia.exact.sums.limbs`; they are added by atomic operations, in
any order, since the order changes nothing.
"""

from __future__ import annotations

import triton
import triton.language as tl

from lloydia.backends.cuda.exact_numbers import product_error, whole

__all__ = ["move"]


@triton.jit
def add_limbs(first, to, off, mask, taken, p, quantum, inverse, bits, n_limbs, limb_size):
    """Add products to the sums at `to`, and take those in `taken` from the sums at `off`.

    From limb `first` on; `p` holds what the limbs before left, raised by ``2**bits`` each.
    """
    step = ((1023 + bits.to(tl.int64)) << 52).to(tl.float64, bitcast=True)
    for limb in tl.range(first, n_limbs, loop_unroll_factor=1):
        v = whole(p * inverse)
        integer = v.to(tl.int64)
        some = mask & (integer != 0)
        tl.atomic_add(to + limb * limb_size, integer, mask=some, sem="relaxed")
        tl.atomic_add(off + limb * limb_size, -integer, mask=some & taken, sem="relaxed")
        p = (p - v * quantum) * step


@triton.jit
def move(
    x, rows, mask, old, new, weights, lattice, sums, bits, n_limbs, limb_size,
    d: tl.constexpr, WEIGHTED: tl.constexpr, RECOVER: tl.constexpr,
):  # fmt: skip
    """Move the products of rows, whose features are `x`, to the sums of their new clusters.

    `old` is -1 for rows that had no cluster.  `rows` are asked for weights alone.
    """
    m: tl.constexpr = d + 1
    to = sums + new.to(tl.int64) * m
    off = sums + old.to(tl.int64) * m
    taken = mask & (old >= 0)
    if WEIGHTED:
        w = tl.load(weights + rows, mask=mask, other=0.0)
    for f in tl.static_range(m):
        scale = tl.load(lattice + f)
        quantum = tl.load(lattice + m + f)
        inverse = tl.load(lattice + 2 * m + f)
        # Column d is the weight.
        value = tl.full(rows.shape, 1.0, tl.float64) if f == d else x[f].to(tl.float64)
        a = tl.where(mask, value * scale, 0.0)
        p = a * w if WEIGHTED else a
        add_limbs(
            0, to + f, off + f, mask, taken, p, quantum, inverse, bits, n_limbs, limb_size,
        )  # fmt: skip
        if RECOVER:
            # At most 2**-53 |p|, less than half a step of limb 0.
            step = ((1023 + bits.to(tl.int64)) << 52).to(tl.float64, bitcast=True)
            error = product_error(a, w, p) * step
            add_limbs(
                1, to + f, off + f, mask, taken, error, quantum, inverse, bits, n_limbs, limb_size,
            )  # fmt: skip
