"""Rows that changed, sorted by cluster: neighbours in the list are added before they meet a sum.

A row that changed is two entries, one for the cluster that it joins and one for that it leaves.  A
counting sort brings the entries of a cluster together.  A *lane* of threads, one a column, then
adds a run of them in registers, and needs one atomic operation a column where the cluster changes;
rows in their own order would need one each.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.exact_numbers import SHIFT, product_error, whole
from lloydia.backends.cuda.flow import HALT, N_CHANGED
from lloydia.backends.cuda.launching import EXACT, ceil_div, next_power, processors
from lloydia.backends.cuda.sums import Lattice

__all__ = ["Moves"]

# Changed rows and counters that a program looks at together.
ROWS = tl.constexpr(512)
COUNTERS = tl.constexpr(4096)
# Entries of a lane, and how many of them are on their way at a time.
RUN = tl.constexpr(64)
AHEAD = tl.constexpr(8)
# Threads of a program in the lanes.
THREADS = 128
# Limbs that are added in one pass.
MOST_LIMBS = 4
# The bits of the number that rounds (exact_numbers.SHIFT).
SHIFT_BITS = tl.constexpr(0x4338000000000000)


@triton.jit
def count_kernel(labels, changed_rows, changed_old, counts, flow, REPLICAS: tl.constexpr):
    """Count the entries of each cluster; blocks of rows take turns at its replicas."""
    if tl.load(flow + HALT) != 0:
        return
    n_changed = tl.load(flow + N_CHANGED)
    for block in range(tl.program_id(0), tl.cdiv(n_changed, ROWS), tl.num_programs(0)):
        entry = block * ROWS + tl.arange(0, ROWS)
        mask = entry < n_changed
        old = tl.load(changed_old + entry, mask=mask, other=-1)
        new = tl.load(
            labels + tl.load(changed_rows + entry, mask=mask, other=0), mask=mask, other=0
        )
        tl.atomic_add(counts + new * REPLICAS + block % REPLICAS, 1, mask=mask, sem="relaxed")
        tl.atomic_add(counts + old * REPLICAS + block % REPLICAS, 1, mask=old >= 0, sem="relaxed")


@triton.jit(do_not_specialize=["size"])
def place_kernel(counts, ends, size, flow):
    """Turn counts into where the entries of each cluster begin; `ends` moves on as they come."""
    if tl.load(flow + HALT) != 0:
        return
    before = 0
    for first in range(0, size, COUNTERS):
        j = first + tl.arange(0, COUNTERS)
        count = tl.load(counts + j, mask=j < size, other=0)
        tl.store(ends + j, before + tl.cumsum(count, 0) - count, mask=j < size)
        tl.store(counts + j, tl.zeros((COUNTERS,), tl.int32), mask=j < size)
        before += tl.sum(count, 0)


@triton.jit
def sort_kernel(
    labels, changed_rows, changed_old, ends, entries, clusters, flow, REPLICAS: tl.constexpr
):  # fmt: skip
    """Put each entry in its place: the row, or for a cluster that it leaves its complement."""
    if tl.load(flow + HALT) != 0:
        return
    n_changed = tl.load(flow + N_CHANGED)
    for block in range(tl.program_id(0), tl.cdiv(n_changed, ROWS), tl.num_programs(0)):
        entry = block * ROWS + tl.arange(0, ROWS)
        mask = entry < n_changed
        rows = tl.load(changed_rows + entry, mask=mask, other=0)
        old = tl.load(changed_old + entry, mask=mask, other=-1)
        new = tl.load(labels + rows, mask=mask, other=0)
        at = tl.atomic_add(ends + new * REPLICAS + block % REPLICAS, 1, mask=mask, sem="relaxed")
        tl.store(entries + at, rows, mask=mask)
        tl.store(clusters + at, new, mask=mask)
        leaves = old >= 0
        at = tl.atomic_add(ends + old * REPLICAS + block % REPLICAS, 1, mask=leaves, sem="relaxed")
        tl.store(entries + at, ~rows, mask=leaves)
        tl.store(clusters + at, old, mask=leaves)


@triton.jit
def add_limbs(sums, p, quantum, inverse, step, skip, LIMBS: tl.constexpr):
    """Add some limbs of products to a tuple of sums, from limb `skip` on."""
    for _ in range(skip):
        p = (p - whole(p * inverse) * quantum) * step
    out = ()
    for limb in tl.static_range(LIMBS):
        shifted = p * inverse + SHIFT
        out = out + (sums[limb] + (shifted.to(tl.int64, bitcast=True) - SHIFT_BITS),)
        p = (p - (shifted - SHIFT) * quantum) * step
    return out


@triton.jit
def add_products(
    sums, x, w, sign, scale, quantum, inverse, step, skip,
    LIMBS: tl.constexpr, WEIGHTED: tl.constexpr, RECOVER: tl.constexpr,
):  # fmt: skip
    """Add weight times value, signed, to a tuple of sums."""
    a = x * sign * scale
    if WEIGHTED:
        p = a * w
        sums = add_limbs(sums, p, quantum, inverse, step, skip, LIMBS)
        if RECOVER:
            error = product_error(a, w + tl.zeros_like(a), p)
            sums = add_limbs(sums, error, quantum, inverse, step, skip, LIMBS)
        return sums
    else:
        return add_limbs(sums, a, quantum, inverse, step, skip, LIMBS)


@triton.jit
def add_ones(sums, sign, bits, skip, LIMBS: tl.constexpr):
    """Add signed ones, whose only limb is the first, ``2**bits``."""
    one = sign.to(tl.int64) << bits
    out = (sums[0] + tl.where(skip == 0, one, 0),)
    for limb in tl.static_range(1, LIMBS):
        out = out + (sums[limb],)
    return out


@triton.jit
def zeros(shape: tl.constexpr, LIMBS: tl.constexpr):
    """Return a tuple of sums of nothing."""
    out = ()
    for _ in tl.static_range(LIMBS):
        out = out + (tl.zeros(shape, tl.int64),)
    return out


@triton.jit
def flush(sums, at, limb_size, mask, there, LIMBS: tl.constexpr):
    """Add a tuple of sums to memory where `mask` is set, and return them without what was added.

    Only the first `there` of them have a place.
    """
    out = ()
    for limb in tl.static_range(LIMBS):
        none = tl.zeros_like(sums[limb])
        some = mask & (sums[limb] != none) & (none + limb < there)
        tl.atomic_add(at + limb * limb_size, sums[limb], mask=some, sem="relaxed")
        out = out + (tl.where(mask, 0, sums[limb]),)
    return out


@triton.jit(do_not_specialize=["d", "size", "bits", "n_limbs", "skip"])
def add_kernel(
    X, d, size, weights, lattice, entries, clusters, ends, flow,
    sums, bits, n_limbs, skip, limb_size,
    LIMBS: tl.constexpr, WEIGHTED: tl.constexpr, RECOVER: tl.constexpr,
    LANES: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Add the entries to the sums; programs of the first column block also add the weights."""
    if tl.load(flow + HALT) != 0:
        return
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
    count = tl.load(ends + size - 1)
    sums += skip * limb_size
    lane = tl.arange(0, LANES)
    for block in range(tl.program_id(0), tl.cdiv(count, LANES * RUN), tl.num_programs(0)):
        begin = (block * LANES + lane) * RUN
        current = tl.load(clusters + begin, mask=begin < count, other=0)
        own = zeros((LANES, COLUMNS), LIMBS)
        own_weight = zeros((LANES,), LIMBS)
        for ahead in range(0, RUN, AHEAD):
            signs = ()
            kinds = ()
            values = ()
            factors = ()
            last = current
            for i in tl.static_range(AHEAD):
                place = begin + ahead + i
                there = place < count
                entry = tl.load(entries + place, mask=there, other=0)
                last = tl.load(clusters + place, mask=there, other=last)
                kinds = kinds + (last,)
                signs = signs + (tl.where(there, tl.where(entry < 0, -1.0, 1.0), 0.0),)
                row = tl.where(entry < 0, ~entry, entry).to(tl.int64)
                x = tl.load(
                    X + row[:, None] * d + f[None, :], mask=there[:, None] & column, other=0.0
                )
                values = values + (x,)
                if WEIGHTED:
                    factors = factors + (tl.load(weights + row, mask=there, other=0.0),)
                else:
                    factors = factors + (signs[i],)
            # Entries are sorted: if the last is of the current cluster, so are those before.
            mixed = tl.max((last != current).to(tl.int32), 0) > 0
            for i in tl.static_range(AHEAD):
                if mixed:
                    leaves = kinds[i] != current
                    at = sums + current.to(tl.int64)[:, None] * m + f[None, :]
                    own = flush(own, at, limb_size, leaves[:, None] & column, n_limbs - skip, LIMBS)
                    at = sums + current.to(tl.int64) * m + d
                    own_weight = flush(
                        own_weight, at, limb_size, leaves & first_block, n_limbs - skip, LIMBS
                    )
                    current = kinds[i]
                own = add_products(
                    own, values[i].to(tl.float64), factors[i][:, None], signs[i][:, None],
                    scale, quantum, inverse, step, skip, LIMBS, WEIGHTED, RECOVER,
                )  # fmt: skip
                if WEIGHTED:
                    own_weight = add_products(
                        own_weight, 1.0, factors[i], signs[i],
                        weight_scale, weight_quantum, weight_inverse, step, skip,
                        LIMBS, WEIGHTED, RECOVER,
                    )  # fmt: skip
                else:
                    own_weight = add_ones(own_weight, signs[i], bits, skip, LIMBS)
        at = sums + current.to(tl.int64)[:, None] * m + f[None, :]
        flush(own, at, limb_size, (begin < count)[:, None] & column, n_limbs - skip, LIMBS)
        at = sums + current.to(tl.int64) * m + d
        flush(own_weight, at, limb_size, (begin < count) & first_block, n_limbs - skip, LIMBS)


