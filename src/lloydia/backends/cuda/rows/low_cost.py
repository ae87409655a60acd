"""The sum of weight times D for rows of few features, in one launch.

The integers are those of :mod:`lloydia.backends.cuda.rows.totals`: their grid follows from the
largest term.  The grid is guessed first, which gives the same sum if that sum is exact; otherwise
all programs wait for each other and read the rows again.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.device_functions.feature_loads import features
from lloydia.backends.cuda.device_functions.iteration_report import CHANGED, EMPTY, HEAD
from lloydia.backends.cuda.device_functions.lane_sums import add_limbs, shifts_of, zeros
from lloydia.backends.cuda.device_functions.ptx.barrier import leave, resident, wait_for_all
from lloydia.backends.cuda.device_functions.run_state import ASSIGNED, ITERATION, STOPPED
from lloydia.backends.cuda.protocols import WholeRows
from lloydia.backends.cuda.rows.distinct import n_missing, see
from lloydia.backends.cuda.rows.totals import Cost, exponent_of, load_weights, power
from lloydia.backends.cuda.runtime.launching import (
    EXACT,
    INTERPRETED,
    ceil_div,
    given,
    launch,
    processors,
    where_given,
)
from lloydia.exact import sums as exact

__all__ = [
    "COST",
    "DONE",
    "RESIDENT",
    "cost_programs",
    "end_kernel",
    "low_cost",
    "queue_low_cost",
]

BLOCK = tl.constexpr(512)
# Programs on a multiprocessor.
RESIDENT = 4
# `out` has COST words: 0 to 2: the limbs, 3: their exponent, 4: the largest term; DONE: whether
# the sum is complete; 6: the complement of the upper half of the smallest term that is not 0.
LIMBS, COST, DONE = tl.constexpr(3), 7, tl.constexpr(5)
# The guess allows terms this many powers of two above those of the first rows.
MARGIN = tl.constexpr(8)
# The number of programs that mark labels as they go.
FIRST = tl.constexpr(16)
# The upper half of a float64 that is not negative has no bits beyond these.
HALF, NONE = tl.constexpr(32), tl.constexpr(0x7FFFFFFF)


@triton.jit
def terms(
    X, rows, inside, labels, labelled, centers, weights, weighted, d: tl.constexpr
):  # fmt: skip
    """Return weight times D of rows to the centres of their labels; 0 outside.

    If rows are not `labelled`, D is that to the first centre.
    """
    label = tl.load(labels + rows, mask=where_given(labelled, inside), other=0)
    x = features(X, rows.to(tl.int64) * d, inside, d)
    c = features(centers, label.to(tl.int64) * d, inside, d)
    D = tl.zeros(rows.shape, tl.float64)
    for f in tl.static_range(d):
        difference = x[f].to(tl.float64) - c[f].to(tl.float64)
        D += difference * difference
    return load_weights(weights, weighted, rows, inside) * D


@triton.jit
def limbs_of(
    X, n, labels, labelled, centers, weights, weighted, exponent, bits, seen, d: tl.constexpr
):  # fmt: skip
    """Return the limbs of this program's terms, on the grid of an exponent, if no term exceeds it.

    Also return the bits of the largest term, and the complement of the upper half of those of the
    smallest term that is not 0.
    """
    first = (bits - exponent) >> 1
    up, further = power(first), power(bits - exponent - first)
    shifts = shifts_of(tl.full((), 1.0, tl.float64), bits, LIMBS)
    limbs = zeros((BLOCK,), LIMBS)
    top = tl.zeros((BLOCK,), tl.int64)
    tiny = tl.zeros((BLOCK,), tl.int32)
    n_added = tl.zeros((), tl.int64)
    for block in range(tl.program_id(0), tl.cdiv(n, BLOCK), tl.num_programs(0)):
        rows = block * BLOCK + tl.arange(0, BLOCK)
        term = terms(X, rows, rows < n, labels, labelled, centers, weights, weighted, d)
        if seen is not None:
            # Not all programs, because they would write to the same few addresses at once.
            see(labels, rows, rows < tl.where(tl.program_id(0) < FIRST, n, 0), seen)
        # Bits of non-negative floats are ordered as the floats.
        number = term.to(tl.int64, bitcast=True)
        top = tl.maximum(top, number)
        upper = (number >> HALF).to(tl.int32)
        tiny = tl.maximum(tiny, tl.where(number > 0, upper ^ NONE, 0))
        # The largest term shows whether terms exceed the exponent.
        limbs = add_limbs(limbs, term * up * further, shifts, LIMBS)
        n_added += BLOCK
    found = ()
    for limb in tl.static_range(LIMBS):
        bits_of_shift = shifts[limb].to(tl.int64, bitcast=True)
        found = found + (tl.sum(limbs[limb], 0) - n_added * bits_of_shift,)
    return found, tl.max(top, 0), tl.max(tiny, 0)


@triton.jit
def see_remaining(labels, n, seen, k):
    """Mark the labels that occur, if the first programs have not seen all."""
    if n_missing(seen, k) > 0:
        for block in range(tl.program_id(0), tl.cdiv(n, BLOCK), tl.num_programs(0)):
            rows = block * BLOCK + tl.arange(0, BLOCK)
            see(labels, rows, rows < n, seen)


@triton.jit
def add_cost(
    X, n, k, labels, labelled, centers, weights, weighted, out, bits, seen, arrivals,
    d: tl.constexpr,
):  # fmt: skip
    """Add the limbs to `out`, COST zeros; mark in `seen` the labels that occur.

    The exponent is guessed from the first rows.  If no term exceeds it and all are multiples of the
    last place, the sum is exact, and equals that on the grid of the largest term.

    Return whether this program is the last.
    """
    n_programs = tl.num_programs(0)
    some = tl.arange(0, BLOCK)
    sample = terms(X, some, some < n, labels, labelled, centers, weights, weighted, d)
    exponent = exponent_of(tl.max(sample, 0)) + MARGIN
    rows = X, n, labels, labelled, centers, weights, weighted
    limbs, top, tiny = limbs_of(*rows, exponent, bits, seen, d)
    tl.atomic_max(out + 4, top, sem="relaxed")
    tl.atomic_max(out + 6, tiny.to(tl.int64), sem="relaxed")
    wait_for_all(arrivals, n_programs)
    if seen is not None:
        see_remaining(labels, n, seen, k)
    largest = tl.load(out + 4, volatile=True).to(tl.float64, bitcast=True)
    # The exponent of the smallest term, or a smaller one.
    upper = tl.load(out + 6, volatile=True) ^ NONE
    least = ((upper << HALF) | 1).to(tl.float64, bitcast=True)
    if (exponent_of(largest) > exponent) | (exponent_of(least) <= exponent - 3 * bits + 52):
        exponent = exponent_of(largest)
        limbs, top, tiny = limbs_of(*rows, exponent, bits, None, d)
    for limb in tl.static_range(LIMBS):
        tl.atomic_add(out + limb, limbs[limb], sem="relaxed")
    if tl.program_id(0) == 0:
        tl.store(out + 3, exponent.to(tl.int64))
        tl.store(out + DONE, tl.full((), 1, tl.int64))
    return leave(arrivals, n_programs)


@triton.jit
def converged(report, run_state, k, n_slots):
    """Return whether the last iteration changed no label and left no cluster empty."""
    iteration = tl.load(run_state + ITERATION)
    slot_report = report + (iteration % n_slots).to(tl.int64) * (HEAD + k)
    return (
        (iteration > 0)
        & (tl.load(slot_report + CHANGED) == 0)
        & (tl.load(slot_report + EMPTY) == 0)
    )


@triton.jit
def copy_to_host(message, message_size, host):
    """Copy the message to the host's memory."""
    for first in range(0, message_size, BLOCK):
        at = first + tl.arange(0, BLOCK)
        # Past the L1 cache, since other programs wrote it.
        value = tl.load(message + at, mask=at < message_size, volatile=True)
        tl.store(host + at, value, mask=at < message_size)


