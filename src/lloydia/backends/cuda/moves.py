"""Rows that changed, sorted by cluster: neighbours in the list are added before they meet a sum.

A row that changed is two entries, one for the cluster that it joins and one for that it leaves.  A
counting sort brings the entries of a cluster together; a program adds some of them in registers and
needs one atomic operation a cluster and column for all of them, where the rows in their own order
would need one each.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.exact_numbers import product_error, whole
from lloydia.backends.cuda.flow import HALT, N_CHANGED
from lloydia.backends.cuda.launching import EXACT, next_power, processors
from lloydia.backends.cuda.sums import Lattice

__all__ = ["Moves"]

# The cluster of entries that are not there.
LAST = tl.constexpr(2147483647)
# Entries and clusters that a program looks at together.
ENTRIES = tl.constexpr(512)
CLUSTERS = tl.constexpr(1024)
# Rows that are added in registers.
GROUP = 32


@triton.jit
def count_kernel(labels, changed_rows, changed_old, counts, flow):
    """Count the entries of each cluster."""
    if tl.load(flow + HALT) != 0:
        return
    n_changed = tl.load(flow + N_CHANGED)
    for block in range(tl.program_id(0), tl.cdiv(n_changed, ENTRIES), tl.num_programs(0)):
        entry = block * ENTRIES + tl.arange(0, ENTRIES)
        mask = entry < n_changed
        old = tl.load(changed_old + entry, mask=mask, other=-1)
        new = tl.load(
            labels + tl.load(changed_rows + entry, mask=mask, other=0), mask=mask, other=0
        )
        tl.atomic_add(counts + new, 1, mask=mask, sem="relaxed")
        tl.atomic_add(counts + old, 1, mask=old >= 0, sem="relaxed")


@triton.jit(do_not_specialize=["k"])
def place_kernel(counts, ends, k, flow):
    """Turn counts into where the entries of each cluster begin; `ends` moves on as they come."""
    if tl.load(flow + HALT) != 0:
        return
    before = 0
    for first in range(0, k, CLUSTERS):
        j = first + tl.arange(0, CLUSTERS)
        count = tl.load(counts + j, mask=j < k, other=0)
        tl.store(ends + j, before + tl.cumsum(count, 0) - count, mask=j < k)
        tl.store(counts + j, tl.zeros((CLUSTERS,), tl.int32), mask=j < k)
        before += tl.sum(count, 0)


@triton.jit
def sort_kernel(labels, changed_rows, changed_old, ends, entries, clusters, flow):
    """Put each entry in its place: the row, or for a cluster that it leaves its complement."""
    if tl.load(flow + HALT) != 0:
        return
    n_changed = tl.load(flow + N_CHANGED)
    for block in range(tl.program_id(0), tl.cdiv(n_changed, ENTRIES), tl.num_programs(0)):
        entry = block * ENTRIES + tl.arange(0, ENTRIES)
        mask = entry < n_changed
        rows = tl.load(changed_rows + entry, mask=mask, other=0)
        old = tl.load(changed_old + entry, mask=mask, other=-1)
        new = tl.load(labels + rows, mask=mask, other=0)
        at = tl.atomic_add(ends + new, 1, mask=mask, sem="relaxed")
        tl.store(entries + at, rows, mask=mask)
        tl.store(clusters + at, new, mask=mask)
        leaves = old >= 0
        at = tl.atomic_add(ends + old, 1, mask=leaves, sem="relaxed")
        tl.store(entries + at, ~rows, mask=leaves)
        tl.store(clusters + at, old, mask=leaves)


@triton.jit
def add_sorted(first, p, sign, cluster, quantum, inverse, sums, f, m, bits, n_limbs, limb_size):
    """Add products of sorted entries to their clusters' sums, from limb `first` on."""
    step = ((1023 + bits.to(tl.int64)) << 52).to(tl.float64, bitcast=True)
    limb = first
    left = 1
    while (limb < n_limbs) & (left != 0):
        v = whole(p * inverse)
        integer = v.to(tl.int64) * sign[:, None]
        j = tl.min(cluster, 0)
        while j < LAST:
            total = tl.sum(tl.where((cluster == j)[:, None], integer, 0), 0)
            at = sums + limb * limb_size + j.to(tl.int64) * m + f
            tl.atomic_add(at, total, mask=(f < m) & (total != 0), sem="relaxed")
            j = tl.min(tl.where(cluster > j, cluster, LAST), 0)
        p = (p - v * quantum) * step
        left = tl.max(tl.max((p != 0.0).to(tl.int32), 1), 0)
        limb += 1