class Moves:
    """The sorted moves of a run's iterations.

    Parameters
    ----------
    n, k : int
    device : torch.device
    """

    def __init__(self, n: int, k: int, device: torch.device) -> None:
        # Few clusters have replicas of their counters, lest all rows meet at the same.
        self.replicas = max(1, COUNTERS.value // next_power(k))
        self.counts = torch.zeros(k * self.replicas, dtype=torch.int32, device=device)
        self.ends = torch.empty(k * self.replicas, dtype=torch.int32, device=device)
        self.entries = torch.empty(2 * n, dtype=torch.int32, device=device)
        self.clusters = torch.empty(2 * n, dtype=torch.int32, device=device)

    def add(
        self, X: torch.Tensor, lattice: Lattice, labels: torch.Tensor, changed_rows: torch.Tensor,
        changed_old: torch.Tensor, flow: torch.Tensor, sums: torch.Tensor,
    ) -> None:  # fmt: skip
        """Move the listed rows from their old clusters to those of their labels.

        Parameters
        ----------
        changed_rows, changed_old : int32 tensors of shape (n,)
            As many entries as ``flow[N_CHANGED]`` says.
        sums : int64 tensor of shape (1, n_limbs, k, d + 1)
        """
        _, n_limbs, k, m = sums.shape
        wide = 8 * processors(X.device)
        size = len(self.counts)
        count_kernel[(wide,)](
            labels, changed_rows, changed_old, self.counts, flow, REPLICAS=self.replicas
        )
        place_kernel[(1,)](self.counts, self.ends, size, flow, num_warps=8)
        sort_kernel[(wide,)](
            labels, changed_rows, changed_old, self.ends, self.entries, self.clusters, flow,
            REPLICAS=self.replicas,
        )  # fmt: skip
        columns = min(THREADS, next_power(m - 1))
        limbs = min(n_limbs, MOST_LIMBS)
        for skip in range(0, n_limbs, limbs):
            add_kernel[(2 * wide, ceil_div(m - 1, columns))](
                X, m - 1, size, lattice.weights, lattice.columns, self.entries, self.clusters,
                self.ends, flow, sums, lattice.grid.bits, n_limbs, skip, k * m, LIMBS=limbs,
                WEIGHTED=lattice.weights is not None, RECOVER=lattice.grid.recover,
                LANES=THREADS // columns, COLUMNS=columns, num_warps=THREADS // 32, **EXACT,
            )  # fmt: skip
