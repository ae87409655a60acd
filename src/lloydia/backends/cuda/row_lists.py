"""Lists of rows that kernels fill: positions are taken once a program, with one atomic."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.flow import HALT, N_CHANGED
from lloydia.backends.cuda.launching import ceil_div

__all__ = ["IN_DOUBT", "part", "relabel"]

# In place of a label.
IN_DOUBT = tl.constexpr(-1)
BLOCK = 1024


@triton.jit
def append(values, mask, target, counter):
    """Append the values where `mask` is set to the list at `target`, of length ``*counter``."""
    chosen = mask.to(tl.int32)
    total = tl.sum(chosen, 0)
    if total > 0:
        first = tl.atomic_add(counter, total, sem="relaxed")
        tl.store(target + first + tl.cumsum(chosen, 0) - chosen, values, mask=mask)


@triton.jit
def relabel(rows, new, mask, labels, changed_rows, changed_old, flow):
    """Write the final labels of rows; list those that change, with their old labels."""
    old = tl.load(labels + rows, mask=mask, other=0)
    changed = mask & (new != old)
    chosen = changed.to(tl.int32)
    total = tl.sum(chosen, 0)
    if total > 0:
        tl.store(labels + rows, new, mask=changed)
        first = tl.atomic_add(flow + N_CHANGED, total, sem="relaxed")
        at = first + tl.cumsum(chosen, 0) - chosen
        tl.store(changed_rows + at, rows, mask=changed)
        tl.store(changed_old + at, old, mask=changed)


@triton.jit(do_not_specialize=["n"])
def part_kernel(
    found, n, labels, changed_rows, changed_old, doubts, n_doubt, flow, BLOCK: tl.constexpr
):  # fmt: skip
    if tl.load(flow + HALT) != 0:
        return
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = rows < n
    new = tl.load(found + rows, mask=mask, other=0)
    relabel(rows, new, mask & (new != IN_DOUBT), labels, changed_rows, changed_old, flow)
    append(rows, mask & (new == IN_DOUBT), doubts, n_doubt)


def part(
    found: torch.Tensor,
    labels: torch.Tensor,
    changed_rows: torch.Tensor,
    changed_old: torch.Tensor,
    doubts: torch.Tensor,
    n_doubt: torch.Tensor,
    flow: torch.Tensor,
) -> None:
    """Queue the parting of rows into those with final labels and those in doubt.

    A kernel of its own: a program that waits for atomics keeps a matrix unit waiting.
    """
    n = len(found)
    part_kernel[(ceil_div(n, BLOCK),)](
        found, n, labels, changed_rows, changed_old, doubts, n_doubt, flow, BLOCK=BLOCK
    )
