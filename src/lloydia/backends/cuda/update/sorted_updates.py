"""Updates of the rows that changed, sorted by cluster.

A row that changed is two updates: one for the cluster that it joins, one for the cluster that it
leaves.  A counting sort groups them by cluster.  Each program counts its own updates first, so that
it reserves places once for each cluster: one atomic for each update would take longer than all the
rest.  A program sorts one block of updates at a time, by two bits of the cluster after another
(radix sort, least significant digit first); the four digits' counts before an update are four
16-bit fields of one running sum.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.device_functions.run_state import (
    N_CHANGED,
    STOPPED,
    first_row,
    item_state,
    programs_each,
    wait_for_previous_kernel,
)
from lloydia.backends.cuda.protocols import LabelChanges
from lloydia.backends.cuda.runtime.launching import ceil_div, launch, processors
from lloydia.backends.cuda.runtime.relocation import Scratch, tensors_of

__all__ = ["HISTOGRAM_BINS", "SortedUpdates", "update_at"]

# Updates of a block, and the base-2 logarithm of their number.
LOG_ROWS = tl.constexpr(10)
ROWS = tl.constexpr(1 << 10)
# Counters of one step.
COUNTERS = tl.constexpr(4096)
# Neighbouring numbers of a running sum that one thread adds.
SIDE = tl.constexpr(8)
# The most clusters that a program counts by itself.
HISTOGRAM_BINS = 1024
# Warps of a program that sorts.
WARPS = 4


@triton.jit
def update_at(updates, place, count):
    """Return the sign, row and cluster of updates; past the end the last update with sign 0."""
    entry = tl.load(updates + tl.minimum(place, count - 1))
    row = entry.to(tl.int32)
    sign = tl.where(place < count, tl.where(row < 0, -1, 1), 0)
    return sign, tl.where(row < 0, ~row, row).to(tl.int64), (entry >> 32).to(tl.int32)


@triton.jit
def block_of(block, labels, changed_rows, changed_old, n_changed):
    """Return the clusters of a block of updates, and a mask of those that exist.

    Even blocks contain the clusters that rows join, odd blocks those that rows leave.
    """
    at = block // 2 * ROWS + tl.arange(0, ROWS)
    mask = at < n_changed
    if block % 2 == 0:
        rows = tl.load(changed_rows + at, mask=mask, other=0)
        cluster = tl.load(labels + rows, mask=mask, other=0)
    else:
        cluster = tl.load(changed_old + at, mask=mask, other=-1)
    return cluster, mask & (cluster >= 0)


@triton.jit
def as_pairs(counters):
    """Return a pointer to 32-bit counters as one to 64-bit integers, two counters each."""
    return counters.to(tl.pointer_type(tl.int64))


@triton.jit(do_not_specialize=["n", "pitch"])
def count_kernel(
    labels, n, changed_rows, changed_old, counts, pitch, befores, run_state, BINS: tl.constexpr
):
    """Count the updates of each cluster, and how many of them were counted before this program's.

    BINS is 0 if there are too many clusters for a histogram.
    """
    wait_for_previous_kernel()
    run_state = item_state(run_state)
    stopped, n_changed = tl.load(run_state + STOPPED), tl.load(run_state + N_CHANGED)
    program, n_programs = tl.program_id(0), tl.num_programs(0)
    n_blocks = 2 * tl.cdiv(n_changed, ROWS)
    if (stopped != 0) | (program >= n_blocks):
        return
    changed_rows += first_row(n)
    changed_old += first_row(n)
    counts += tl.program_id(2).to(tl.int64) * pitch
    befores += (tl.program_id(2).to(tl.int64) * n_programs + program) * BINS
    own = tl.zeros((BINS if BINS > 0 else 1,), tl.int32)
    for block in range(program, n_blocks, n_programs):
        cluster, there = block_of(block, labels, changed_rows, changed_old, n_changed)
        if BINS > 0:
            own += tl.histogram(cluster, BINS, there)
        else:
            tl.atomic_add(counts + cluster, 1, mask=there, sem="relaxed")
    if BINS > 0:
        # Two counters at a time, as the halves of a 64-bit integer.
        even, odd = tl.split(tl.reshape(own, (BINS // 2, 2)))
        both = even.to(tl.int64) + (odd.to(tl.int64) << 32)
        two = tl.arange(0, BINS // 2)
        counts, befores = as_pairs(counts), as_pairs(befores)
        before = tl.atomic_add(counts + two, both, mask=both != 0, sem="relaxed")
        tl.store(befores + two, before, mask=both != 0)


@triton.jit(do_not_specialize=["k", "pitch"])
def place_kernel(counts, pitch, begins, totals, k, run_state):
    """Turn counts into the place of each cluster's first update, and into the number of updates."""
    wait_for_previous_kernel()
    if tl.load(item_state(run_state) + STOPPED) != 0:
        return
    counts += tl.program_id(2).to(tl.int64) * pitch
    begins += tl.program_id(2).to(tl.int64) * k
    before = 0
    for first in range(0, k, COUNTERS):
        j = first + tl.arange(0, COUNTERS)
        count = tl.load(counts + j, mask=j < k, other=0)
        tl.store(begins + j, before + tl.cumsum(count, 0) - count, mask=j < k)
        tl.store(counts + j, tl.zeros((COUNTERS,), tl.int32), mask=j < k)
        before += tl.sum(count, 0)
    tl.store(totals + tl.program_id(2), before)


