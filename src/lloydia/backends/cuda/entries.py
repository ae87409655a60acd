"""Entries of the rows that changed, sorted by cluster.

A row that changed is two entries, one for the cluster that it joins and one for that it leaves.  A
counting sort brings the entries of a cluster together.  A block of entries is sorted by itself
first, so that it counts for each cluster, and asks where its entries go, once: an atomic operation
an entry would take longer than all the rest.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.flow import HALT, N_CHANGED, first_row, own_flow, programs_each
from lloydia.backends.cuda.launching import next_power, processors
from lloydia.backends.cuda.recording import launch

__all__ = ["MOST_BINS", "Entries"]

# Entries and counters that a program looks at together; clusters that blocks of entries are sorted
# by, and the least that a histogram has.
ROWS = tl.constexpr(1 << 10)
COUNTERS = tl.constexpr(4096)
LOG_ROWS = tl.constexpr(10)
MOST_BINS, LEAST_BINS = 1024, 128


@triton.jit
def block_of(block, labels, changed_rows, changed_old, n_changed):
    """Return the clusters of a block of entries, and which are there.

    Rows join clusters in even blocks, and leave them in odd ones.
    """
    at = block // 2 * ROWS + tl.arange(0, ROWS)
    mask = at < n_changed
    if block % 2 == 0:
        rows = tl.load(changed_rows + at, mask=mask, other=0)
        cluster = tl.load(labels + rows, mask=mask, other=0)
    else:
        cluster = tl.load(changed_old + at, mask=mask, other=-1)
    return cluster, mask & (cluster >= 0)


@triton.jit(do_not_specialize=["n", "k"])
def count_kernel(labels, n, changed_rows, changed_old, counts, k, flow, BINS: tl.constexpr):
    """Count the entries of each cluster; BINS is 0 where there are too many clusters to sort by."""
    flow = own_flow(flow)
    if tl.load(flow + HALT) != 0:
        return
    changed_rows += first_row(n)
    changed_old += first_row(n)
    counts += tl.program_id(2).to(tl.int64) * k
    n_changed = tl.load(flow + N_CHANGED)
    for block in range(tl.program_id(0), 2 * tl.cdiv(n_changed, ROWS), tl.num_programs(0)):
        cluster, there = block_of(block, labels, changed_rows, changed_old, n_changed)
        if BINS > 0:
            many = tl.histogram(cluster, BINS, there)
            tl.atomic_add(counts + tl.arange(0, BINS), many, mask=many > 0, sem="relaxed")
        else:
            tl.atomic_add(counts + cluster, 1, mask=there, sem="relaxed")


@triton.jit(do_not_specialize=["k"])
def place_kernel(counts, ends, k, flow):
    """Turn counts into where the entries of each cluster begin; `ends` moves on as they come."""
    if tl.load(own_flow(flow) + HALT) != 0:
        return
    counts += tl.program_id(2).to(tl.int64) * k
    ends += tl.program_id(2).to(tl.int64) * k
    before = 0
    for first in range(0, k, COUNTERS):
        j = first + tl.arange(0, COUNTERS)
        count = tl.load(counts + j, mask=j < k, other=0)
        tl.store(ends + j, before + tl.cumsum(count, 0) - count, mask=j < k)
        tl.store(counts + j, tl.zeros((COUNTERS,), tl.int32), mask=j < k)
        before += tl.sum(count, 0)


@triton.jit
def ascending(keys, place):
    """Return a block of integers in ascending order: Batcher's bitonic sort (AFIPS 1968)."""
    for stage in tl.static_range(1, LOG_ROWS + 1):
        for step in tl.static_range(stage):
            partner = place ^ (1 << (stage - 1 - step))
            other = tl.gather(keys, partner, 0)
            # Runs of 2**stage ascend and descend by turns.
            lower = (place < partner) == ((place & (1 << stage)) == 0)
            keys = tl.where(lower, tl.minimum(keys, other), tl.maximum(keys, other))
    return keys


