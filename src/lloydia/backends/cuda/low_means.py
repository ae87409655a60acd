"""The end of an iteration over rows of few features: a cluster's columns are looked at together.

As :func:`lloydia.backends.cuda.means.finish`, with less waiting: every number is read once.
"""

from __future__ import annotations

import triton
import triton.language as tl

from lloydia.backends.cuda.exact_numbers import divide, ldexp
from lloydia.backends.cuda.flow import ITERATION, N_EMPTY
from lloydia.backends.cuda.means import HEAD, MOVE, conclude, significand

__all__ = ["low_means"]


@triton.jit
def low_means(
    program, n_programs, sums, n_limbs, bits, exponents, k, d: tl.constexpr,
    current, history, n_slots, report, flow, settles,
    REPLICAS: tl.constexpr, BLOCK_K: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Turn the sums of this program's clusters into centres; the last program writes the report.

    The parameters are those of :func:`lloydia.backends.cuda.means.finish`.
    """
    iteration = tl.load(flow + ITERATION)
    # 64 bits: n_slots k d may pass 2**31.
    new_slot = ((iteration + 1) % n_slots) * (k.to(tl.int64) * d)
    said = report + ((iteration + 1) % n_slots).to(tl.int64) * (HEAD + k)
    limb_size = k.to(tl.int64) * (d + 1)
    f = tl.arange(0, COLUMNS)
    e = tl.load(exponents + f, mask=f < d, other=0)[None, :]
    for block in range(program, tl.cdiv(k, BLOCK_K), n_programs):
        j = block * BLOCK_K + tl.arange(0, BLOCK_K)
        real = j < k
        there = real[:, None] & (f <= d)[None, :]
        mask = real[:, None] & (f < d)[None, :]
        at = j.to(tl.int64)[:, None] * d + f[None, :]
        old = tl.load(current + at, mask=mask, other=0.0)
        a, a_low, a_place = significand(
            sums, j.to(tl.int64)[:, None] * (d + 1) + f[None, :], there, n_limbs, bits,
            limb_size, limb_size * n_limbs, REPLICAS,
        )  # fmt: skip
        # Column d is the weight; the other terms of these sums are 0.
        weight = (f == d)[None, :]
        b = tl.sum(tl.where(weight, a, 0.0), 1)[:, None]
        b_low = tl.sum(tl.where(weight, a_low, 0.0), 1)[:, None]
        b_place = tl.sum(tl.where(weight, a_place, 0), 1)[:, None]
        empty = b == 0.0
        b = tl.where(empty, 1.0, b)
        if current.dtype.element_ty == tl.float64:
            q = divide(a, a_low, b, b_low)
        else:
            q = a / b
        mean = ldexp(q, e - bits * (a_place - b_place))
        new = tl.where(empty, old, mean.to(old.dtype))
        tl.store(current + at, new, mask=mask)
        tl.store(history + new_slot + at, new, mask=mask)
        if iteration == 0:
            tl.store(history + at, old, mask=mask)
        difference = tl.where(mask, new.to(tl.float64) - old.to(tl.float64), 0.0)
        squares = difference * difference
        square = tl.zeros((BLOCK_K,), tl.float64)
        for s in tl.static_range(d):
            square += tl.sum(tl.where((f == s)[None, :], squares, 0.0), 1)
        tl.store(said + HEAD + j, square.to(tl.int64, bitcast=True), mask=real)
        move = tl.max(tl.max(tl.abs(difference), 1), 0)
        tl.atomic_max(said + MOVE, move.to(tl.int64, bitcast=True))
        tl.atomic_add(flow + N_EMPTY, tl.sum((empty & real[:, None]).to(tl.int32)))
    conclude(n_programs, k, iteration, said, n_slots, report, flow, settles)