@triton.jit
def running_sum(x):
    """Return the inclusive prefix sums of a block of integers, and the sum of all."""
    # Neighbours are mostly in one thread, which adds them by itself.
    x = tl.reshape(x, (ROWS // SIDE, SIDE))
    every = tl.sum(x, 1)
    upto = tl.cumsum(every, 0)
    return tl.reshape(tl.cumsum(x, 1) + (upto - every)[:, None], (ROWS,)), tl.sum(every, 0)


@triton.jit
def by_digit(keys, there, n_there, low, out):
    """Write the keys to `out`, stably sorted by two of their bits.

    Return all of `out`, and a mask of its first `n_there` keys.
    """
    place = tl.arange(0, ROWS)
    field = (((keys >> low) & 3) * 16).to(tl.int64)
    one = tl.where(there, tl.full((ROWS,), 1, tl.int64) << field, 0)
    upto, every = running_sum(one)
    # Each field counts the updates with a lower digit, and those before with the same digit.
    before = (every << 16) + (every << 32) + (every << 48) + (upto - one)
    tl.store(out + ((before >> field) & 0xFFFF), keys, mask=there)
    # Below, each thread reads what others have stored.
    tl.debug_barrier()
    there = place < n_there
    return tl.load(out + place, mask=there, other=0), there


@triton.jit
def sorted_block(cluster, there, scratch, passes):
    """Return a block's updates by cluster: clusters, places in the block, mask, starts, ends.

    A start is the place of the first update of the same cluster.
    """
    place = tl.arange(0, ROWS)
    n_there = tl.sum(there.to(tl.int32), 0)
    keys = cluster.to(scratch.dtype.element_ty) * ROWS + place
    for i in range(passes):
        keys, there = by_digit(keys, there, n_there, LOG_ROWS + 2 * i, scratch + i % 2 * ROWS)
    cluster = (keys // ROWS).to(tl.int32)
    ordered = scratch + (passes + 1) % 2 * ROWS
    starts = scratch + passes % 2 * ROWS
    before = tl.load(ordered + place - 1, mask=there & (place > 0), other=-1)
    begins = there & ((place == 0) | (before // ROWS != cluster))
    number, _ = running_sum(begins.to(tl.int32))
    tl.store(starts + number - 1, place, mask=begins)
    tl.debug_barrier()
    start = tl.load(starts + number - 1, mask=there, other=0)
    after = tl.load(ordered + place + 1, mask=place + 1 < n_there, other=-1)
    ends = there & ((place == n_there - 1) | (after // ROWS != cluster))
    return cluster, keys % ROWS, there, start, ends


@triton.jit(do_not_specialize=["n", "k", "passes"])
def sort_kernel(
    labels, n, changed_rows, changed_old, begins, befores, k, updates, scratch, run_state, passes,
    BINS: tl.constexpr,
):  # fmt: skip
    """Write each update to its place: the row, or its complement for the cluster that it leaves.

    The launch grid is that of :func:`count_kernel`, so that each program has the same updates as
    there.
    """
    wait_for_previous_kernel()
    run_state = item_state(run_state)
    stopped, n_changed = tl.load(run_state + STOPPED), tl.load(run_state + N_CHANGED)
    program, n_programs = tl.program_id(0), tl.num_programs(0)
    n_blocks = 2 * tl.cdiv(n_changed, ROWS)
    if (stopped != 0) | (program >= n_blocks):
        return
    own = tl.program_id(2).to(tl.int64) * n_programs + program
    changed_rows += first_row(n)
    changed_old += first_row(n)
    updates += first_row(2 * n)
    begins += tl.program_id(2).to(tl.int64) * k
    befores += own * BINS
    scratch += own * 2 * ROWS
    place = tl.arange(0, ROWS)
    for block in range(program, n_blocks, n_programs):
        cluster, there = block_of(block, labels, changed_rows, changed_old, n_changed)
        if tl.max(there.to(tl.int32), 0) > 0:
            cluster, own_place, there, start, ends = sorted_block(cluster, there, scratch, passes)
            rows = tl.load(changed_rows + block // 2 * ROWS + own_place, mask=there, other=0)
            if BINS > 0:
                before = tl.load(befores + cluster, mask=there, other=0)
                first = tl.load(begins + cluster, mask=there, other=0) + before
                # All threads have loaded it.
                tl.debug_barrier()
                tl.store(befores + cluster, before + (place - start + 1), mask=ends)
            else:
                many = place - start + 1
                first = tl.atomic_add(begins + cluster, many, mask=ends, sem="relaxed")
                starts = scratch + passes % 2 * ROWS
                # All threads have loaded the starts.
                tl.debug_barrier()
                tl.store(starts + start, first, mask=ends)
                tl.debug_barrier()
                first = tl.load(starts + start, mask=there, other=0)
            low = tl.where(block % 2 == 0, rows, ~rows).to(tl.int64) & 0xFFFFFFFF
            at = first + (place - start)
            tl.store(updates + at, (cluster.to(tl.int64) << 32) | low, mask=there)
            # All threads have loaded what is in scratch.
            tl.debug_barrier()


class SortedUpdates:
    """The sorted updates of a run's iterations.

    Parameters
    ----------
    n, k : int
    device : torch.device
    batch_size : int

    Attributes
    ----------
    sorted : int64 (2 batch_size n,)
        The cluster in the high half; the row, or its complement where it leaves, in the low half.
    totals : int32 (batch_size,)
        The number of updates.
    """

    def __init__(self, n: int, k: int, device: torch.device, batch_size: int = 1) -> None:
        self.n, self.k, self.batch_size = n, k, batch_size
        # One size, whatever k is: kernels are compiled for it.
        self.bins = HISTOGRAM_BINS if k <= HISTOGRAM_BINS else 0
        self.passes = ceil_div(max(1, (k - 1).bit_length()), 2)
        programs = programs_each(8 * processors(device), batch_size)
        self.programs = min(programs, 2 * ceil_div(n, ROWS.value))
        every = batch_size * self.programs
        self.pitch = self.bins or k
        # Zeros between iterations.
        self.counts = torch.zeros(batch_size * self.pitch, dtype=torch.int32, device=device)
        self.begins = torch.empty(batch_size * k, dtype=torch.int32, device=device)
        self.totals = torch.empty(batch_size, dtype=torch.int32, device=device)
        self.befores = torch.empty(every * self.bins, dtype=torch.int32, device=device)
        # A cluster and a place in a block; with very many clusters they need 64 bits.
        key = torch.int32 if k <= 2**31 // ROWS.value else torch.int64
        self.scratch = torch.empty(every * 2 * ROWS.value, dtype=key, device=device)
        self.sorted = torch.empty(2 * batch_size * n, dtype=torch.int64, device=device)

    @property
    def memory(self) -> Scratch:
        """All its memory, and which of it begins with zeros."""
        return tensors_of(self), [self.counts]

    def sort(self, changes: LabelChanges) -> None:
        """Queue the sorting of the updates of the rows that changed."""
        labels, changed_rows, changed_old, run_state = changes
        n, k, batch_size, bins = self.n, self.k, self.batch_size, self.bins
        grid = self.programs, 1, batch_size
        launch(
            count_kernel, grid,
            labels, n, changed_rows, changed_old, self.counts, self.pitch, self.befores, run_state,
            BINS=bins,
        )  # fmt: skip
        launch(
            place_kernel, (1, 1, batch_size),
            self.counts, self.pitch, self.begins, self.totals, k, run_state, num_warps=8,
        )  # fmt: skip
        launch(
            sort_kernel, grid,
            labels, n, changed_rows, changed_old, self.begins, self.befores, k, self.sorted,
            self.scratch, run_state, self.passes, BINS=bins, num_warps=WARPS,
        )  # fmt: skip
