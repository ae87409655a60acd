"""Lists of rows that kernels fill: one atomic reserves places for a block of rows."""

from __future__ import annotations

import triton
import triton.language as tl

from lloydia.backends.cuda.device_functions.run_state import N_AMBIGUOUS, N_CHANGED

__all__ = ["append", "change", "divide", "relabel"]


@triton.jit
def append(values, mask, target, counter):
    """Append the values where `mask` is set to the list at `target`, of length ``*counter``."""
    chosen = mask.to(tl.int32)
    total = tl.sum(chosen, 0)
    if total > 0:
        first = tl.atomic_add(counter, total, sem="relaxed")
        tl.store(target + first + tl.cumsum(chosen, 0) - chosen, values, mask=mask)


@triton.jit
def relabel(rows, new, mask, labels, changed_rows, changed_old, run_state):
    """Write the final labels of rows; list the rows that change, with their old labels."""
    old = tl.load(labels + rows, mask=mask, other=0)
    change(rows, old, new, mask, labels, changed_rows, changed_old, run_state)


@triton.jit
def change(rows, old, new, mask, labels, changed_rows, changed_old, run_state):
    """Do what :func:`relabel` does, where the old labels are loaded already."""
    changed = mask & (new != old)
    chosen = changed.to(tl.int32)
    total = tl.sum(chosen, 0)
    # Where rows are fewer than threads, several warps hold the same row: all must have loaded `old`
    # before one writes.
    tl.debug_barrier()
    if total > 0:
        tl.store(labels + rows, new, mask=changed)
        first = tl.atomic_add(run_state + N_CHANGED, total, sem="relaxed")
        at = first + tl.cumsum(chosen, 0) - chosen
        tl.store(changed_rows + at, rows, mask=changed)
        tl.store(changed_old + at, old, mask=changed)


@triton.jit
def total_and_before(counts):
    """Return the sum of all counts, and the sum of those before each, in some order."""
    HALF: tl.constexpr = counts.shape[0] // 2
    # A thread has counts of both halves and adds these first.
    one, other = tl.split(tl.permute(tl.reshape(counts, (2, HALF)), (1, 0)))
    both = one + other
    before = tl.cumsum(both, 0) - both
    before = tl.permute(tl.join(before, before + one), (1, 0))
    return tl.sum(both, 0), tl.reshape(before, counts.shape)


@triton.jit
def divide(
    rows, old, new, best_score, mask, certified, labels, changed_rows, changed_old, ambiguous,
    nominates, candidates, run_state, COUNT: tl.constexpr,
):  # fmt: skip
    """Relabel certified rows, as :func:`relabel` does, and list the others in `ambiguous`.

    One sum and one atomic serve both lists: their counters are the halves of one 64-bit integer.
    Rows are at least as many as threads, so that one thread holds each row, without the barrier of
    :func:`change`.

    If `nominates` is 1, the first two of the COUNT numbers of an ambiguous row in `candidates`
    become the label that is not certified and the bits of `best_score`.
    """
    tl.static_assert(N_AMBIGUOUS == N_CHANGED + 1 and N_CHANGED % 2 == 0)
    tl.static_assert(rows.shape[0] < 1 << 15)
    changed = mask & certified & (new != old)
    doubtful = mask & ~certified
    both = changed.to(tl.int32) + (doubtful.to(tl.int32) << 16)
    total, before = total_and_before(both)
    if total > 0:
        tl.store(labels + rows, new, mask=changed)
        counters = (run_state + N_CHANGED).to(tl.pointer_type(tl.int64))
        counts = (total & 0xFFFF) + ((total >> 16).to(tl.int64) << 32)
        first = tl.atomic_add(counters, counts, sem="relaxed")
        at = (first & 0xFFFFFFFF) + (before & 0xFFFF)
        tl.store(changed_rows + at, rows, mask=changed)
        tl.store(changed_old + at, old, mask=changed)
        at = (first >> 32) + (before >> 16)
        tl.store(ambiguous + at, rows, mask=doubtful)
        if nominates != 0:
            tl.store(candidates + at * COUNT, new, mask=doubtful)
            tl.store(
                candidates + at * COUNT + 1, best_score.to(tl.int32, bitcast=True), mask=doubtful
            )
