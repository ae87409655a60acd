"""Rows of few features move from sum to sum: a row a thread, its features in registers.

The integers are those of :func:`lloydia.exact.sums.limbs`; they are added by atomic operations, in
any order, since the order changes nothing: to a table of the program's own, if there is one
(:mod:`sums`), or to memory.
"""

from __future__ import annotations

import triton
import triton.language as tl

from lloydia.backends.cuda.device_functions.barrier import THREADS
from lloydia.backends.cuda.device_functions.exact_numbers import product_error, rint
from lloydia.backends.cuda.device_functions.feature_loads import features
from lloydia.backends.cuda.low_dim.sums import STEP, beyond, flush, most_steps, scales_of, sum_rows

__all__ = ["move", "move_rows", "one_of"]

LANES = tl.constexpr(THREADS)


@triton.jit
def add_limbs(first, to, off, mask, taken, p, quantum, inverse, bits, n_limbs, limb_size):
    """Add products to the sums at `to`, and take those in `taken` from the sums at `off`.

    From limb `first` on; `p` holds what the limbs before left, raised by ``2**bits`` each.
    """
    step = ((1023 + bits.to(tl.int64)) << 52).to(tl.float64, bitcast=True)
    for limb in tl.range(first, n_limbs, loop_unroll_factor=1):
        v = rint(p * inverse)
        integer = v.to(tl.int64)
        some = mask & (integer != 0)
        tl.atomic_add(to + limb * limb_size, integer, mask=some, sem="relaxed")
        tl.atomic_add(off + limb * limb_size, -integer, mask=some & taken, sem="relaxed")
        p = (p - v * quantum) * step


@triton.jit
def move(
    x, rows, mask, old, new, weights, fixed_point_grid, sums, bits, n_limbs, limb_size,
    d: tl.constexpr, WEIGHTED: tl.constexpr, RECOVER: tl.constexpr, HELD: tl.constexpr,
):  # fmt: skip
    """Move the products of rows, whose features are `x`, to the sums of their new clusters.

    But for HELD limbs.  `old` is -1 for rows that had no cluster.  `rows` are asked for weights
    alone.
    """
    m: tl.constexpr = d + 1
    to = sums + new.to(tl.int64) * m
    off = sums + old.to(tl.int64) * m
    taken = mask & (old >= 0)
    step = ((1023 + bits.to(tl.int64)) << 52).to(tl.float64, bitcast=True)
    if WEIGHTED:
        w = tl.load(weights + rows, mask=mask, other=0.0)
    for f in tl.static_range(m):
        scale = tl.load(fixed_point_grid + f)
        quantum = tl.load(fixed_point_grid + m + f)
        inverse = tl.load(fixed_point_grid + 2 * m + f)
        # Column d is the weight.
        value = tl.full(rows.shape, 1.0, tl.float64) if f == d else x[f].to(tl.float64)
        a = tl.where(mask, value * scale, 0.0)
        p = a * w if WEIGHTED else a
        left = p
        for _ in tl.static_range(HELD):
            left = (left - rint(left * inverse) * quantum) * step
        add_limbs(
            HELD, to + f, off + f, mask, taken, left, quantum, inverse, bits, n_limbs, limb_size,
        )  # fmt: skip
        if RECOVER:
            # At most 2**-53 |p|, less than half a step of limb 0.
            error = product_error(a, w, p) * step
            add_limbs(
                1, to + f, off + f, mask, taken, error, quantum, inverse, bits, n_limbs, limb_size,
            )  # fmt: skip


@triton.jit
def one_of(each, f: tl.constexpr, e):
    """Return entry e of a tuple, or that entry's part f: so what handles it is compiled once."""
    found = each[0] if f is None else each[0][f]
    for i in tl.static_range(1, len(each)):
        found = tl.where(e == i, each[i] if f is None else each[i][f], found)
    return found


@triton.jit
def number(n_listed, places, steps):
    """Write the places of all that threads list, one after the other: threads have unequal many."""
    lane = tl.arange(0, LANES)
    first = tl.cumsum(n_listed, 0) - n_listed
    # What is there is no longer read.
    tl.debug_barrier()
    for i in range(steps):
        tl.store(places + first + i, lane + i * LANES, mask=i < n_listed)
    tl.debug_barrier()


