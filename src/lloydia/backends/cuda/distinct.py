"""How many labels occur."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.launching import ceil_div, processors

__all__ = ["n_distinct"]

BLOCK = tl.constexpr(1024)


# Rows a cluster that are looked at first: mostly they show all clusters.
FEW = 64


@triton.jit(do_not_specialize=["n", "step", "k"])
def distinct_kernel(labels, n, step, k, seen):
    """Look at every `step`-th of the rows, `n` in all."""
    count = tl.zeros((BLOCK,), tl.int32)
    for block in range(tl.program_id(0), tl.cdiv(n, BLOCK), tl.num_programs(0)):
        row = block * BLOCK + tl.arange(0, BLOCK)
        label = tl.load(labels + row.to(tl.int64) * step, mask=row < n, other=0)
        # Looked at first, since few rows are the first of their cluster.
        new = (row < n) & (tl.load(seen + label, volatile=True) == 0)
        before = tl.atomic_xchg(seen + label, 1, mask=new, sem="relaxed")
        count += (new & (before == 0)).to(tl.int32)
    tl.atomic_add(seen + k, tl.sum(count, 0), sem="relaxed")


def n_distinct(labels: torch.Tensor, k: int) -> int:
    """Return how many of k labels occur: int32, shape (n,)."""
    # Whether each was seen, and the count.
    seen = torch.zeros(k + 1, dtype=torch.int32, device=labels.device)
    n = len(labels)
    for step in sorted({max(1, n // (FEW * k)), 1}, reverse=True):
        looked_at = ceil_div(n, step)
        programs = min(ceil_div(looked_at, BLOCK.value), 8 * processors(labels.device))
        distinct_kernel[(programs,)](labels, looked_at, step, k, seen)
        if (count := int(seen[k])) == k:
            break
    return count
