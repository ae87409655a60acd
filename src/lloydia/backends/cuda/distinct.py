"""Which labels occur."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.launching import ceil_div, processors
from lloydia.backends.cuda.recording import launch

__all__ = ["n_distinct", "queue_seen", "see"]

BLOCK = tl.constexpr(1024)


@triton.jit
def see(labels, rows, inside, seen):
    """Note in `seen` the labels of some rows."""
    label = tl.load(labels + rows, mask=inside, other=0)
    # Looked at first, since few rows are the first of their cluster.
    known = tl.load(seen + label, mask=inside, other=1)
    tl.store(seen + label, 1, mask=known == 0)


@triton.jit(do_not_specialize=["n"])
def seen_kernel(labels, n, seen):
    for block in range(tl.program_id(0), tl.cdiv(n, BLOCK), tl.num_programs(0)):
        rows = block * BLOCK + tl.arange(0, BLOCK)
        see(labels, rows, rows < n, seen)


def queue_seen(labels: torch.Tensor, seen: torch.Tensor) -> None:
    """Queue that `seen`, zeros of shape (k,), int32, has a 1 for each of the labels: int32 (n,)."""
    programs = min(ceil_div(len(labels), BLOCK.value), 8 * processors(labels.device))
    launch(seen_kernel, (programs,), labels, len(labels), seen)


def n_distinct(labels: torch.Tensor, k: int) -> int:
    """Return how many of k labels occur: int32, shape (n,)."""
    seen = torch.zeros(k, dtype=torch.int32, device=labels.device)
    queue_seen(labels, seen)
    return int(seen.count_nonzero())