@triton.jit
def add_columns(
    X, rows, sign, cluster, mask, f, d, weights, lattice, sums, bits, n_limbs, limb_size,
    WEIGHTED: tl.constexpr, RECOVER: tl.constexpr,
):  # fmt: skip
    """Add some columns of sorted entries; column d is the weight."""
    m = d + 1
    column = f < m
    scale = tl.load(lattice + f, mask=column, other=0.0)[None, :]
    quantum = tl.load(lattice + m + f, mask=column, other=0.0)[None, :]
    inverse = tl.load(lattice + 2 * m + f, mask=column, other=0.0)[None, :]
    at = rows.to(tl.int64)[:, None] * d + f[None, :]
    x = tl.load(X + at, mask=mask[:, None] & (f < d)[None, :], other=0.0).to(tl.float64)
    a = tl.where(mask[:, None], tl.where((f == d)[None, :], 1.0, x), 0.0) * scale
    if WEIGHTED:
        w = tl.load(weights + rows, mask=mask, other=0.0)[:, None]
        p = a * w
        add_sorted(0, p, sign, cluster, quantum, inverse, sums, f, m, bits, n_limbs, limb_size)
        if RECOVER:
            # At most 2**-53 |p|, less than half a step of limb 0.
            step = ((1023 + bits.to(tl.int64)) << 52).to(tl.float64, bitcast=True)
            error = product_error(a, w, p) * step
            add_sorted(
                1, error, sign, cluster, quantum, inverse, sums, f, m, bits, n_limbs, limb_size
            )
    else:
        add_sorted(0, a, sign, cluster, quantum, inverse, sums, f, m, bits, n_limbs, limb_size)


@triton.jit(do_not_specialize=["d", "k", "bits", "n_limbs"])
def add_kernel(
    X, d, k, weights, lattice, entries, clusters, ends, flow, sums, bits, n_limbs, limb_size,
    WEIGHTED: tl.constexpr, RECOVER: tl.constexpr, GROUP: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    if tl.load(flow + HALT) != 0:
        return
    count = tl.load(ends + k - 1)
    for block in range(tl.program_id(0), tl.cdiv(count, GROUP), tl.num_programs(0)):
        place = block * GROUP + tl.arange(0, GROUP)
        mask = place < count
        entry = tl.load(entries + place, mask=mask, other=0)
        cluster = tl.load(clusters + place, mask=mask, other=LAST)
        sign = tl.where(entry < 0, -1, 1).to(tl.int64)
        rows = tl.where(entry < 0, ~entry, entry)
        for first in range(0, d, COLUMNS):
            f = first + tl.arange(0, COLUMNS)
            f = tl.where(f < d, f, d + 1)
            add_columns(
                X, rows, sign, cluster, mask, f, d, weights, lattice, sums,
                bits, n_limbs, limb_size, WEIGHTED, RECOVER,
            )  # fmt: skip
        add_columns(
            X, rows, sign, cluster, mask, d + tl.arange(0, 1), d, weights, lattice, sums,
            bits, n_limbs, limb_size, WEIGHTED, RECOVER,
        )  # fmt: skip


class Moves:
    """The sorted moves of a run's iterations.

    Parameters
    ----------
    n, k : int
    device : torch.device
    """

    def __init__(self, n: int, k: int, device: torch.device) -> None:
        self.counts = torch.zeros(k, dtype=torch.int32, device=device)
        self.ends = torch.empty(k, dtype=torch.int32, device=device)
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
        programs = (8 * processors(X.device),)
        count_kernel[programs](labels, changed_rows, changed_old, self.counts, flow)
        place_kernel[(1,)](self.counts, self.ends, k, flow)
        sort_kernel[programs](
            labels, changed_rows, changed_old, self.ends, self.entries, self.clusters, flow
        )
        columns = min(128, next_power(m - 1))
        add_kernel[programs](
            X, m - 1, k, lattice.weights, lattice.columns, self.entries, self.clusters, self.ends,
            flow, sums, lattice.grid.bits, n_limbs, k * m,
            WEIGHTED=lattice.weights is not None, RECOVER=lattice.grid.recover,
            GROUP=GROUP, COLUMNS=columns, num_warps=8 if columns > 64 else 4, **EXACT,
        )  # fmt: skip