@triton.jit
def own_rows(i, n, EACH: tl.constexpr):
    """Return this program's rows of step i, one a thread, and which are there."""
    lane = tl.arange(0, LANES)
    # Steps ahead of the last are within 32 bits, too: there is room for them (dataset.MOST_ROWS).
    first = ((tl.program_id(0) + i // EACH * tl.num_programs(0)) * EACH + i % EACH) * LANES
    return first + lane, lane < n - first


@triton.jit
def move_rows(
    X, n, k, labels, labelled, listed_rows, listed_old, places, n_changed, weights,
    fixed_point_grid, sums, own_sums, bits, n_limbs, limb_size, d: tl.constexpr,
    WEIGHTED: tl.constexpr, RECOVER: tl.constexpr, EACH: tl.constexpr, HELD: tl.constexpr,
    ENTRIES: tl.constexpr, COPIES: tl.constexpr,
):  # fmt: skip
    """Move the listed rows, or all if none was `labelled`, to the clusters of their labels.

    The table of own sums (:func:`sums.table_of`), if it has COPIES, is empty before and after;
    it is for rows without weights.
    """
    # Rows of a thread that are on their way together; of many features they take long to compile.
    AHEAD: tl.constexpr = 4 if d <= 4 else 1
    if COPIES > 0:
        tl.static_assert(STEP % AHEAD == 0)
        scales = scales_of(X, fixed_point_grid, bits, d)
        most = most_steps(bits, COPIES)
    program, n_programs = tl.program_id(0), tl.num_programs(0)
    lane = tl.arange(0, LANES)
    total, steps = tl.sum(n_changed, 0), tl.max(n_changed, 0)
    if labelled == 0:
        steps = tl.cdiv(tl.cdiv(n, LANES * EACH) - program, n_programs) * EACH
    if (labelled > 0) & (steps > 0):
        number(n_changed, places, steps)
        steps = tl.cdiv(total, LANES)
    for begin in range(0, steps, AHEAD):
        rows, old, mask = (), (), ()
        for e in tl.static_range(AHEAD):
            i = begin + e
            # Where none is listed.
            row, there = own_rows(i, n, EACH)
            before = tl.full((LANES,), -1, tl.int32)
            if labelled:
                there = lane + i * LANES < total
                at = tl.load(places + lane + i * LANES, mask=there, other=0)
                row = tl.load(listed_rows + at, mask=there, other=0)
                before = tl.load(listed_old + at, mask=there, other=-1)
            rows, old, mask = rows + (row,), old + (before,), mask + (there,)
        new, x = (), ()
        for e in tl.static_range(AHEAD):
            new = new + (tl.load(labels + rows[e], mask=mask[e], other=0),)
            x = x + (features(X, rows[e].to(tl.int64) * d, mask[e], d),)
        # How many of them are to be moved in memory, up to the last.
        n_moves = tl.minimum(steps - begin, AHEAD)
        if COPIES > 0:
            left, some = (), tl.zeros((LANES,), tl.int32)
            for e in tl.static_range(AHEAD):
                more = sum_rows(
                    x[e], mask[e], old[e], new[e], own_sums, scales, bits,
                    d, HELD, ENTRIES, COPIES, True,
                )  # fmt: skip
                left = left + (mask[e] & beyond(more, n_limbs, HELD),)
                some = some | left[e].to(tl.int32)
            mask = left
            any_left = tl.zeros((), tl.int32)
            # Else nothing can be, and nobody need ask.
            if n_limbs > HELD:
                any_left = tl.max(some, 0)
            n_moves = tl.where(any_left > 0, n_moves, 0)
        for e in tl.range(0, n_moves, loop_unroll_factor=1):
            here = ()
            for f in tl.static_range(d):
                here = here + (one_of(x, f, e),)
            move(
                here, one_of(rows, None, e), one_of(mask, None, e), one_of(old, None, e),
                one_of(new, None, e), weights, fixed_point_grid, sums, bits, n_limbs, limb_size,
                d, WEIGHTED, RECOVER, HELD if COPIES > 0 else 0,
            )  # fmt: skip
        if COPIES > 0:
            # The table takes `most` steps, a multiple of AHEAD.
            if (begin + AHEAD >= steps) | ((begin + AHEAD) % most == 0):
                flush(
                    own_sums, fixed_point_grid, sums, k, bits, limb_size, d, HELD, ENTRIES, COPIES
                )
