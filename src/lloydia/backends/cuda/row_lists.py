"""Lists of rows that kernels fill: positions are taken once a program, with one atomic."""

from __future__ import annotations

import triton
import triton.language as tl

from lloydia.backends.cuda.flow import N_CHANGED

__all__ = ["append", "relabel"]


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
