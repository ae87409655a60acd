"""How many labels occur."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.launching import ceil_div, processors

__all__ = ["n_distinct"]

BLOCK = tl.constexpr(1024)


@triton.jit(do_not_specialize=["n", "k"])
def distinct_kernel(labels, n, k, seen):
    count = tl.zeros((BLOCK,), tl.int32)
    for block in range(tl.program_id(0), tl.cdiv(n, BLOCK), tl.num_programs(0)):
        row = block * BLOCK + tl.arange(0, BLOCK)
        label = tl.load(labels + row, mask=row < n, other=0)
        # Looked at first, since few rows are the first of their cluster.
        new = (row < n) & (tl.load(seen + label, volatile=True) == 0)
        before = tl.atomic_xchg(seen + label, 1, mask=new, sem="relaxed")
        count += (new & (before == 0)).to(tl.int32)
    tl.atomic_add(seen + k, tl.sum(count, 0), sem="relaxed")


def n_distinct(labels: torch.Tensor, k: int) -> int:
    """Return how many of k labels occur: int32, shape (n,)."""
    # Whether each was seen, and the count.
    seen = torch.zeros(k + 1, dtype=torch.int32, device=labels.device)
    programs = min(ceil_div(len(labels), BLOCK.value), 8 * processors(labels.device))
    distinct_kernel[(programs,)](labels, len(labels), k, seen)
    return int(seen[k])
