"""Which labels occur.

While a label is unseen, all programs that find it write to one address; so a few rows for each
cluster are read before all others.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.runtime.launching import ceil_div, launch, processors
from lloydia.backends.cuda.runtime.own_device import current

__all__ = ["ROWS_PER_MARK", "n_distinct", "n_missing", "see"]

BLOCK = tl.constexpr(1024)
# The number of rows for each cluster that are read first.
ROWS_PER_MARK = tl.constexpr(16)


@triton.jit
def see(labels, rows, inside, seen):
    """Mark in `seen` the labels of some rows; -1 is none."""
    label = tl.load(labels + rows, mask=inside, other=-1)
    # A plain load first: few rows are the first of their cluster.
    known = tl.load(seen + label, mask=label >= 0, other=1)
    tl.store(seen + label, 1, mask=known == 0)


@triton.jit
def n_missing(seen, k):
    """Return how many labels have not been seen yet."""
    missing = 0
    for first in range(0, k, BLOCK):
        label = first + tl.arange(0, BLOCK)
        # Past the L1 cache, since other programs write it.
        known = tl.load(seen + label, mask=label < k, other=1, volatile=True)
        missing += tl.sum((known == 0).to(tl.int32), 0)
    return missing


@triton.jit(do_not_specialize=["n", "k"])
def seen_kernel(labels, n, seen, k):
    """Mark labels until all have been seen, which is usually soon."""
    first = tl.program_id(0).to(tl.int64) * BLOCK
    missing = n_missing(seen, k)
    while (first < n) & (missing > 0):
        # As many rows as one check covers.
        for _ in range(0, k, BLOCK):
            rows = first + tl.arange(0, BLOCK)
            see(labels, rows, rows < n, seen)
            first += tl.num_programs(0) * BLOCK
        missing = n_missing(seen, k)


def n_distinct(labels: torch.Tensor, k: int) -> int:
    """Return how many of k labels occur: int32, shape (n,), on any device."""
    seen = torch.zeros(k, dtype=torch.int32, device=labels.device)
    # This is called outside engines: the current device may be another one.
    with current(labels.device):
        for n in sorted({min(ROWS_PER_MARK.value * k, len(labels)), len(labels)}):
            programs = min(ceil_div(n, BLOCK.value), 8 * processors(labels.device))
            launch(seen_kernel, (programs,), labels, n, seen, k)
    return int(seen.count_nonzero())
