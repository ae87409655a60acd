"""Rows that changed move from cluster to cluster: their sums.

The list of sorted entries (:mod:`entries`) is cut into as many equal runs as there are *lanes* of
threads; a lane adds its run in registers, and needs one atomic operation a column where the cluster
changes; rows in their own order would need one each.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.entries import Entries
from lloydia.backends.cuda.exact_numbers import SHIFT, product_error, whole
from lloydia.backends.cuda.flow import HALT, first_row, own_flow, programs_each
from lloydia.backends.cuda.launching import EXACT, ceil_div, next_power, processors
from lloydia.backends.cuda.recording import launch
from lloydia.backends.cuda.sums import Lattice

__all__ = ["queue_moves"]

# Entries of a lane that are on their way at a time.
AHEAD = tl.constexpr(8)
# Columns of all lanes of a program, which is one warp: nobody waits at a barrier.
LANE_COLUMNS = 128
# Programs a multiprocessor, all there at a time, and the registers of a thread that leave room for
# as many: with one lane, and with several, which take more.
ALONE, TOGETHER = (16, 128), (8, 255)
# Limbs that are added in one pass.
MOST_LIMBS = 4
# The bits of the number that rounds (exact_numbers.SHIFT).
SHIFT_BITS = tl.constexpr(0x4338000000000000)


@triton.jit
def add_limbs(sums, p, quantum, inverse, step, skip, LIMBS: tl.constexpr, SKIPS: tl.constexpr):
    """Add some limbs of products to a tuple of sums, from limb `skip` on; not SKIPS: from 0 on.

    A limb is added as the bits of the number that rounds it, so that each addition leaves
    SHIFT_BITS too many: :func:`flush` takes them off.
    """
    if SKIPS:
        for _ in range(skip):
            p = (p - whole(p * inverse) * quantum) * step
    out = ()
    for limb in tl.static_range(LIMBS):
        shifted = p * inverse + SHIFT
        out = out + (sums[limb] + shifted.to(tl.int64, bitcast=True),)
        p = (p - (shifted - SHIFT) * quantum) * step
    return out


@triton.jit
def add_products(
    sums, x, w, scale, quantum, inverse, step, skip,
    LIMBS: tl.constexpr, SKIPS: tl.constexpr, WEIGHTED: tl.constexpr, RECOVER: tl.constexpr,
):  # fmt: skip
    """Add signed weight times value to a tuple of sums."""
    p = x.to(tl.float64) * scale
    if WEIGHTED:
        a = p
        p = a * w
        sums = add_limbs(sums, p, quantum, inverse, step, skip, LIMBS, SKIPS)
        if RECOVER:
            error = product_error(a, w + tl.zeros_like(a), p)
            sums = add_limbs(sums, error, quantum, inverse, step, skip, LIMBS, SKIPS)
        return sums
    elif x.dtype == tl.float64:
        return add_limbs(sums, p, quantum, inverse, step, skip, LIMBS, SKIPS)
    else:
        # In units of the quantum: no float32 number is so small that this would underflow.
        p = x.to(tl.float64) * (scale * inverse)
        return add_limbs(sums, p, 1.0, 1.0, step, skip, LIMBS, SKIPS)


@triton.jit
def zeros(shape: tl.constexpr, LIMBS: tl.constexpr):
    """Return a tuple of sums of nothing."""
    out = ()
    for _ in tl.static_range(LIMBS):
        out = out + (tl.zeros(shape, tl.int64),)
    return out


@triton.jit
def flush(sums, added, at, limb_size, there, mask, LIMBS: tl.constexpr):
    """Add a tuple of sums of `added` numbers to memory where `mask` is set; return the others.

    Only the first `there` of them have a place.
    """
    out = ()
    for limb in tl.static_range(LIMBS):
        total = sums[limb] - added.to(tl.int64) * SHIFT_BITS
        some = mask & (total != 0) & (tl.zeros_like(total) + limb < there)
        tl.atomic_add(at + limb * limb_size, total, mask=some, sem="relaxed")
        out = out + (tl.where(mask, 0, sums[limb]),)
    return out


@triton.jit
def flush_weights(
    sums, ones, added, at, limb_size, there, mask, bits, skip,
    LIMBS: tl.constexpr, WEIGHTED: tl.constexpr,
):  # fmt: skip
    """Add weights to memory where `mask` is set, and return the others.

    Without weights they are signed `ones`, whose only limb is the first, ``2**bits``.
    """
    if WEIGHTED:
        return flush(sums, added, at, limb_size, there, mask, LIMBS), ones
    else:
        total = tl.where(skip == 0, ones.to(tl.int64) << bits, 0)
        tl.atomic_add(at, total, mask=mask & (total != 0), sem="relaxed")
        return sums, tl.where(mask, 0, ones)


@triton.jit
def flush_together(sums, added, at, limb_size, there, mask, LIMBS: tl.constexpr):
    """Add a tuple of sums to memory, those of all lanes as one; parameters are those of `flush`."""
    for limb in tl.static_range(LIMBS):
        total = tl.sum(sums[limb] - added.to(tl.int64) * SHIFT_BITS, 0)
        some = mask & (total != 0) & (tl.zeros_like(total) + limb < there)
        tl.atomic_add(at + limb * limb_size, total, mask=some, sem="relaxed")


@triton.jit(do_not_specialize=["n", "k", "bits", "n_limbs", "skip"])
def add_kernel(
    X, n, d, k, weights, lattice, entries, clusters, ends, flow,
    sums, bits, n_limbs, skip, limb_size,
    LIMBS: tl.constexpr, SKIPS: tl.constexpr, WEIGHTED: tl.constexpr, RECOVER: tl.constexpr,
    LANES: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Add the entries to the sums; programs of the first column block also add the weights."""
    if tl.load(own_flow(flow) + HALT) != 0:
        return
    member = tl.program_id(2).to(tl.int64)
    lattice += member * 3 * (d + 1)
    entries += first_row(2 * n)
    clusters += first_row(2 * n)
    ends += member * k
    sums += member * n_limbs * limb_size
    # What the weights' error adds up to is one more addition a limb.
    TERMS: tl.constexpr = 2 if RECOVER else 1
    double: tl.constexpr = X.dtype.element_ty == tl.float64
    kind: tl.constexpr = tl.float64 if double else tl.float32
    m = d + 1
    f = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    column = (f < d)[None, :]
    scale = tl.load(lattice + f, mask=f < d, other=0.0)[None, :]
    quantum = tl.load(lattice + m + f, mask=f < d, other=0.0)[None, :]
    inverse = tl.load(lattice + 2 * m + f, mask=f < d, other=0.0)[None, :]
    weight_scale = tl.load(lattice + d)
    weight_quantum = tl.load(lattice + m + d)
    weight_inverse = tl.load(lattice + 2 * m + d)
    step = ((1023 + bits.to(tl.int64)) << 52).to(tl.float64, bitcast=True)
    first_block = tl.zeros((LANES,), tl.int32) + tl.program_id(1) == 0
    sums += skip * limb_size
    count = tl.load(ends + k - 1)
    run = tl.cdiv(tl.cdiv(count, tl.num_programs(0) * LANES), AHEAD) * AHEAD
    first = tl.program_id(0) * LANES * run
    if first >= count:
        return
    begin = first + tl.arange(0, LANES) * run
    current = tl.load(clusters + tl.minimum(begin, count - 1))
    own = zeros((LANES, COLUMNS), LIMBS)
    own_weight = zeros((LANES,), LIMBS)
    ones = tl.zeros((LANES,), tl.int32)
    added = tl.zeros((LANES,), tl.int32)
    for ahead in range(0, tl.minimum(run, count - first), AHEAD):
        signs = ()
        values = ()
        factors = ()
        for i in tl.static_range(AHEAD):
            # Past the end the last entry stands in, times 0.
            place = begin + ahead + i
            entry = tl.load(entries + tl.minimum(place, count - 1))
            signs = signs + (tl.where(place < count, tl.where(entry < 0, -1, 1), 0),)
            row = tl.where(entry < 0, ~entry, entry).to(tl.int64)
            values = values + (tl.load(X + row[:, None] * d + f[None, :], mask=column),)
            if WEIGHTED:
                factors = factors + (tl.load(weights + row),)
            else:
                factors = factors + (signs[i],)
        # Entries are sorted: if the last is of the current cluster, so are those before.
        last = tl.load(clusters + tl.minimum(begin + (ahead + AHEAD - 1), count - 1))
        mixed = tl.max((last != current).to(tl.int32), 0) > 0
        for i in tl.static_range(AHEAD):
            if mixed:
                cluster = tl.load(clusters + tl.minimum(begin + (ahead + i), count - 1))
                leaves = cluster != current
                at = sums + current.to(tl.int64) * m
                own = flush(
                    own, added[:, None], at[:, None] + f[None, :], limb_size, n_limbs - skip,
                    leaves[:, None] & column, LIMBS,
                )  # fmt: skip
                own_weight, ones = flush_weights(
                    own_weight, ones, added, at + d, limb_size, n_limbs - skip,
                    leaves & first_block, bits, skip, LIMBS, WEIGHTED,
                )  # fmt: skip
                added = tl.where(leaves, 0, added)
                current = cluster
            own = add_products(
                own, values[i].to(kind) * signs[i].to(kind)[:, None], factors[i][:, None],
                scale, quantum, inverse, step, skip, LIMBS, SKIPS, WEIGHTED, RECOVER,
            )  # fmt: skip
            if WEIGHTED:
                own_weight = add_products(
                    own_weight, signs[i].to(tl.float64), factors[i],
                    weight_scale, weight_quantum, weight_inverse, step, skip,
                    LIMBS, SKIPS, WEIGHTED, RECOVER,
                )  # fmt: skip
            else:
                ones += signs[i]
            added += TERMS
    # Mostly all lanes have come to the same cluster: past the end are entries times 0.
    cluster = tl.max(current, 0)
    if (LANES > 1) & (tl.min(current, 0) == cluster):
        to = sums + cluster.to(tl.int64) * m
        first_one = tl.program_id(1) == 0
        flush_together(own, added[:, None], to + f, limb_size, n_limbs - skip, f < d, LIMBS)
        if WEIGHTED:
            flush_together(own_weight, added, to + d, limb_size, n_limbs - skip, first_one, LIMBS)
        else:
            total = tl.sum(ones, 0).to(tl.int64) << bits
            tl.atomic_add(to + d, total, mask=first_one & (skip == 0), sem="relaxed")
    else:
        at = sums + current.to(tl.int64) * m
        there = begin < count
        flush(
            own, added[:, None], at[:, None] + f[None, :], limb_size, n_limbs - skip,
            there[:, None] & column, LIMBS,
        )  # fmt: skip
        flush_weights(
            own_weight, ones, added, at + d, limb_size, n_limbs - skip, there & first_block, bits,
            skip, LIMBS, WEIGHTED,
        )  # fmt: skip


