"""The end of an iteration over rows of few features: a cluster's columns are looked at together.

As :func:`lloydia.backends.cuda.update.means.finish`, with less waiting: weights are a column of the
sums, so that one read is for several clusters and all that is theirs.
"""

from __future__ import annotations

import triton
import triton.language as tl

from lloydia.backends.cuda.device_functions.iteration_report import (
    CHANGED,
    EMPTY,
    HEAD,
    MOVE,
    RECHECKED,
    STATUS,
)
from lloydia.backends.cuda.device_functions.run_state import ASSIGNED, ITERATION, STOPPED
from lloydia.backends.cuda.device_functions.significands import significand
from lloydia.backends.cuda.update.means import mean_of, within

__all__ = ["conclude", "low_means", "read_tally", "ready_tally", "tally_of"]


@triton.jit
def low_means(
    program, n_programs, iteration, sums, n_limbs, bits, exponents, k, d: tl.constexpr,
    current, history, n_slots, report, tally, limit,
    REPLICAS: tl.constexpr, BLOCK_K: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Turn the sums of this program's clusters into centres.

    The parameters are those of :func:`lloydia.backends.cuda.update.means.finish`, and the `tally`
    of the iteration, or None.  Return how many of the clusters are empty, and the sum of the
    squares that centres moved, where a limit asks for it: what is added to the tally.
    """
    all_empty = tl.zeros((), tl.int64)
    all_moved = tl.zeros((), tl.float64)
    # 64 bits: n_slots k d may pass 2**31.
    new_slot = ((iteration + 1) % n_slots) * (k.to(tl.int64) * d)
    said = report + ((iteration + 1) % n_slots).to(tl.int64) * (HEAD + k)
    limb_size = k.to(tl.int64) * (d + 1)
    f = tl.arange(0, COLUMNS)
    e = tl.load(exponents + f, mask=f < d, other=0)[None, :]
    for block in range(program, tl.cdiv(k, BLOCK_K), n_programs):
        j = block * BLOCK_K + tl.arange(0, BLOCK_K)
        real = j < k
        there = real[:, None] & (f <= d)[None, :]
        mask = real[:, None] & (f < d)[None, :]
        at = j.to(tl.int64)[:, None] * d + f[None, :]
        old = tl.load(current + at, mask=mask, other=0.0)
        offset = j.to(tl.int64)[:, None] * (d + 1) + f[None, :]
        a, a_low, a_place = significand(
            sums, offset, there, n_limbs, bits, limb_size, limb_size * n_limbs, REPLICAS
        )
        # Threads that hold the same have all read it, so that all find the same movement.
        tl.debug_barrier()
        # Column d is the weight; the other terms of these sums are 0.
        weight = (f == d)[None, :]
        b = tl.sum(tl.where(weight, a, 0.0), 1)[:, None]
        b_low = tl.sum(tl.where(weight, a_low, 0.0), 1)[:, None]
        b_place = tl.sum(tl.where(weight, a_place, 0), 1)[:, None]
        new, empty = mean_of(a, a_low, a_place, b, b_low, b_place, e, bits, old)
        tl.store(current + at, new, mask=mask)
        tl.store(history + new_slot + at, new, mask=mask)
        if iteration == 0:
            tl.store(history + at, old, mask=mask)
        difference = tl.where(mask, new.to(tl.float64) - old.to(tl.float64), 0.0)
        squares = difference * difference
        square = tl.zeros((BLOCK_K,), tl.float64)
        for s in tl.static_range(d):
            square += tl.sum(tl.where((f == s)[None, :], squares, 0.0), 1)
        tl.store(said + HEAD + j, square.to(tl.int64, bitcast=True), mask=real)
        move = tl.max(tl.max(tl.abs(difference), 1), 0)
        tl.atomic_max(said + MOVE, move.to(tl.int64, bitcast=True), sem="relaxed")
        n_empty = tl.sum((empty & real[:, None]).to(tl.int64))
        all_empty += n_empty
        if tally is not None:
            tl.atomic_add(tally + 1, n_empty, mask=n_empty > 0, sem="relaxed")
        if limit is not None:
            moved = tl.sum(tl.where(real, square, 0.0), 0)
            all_moved += moved
            if tally is not None:
                tl.atomic_add((tally + 2).to(tl.pointer_type(tl.float64)), moved, sem="relaxed")
    return all_empty, all_moved


@triton.jit
def tally_of(tallies, iteration):
    """Return where an iteration counts rows changed, 2**32 for each checked again; and empties.

    Then it adds the squares of the centres' movements, a float64.
    """
    return tallies + iteration % 3 * 3


@triton.jit
def read_tally(tallies, iteration, limit):
    """Return what all programs have counted: rows changed and checked again, empties, movement."""
    tally = tally_of(tallies, iteration)
    counted = tl.load(tally, volatile=True)
    n_empty = tl.load(tally + 1, volatile=True)
    moved = 0.0
    if limit is not None:
        moved = tl.load((tally + 2).to(tl.pointer_type(tl.float64)), volatile=True)
    return counted, n_empty, moved


@triton.jit
def ready_tally(program, tallies, iteration):
    """Make the tally of the iteration after the next ready.

    None counts for it before all have come here.
    """
    if program == 0:
        for i in tl.static_range(3):
            tl.store(tally_of(tallies, iteration + 2) + i, tl.zeros((), tl.int64))


@triton.jit
def conclude(
    program, iteration, counted, n_empty, moved, k, n_slots, report, run_state, settles, limit
):  # fmt: skip
    """Return whether iterations end here, and how: as STOPPED says; one program writes the report.

    By what :func:`read_tally` returns.
    """
    n_changed = counted & 0xFFFFFFFF
    stops = (((n_empty > 0) & (settles != 0)) | (n_changed == 0)).to(tl.int32)
    if limit is not None:
        stops = tl.where((stops == 0) & within(moved, limit), ASSIGNED, stops)
    if program == 0:
        said = report + ((iteration + 1) % n_slots).to(tl.int64) * (HEAD + k)
        tl.store(said + CHANGED, n_changed)
        tl.store(said + EMPTY, n_empty)
        tl.store(said + RECHECKED, counted >> 32)
        tl.store(said + STATUS, stops.to(tl.int64))
        # The next iteration's maximum starts at 0.
        following = ((iteration + 2) % n_slots).to(tl.int64) * (HEAD + k)
        tl.store(report + following + MOVE, tl.zeros((), tl.int64))
        tl.store(run_state + STOPPED, stops)
        tl.store(run_state + ITERATION, iteration + 1)
    return stops