@triton.jit(
    do_not_specialize=["n", "k", "labelled", "weighted", "bits", "n_slots", "ends", "message_size"],
    do_not_specialize_on_alignment=["weights"],
)
def end_kernel(
    X, n, k, labels, labelled, current, weights, weighted, cost, bits, seen, report, n_slots,
    run_state, arrivals, ends, message, message_size, host, d: tl.constexpr,
):  # fmt: skip
    """Add up the inertia at the end of a run: the run is assigned, converged, or `ends` is set.

    This happens once, although the host may have queued the kernel for later iterations as well.
    In any case copy the first `message_size` numbers of the message to the host's memory.
    """
    stopped = tl.load(run_state + STOPPED)
    ended = ((ends != 0) & (stopped == 0)) | (stopped == ASSIGNED)
    last = tl.program_id(0) == 0
    if (tl.load(cost + DONE) == 0) & (ended | converged(report, run_state, k, n_slots)):
        last = add_cost(
            X, n, k, labels, labelled, current, weights, weighted, cost, bits, seen, arrivals, d
        )
    copy_to_host(message, tl.where(last, message_size, 0), host)


@triton.jit(
    do_not_specialize=["n", "labelled", "weighted", "bits"],
    do_not_specialize_on_alignment=["labels", "centers", "weights", "out", "arrivals"],
)
def low_cost_kernel(
    X, n, labels, labelled, centers, weights, weighted, out, bits, arrivals, d: tl.constexpr
):  # fmt: skip
    add_cost(X, n, 0, labels, labelled, centers, weights, weighted, out, bits, None, arrivals, d)


def cost_programs(n: int, device: torch.device) -> int:
    """Return how many programs add up the inertia of n rows."""
    return 1 if INTERPRETED else min(ceil_div(n, BLOCK.value), RESIDENT * processors(device))


def queue_low_cost(
    X: torch.Tensor,
    labels: torch.Tensor | None,
    centers: torch.Tensor,
    weights: torch.Tensor | None,
    out: torch.Tensor,
) -> None:
    """Queue the sum of weight times D to the centres of these labels, for few features.

    Without labels, D is that to the first centre.  `out` are COST + 1 zeros, int64.
    """
    n, d = X.shape
    arrivals = out[COST:].view(torch.int32)
    launch(
        low_cost_kernel, (cost_programs(n, X.device),),
        X, n, *given(labels, arrivals), centers, *given(weights, out.view(torch.float64)), out,
        exact.bits_a_limb(n), arrivals, d=d, **EXACT, **resident(RESIDENT),
    )  # fmt: skip


def low_cost(
    rows: WholeRows, labels: torch.Tensor, centers: torch.Tensor, weights: torch.Tensor | None
) -> Cost:
    """Return the weighted sum of D to the centres of these labels, for few features."""
    out = torch.zeros(COST + 1, dtype=torch.int64, device=rows.device)
    queue_low_cost(rows.X, labels, centers, weights, out)
    return Cost(out, rows.n_samples)