@triton.jit(do_not_specialize=["n", "k"])
def sort_kernel(
    labels, n, changed_rows, changed_old, ends, k, entries, clusters, flow, BINS: tl.constexpr,
):  # fmt: skip
    """Put each entry in its place: the row, or for a cluster that it leaves its complement."""
    flow = own_flow(flow)
    if tl.load(flow + HALT) != 0:
        return
    changed_rows += first_row(n)
    changed_old += first_row(n)
    ends += tl.program_id(2).to(tl.int64) * k
    entries += first_row(2 * n)
    clusters += first_row(2 * n)
    n_changed = tl.load(flow + N_CHANGED)
    place = tl.arange(0, ROWS)
    for block in range(tl.program_id(0), 2 * tl.cdiv(n_changed, ROWS), tl.num_programs(0)):
        cluster, there = block_of(block, labels, changed_rows, changed_old, n_changed)
        if tl.max(there.to(tl.int32), 0) > 0:
            if BINS > 0:
                many = tl.histogram(cluster, BINS, there)
                some = many > 0
                begin = tl.atomic_add(ends + tl.arange(0, BINS), many, mask=some, sem="relaxed")
                begin = tl.where(some, begin - (tl.cumsum(many, 0) - many), 0)
                order = ascending(tl.where(there, cluster, BINS) * ROWS + place, place)
                cluster, own = order // ROWS, order % ROWS
                there = cluster < BINS
                at = place + tl.gather(begin, tl.where(there, cluster, 0), 0)
            else:
                own = place
                at = tl.atomic_add(ends + cluster, 1, mask=there, sem="relaxed")
            rows = tl.load(changed_rows + block // 2 * ROWS + own, mask=there, other=0)
            tl.store(entries + at, tl.where(block % 2 == 0, rows, ~rows), mask=there)
            tl.store(clusters + at, cluster, mask=there)


class Entries:
    """The sorted entries of a run's iterations.

    Parameters
    ----------
    n, k : int
    device : torch.device
    members : int
        Of a batch.

    Attributes
    ----------
    rows, clusters : int32 (2 members n,)
        The row, or for a cluster that it leaves its complement; and that cluster.
    ends : int32 (members k,)
        Where the entries of each cluster end.
    """

    def __init__(self, n: int, k: int, device: torch.device, members: int = 1) -> None:
        self.n, self.k, self.members = n, k, members
        self.bins = next_power(k, LEAST_BINS) if k <= MOST_BINS else 0
        self.counts = torch.zeros(members * k, dtype=torch.int32, device=device)
        self.ends = torch.empty_like(self.counts)
        self.rows = torch.empty(2 * members * n, dtype=torch.int32, device=device)
        self.clusters = torch.empty_like(self.rows)

    def sort(
        self, labels: torch.Tensor, changed_rows: torch.Tensor, changed_old: torch.Tensor,
        flow: torch.Tensor,
    ) -> None:  # fmt: skip
        """Queue it for the listed rows.

        Parameters
        ----------
        labels : int32 tensor of shape (members n,)
        changed_rows, changed_old : int32 tensors of shape (members n,)
            As many rows, and their old labels, as ``flow[N_CHANGED]`` says.
        flow : int32 tensor
        """
        n, k, members, bins = self.n, self.k, self.members, self.bins
        programs = programs_each(8 * processors(labels.device), members)
        launch(
            count_kernel, (programs, 1, members),
            labels, n, changed_rows, changed_old, self.counts, k, flow, BINS=bins,
        )  # fmt: skip
        launch(place_kernel, (1, 1, members), self.counts, self.ends, k, flow, num_warps=8)
        launch(
            sort_kernel, (programs, 1, members),
            labels, n, changed_rows, changed_old, self.ends, k, self.rows, self.clusters, flow,
            BINS=bins,
        )  # fmt: skip