def queue_moves(
    X: torch.Tensor, lattice: Lattice, entries: Entries, flow: torch.Tensor, sums: torch.Tensor
) -> None:
    """Queue the moves that sorted entries tell of.

    Parameters
    ----------
    X : tensor of shape (n, d), or (members, n, d) of a batch
    lattice : Lattice
    entries : Entries
    flow : int32 tensor
    sums : int64 tensor of shape (members, n_limbs, k, d + 1)
    """
    members, n_limbs, k, m = sums.shape
    columns = min(LANE_COLUMNS, next_power(m - 1))
    resident, registers = ALONE if columns == LANE_COLUMNS else TOGETHER
    lanes = programs_each(resident * processors(X.device), members)
    limbs = min(n_limbs, MOST_LIMBS)
    for skip in range(0, n_limbs, limbs):
        launch(
            add_kernel, (lanes, ceil_div(m - 1, columns), members),
            X, entries.n, m - 1, k, lattice.weights, lattice.columns, entries.rows,
            entries.clusters, entries.ends, flow, sums, lattice.grid.bits, n_limbs, skip, k * m,
            LIMBS=limbs, SKIPS=skip > 0, WEIGHTED=lattice.weights is not None,
            RECOVER=lattice.grid.recover, LANES=LANE_COLUMNS // columns, COLUMNS=columns,
            num_warps=1, maxnreg=registers, **EXACT,
        )  # fmt: skip
