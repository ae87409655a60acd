"""Rows of few features move from sum to sum: a row a thread, its features in registers.

The integers are those of :func:`lloydia.exact.sums.limbs`; they are added by atomic operations, in
any order, since the order changes nothing: to memory, or first to a table (:mod:`low_sums`).
"""

from __future__ import annotations

import triton
import triton.language as tl

from lloydia.backends.cuda.barrier import THREADS
from lloydia.backends.cuda.exact_numbers import product_error, whole
from lloydia.backends.cuda.low_scores import features
from lloydia.backends.cuda.low_sums import flush, most_steps, scales_of, sum_rows

__all__ = ["begin_sums", "move_rows"]

LANES = tl.constexpr(THREADS)
# Memory is added to at once where a thread lists so few rows.  Limbs whose numbers float32 can
# halve: y (low_sums.single_parts) of any is at least 2**-90.
FEW_STEPS, MOST_SPANNED = tl.constexpr(4), tl.constexpr(3)
# The old label of listed rows that had none, and whose first limbs the table has.
BEGUN = tl.constexpr(-2)


@triton.jit
def add_limbs(first, to, off, mask, taken, p, quantum, inverse, bits, n_limbs, limb_size):
    """Add products to the sums at `to`, and take those in `taken` from the sums at `off`.

    From limb `first` on; `p` holds what the limbs before left, raised by ``2**bits`` each.
    """
    step = ((1023 + bits.to(tl.int64)) << 52).to(tl.float64, bitcast=True)
    for limb in tl.range(first, n_limbs, loop_unroll_factor=1):
        v = whole(p * inverse)
        integer = v.to(tl.int64)
        some = mask & (integer != 0)
        tl.atomic_add(to + limb * limb_size, integer, mask=some, sem="relaxed")
        tl.atomic_add(off + limb * limb_size, -integer, mask=some & taken, sem="relaxed")
        p = (p - v * quantum) * step


@triton.jit
def move(
    x, rows, mask, old, new, weights, lattice, sums, bits, n_limbs, limb_size,
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
        scale = tl.load(lattice + f)
        quantum = tl.load(lattice + m + f)
        inverse = tl.load(lattice + 2 * m + f)
        # Column d is the weight.
        value = tl.full(rows.shape, 1.0, tl.float64) if f == d else x[f].to(tl.float64)
        a = tl.where(mask, value * scale, 0.0)
        p = a * w if WEIGHTED else a
        left = p
        for _ in tl.static_range(HELD):
            left = (left - whole(left * inverse) * quantum) * step
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
    """Return entry e of a tuple, or of each entry's part f: what handles it is compiled once."""
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
    # Steps ahead of the last are within 32 bits, too: there is room for them (placed.MOST_ROWS).
    first = ((tl.program_id(0) + i // EACH * tl.num_programs(0)) * EACH + i % EACH) * LANES
    return first + lane, lane < n - first


@triton.jit
def listed(i, listed_rows, listed_old, n_listed):
    """Return the rows that threads list in step i, the clusters they leave, which are there."""
    at = i * LANES + tl.arange(0, LANES)
    there = i < n_listed
    rows = tl.load(listed_rows + at, mask=there, other=0)
    return rows, tl.load(listed_old + at, mask=there, other=-1), there


@triton.jit
def steps_of(i, listed_rows, listed_old, n_listed, AHEAD: tl.constexpr):
    """Return what `listed` does of AHEAD steps."""
    found = ()
    for e in tl.static_range(AHEAD):
        found = found + (listed(i + e, listed_rows, listed_old, n_listed),)
    return found


@triton.jit
def fetch(X, labels, found, d: tl.constexpr):
    """Return the labels and the features of rows that `steps_of` found."""
    new, x = (), ()
    for e in tl.static_range(len(found)):
        rows, _, there = found[e]
        new = new + (tl.load(labels + rows, mask=there, other=0),)
        x = x + (features(X, rows.to(tl.int64) * d, there, d),)
    return new, x


@triton.jit
def beyond(left, n_limbs, HELD: tl.constexpr):
    """Return of which rows the table's limbs leave something, or may."""
    if HELD == 1:
        # Numbers that span so many limbs may vanish in float32's parts.
        left = left | (tl.full((LANES,), MOST_SPANNED, tl.int32) < n_limbs)
    return left & (tl.full((LANES,), HELD, tl.int32) < n_limbs)


@triton.jit
def begin_sums(
    x, rows, there, new, listed_rows, listed_old, n_listed, lattice, scales, table, bits, n_limbs,
    d: tl.constexpr, HELD: tl.constexpr, PITCH: tl.constexpr, COPIES: tl.constexpr,
):  # fmt: skip
    """Add rows, a row a thread, that had no cluster to this program's table.

    Lists as BEGUN those whose other limbs are still to be added; returns how many rows are listed
    then, by thread.
    """
    lane = tl.arange(0, LANES)
    # Without a mask: others, which are beyond the last row or in doubt, add zeros to cluster 0.
    own = ()
    for f in tl.static_range(d):
        own = own + (tl.where(there, x[f], 0.0),)
    none = tl.full((LANES,), -1, tl.int32)
    left = sum_rows(
        own, there, none, tl.where(there, new, 0), table, scales, lattice, bits,
        d, HELD, PITCH, COPIES, False,
    )  # fmt: skip
    left = there & beyond(left, n_limbs, HELD)
    tl.store(listed_rows + n_listed * LANES + lane, rows, mask=left)
    tl.store(listed_old + n_listed * LANES + lane, BEGUN, mask=left)
    return n_listed + left.to(tl.int32)


@triton.jit
def sum_listed(
    X, k, labels, listed_rows, listed_old, places, n_listed, steps, lattice, sums,
    table, bits, n_limbs, limb_size, d: tl.constexpr, HELD: tl.constexpr,
    PITCH: tl.constexpr, COPIES: tl.constexpr, AHEAD: tl.constexpr,
):  # fmt: skip
    """Move the rows that threads list, in so many steps, by this program's table.

    Of rows that are BEGUN, only the limbs that the table does not hold.
    """
    lane = tl.arange(0, LANES)
    most = most_steps(bits, COPIES)
    scales = scales_of(lattice, bits, d)
    for begin in range(0, steps, most):
        found = steps_of(begin, listed_rows, listed_old, n_listed, AHEAD)
        coming = fetch(X, labels, found, d)
        following = steps_of(begin + AHEAD, listed_rows, listed_old, n_listed, AHEAD)
        n_left = tl.zeros((LANES,), tl.int32)
        for i in tl.range(begin, tl.minimum(begin + most, steps), AHEAD, num_stages=1):
            new, x = coming
            here, found = found, following
            # The next rows are on their way while these are added, and the names of those after.
            coming = fetch(X, labels, found, d)
            following = steps_of(i + 2 * AHEAD, listed_rows, listed_old, n_listed, AHEAD)
            for e in tl.static_range(AHEAD):
                _, old, there = here[e]
                left = sum_rows(
                    x[e], there & (old != BEGUN), old, new[e], table, scales, lattice, bits,
                    d, HELD, PITCH, COPIES, True,
                )  # fmt: skip
                # Of rows that were begun, too: they were listed for that.
                left = there & beyond(left, n_limbs, HELD)
                tl.store(places + n_left * LANES + lane, i + e, mask=left)
                n_left += left.to(tl.int32)
        for i in range(tl.max(n_left, 0)):
            some = i < n_left
            step = tl.load(places + i * LANES + lane, mask=some, other=0)
            rows, old, _ = listed(step, listed_rows, listed_old, n_listed)
            new = tl.load(labels + rows, mask=some, other=0)
            move(
                features(X, rows.to(tl.int64) * d, some, d), rows, some, old, new, None, lattice,
                sums, bits, n_limbs, limb_size, d, False, False, HELD,
            )  # fmt: skip
        flush(table, lattice, sums, k, bits, limb_size, d, HELD, PITCH, COPIES)


@triton.jit
def move_rows(
    X, n, k, labels, labelled, listed_rows, listed_old, places, n_listed, weights, lattice, sums,
    table, bits, n_limbs, limb_size, d: tl.constexpr, WEIGHTED: tl.constexpr,
    RECOVER: tl.constexpr, EACH: tl.constexpr, HELD: tl.constexpr, PITCH: tl.constexpr,
    COPIES: tl.constexpr,
):  # fmt: skip
    """Move the listed rows to the clusters of their labels.

    If none was `labelled`: with COPIES of a table those that are listed, whose sums are not all
    begun (:func:`begin_sums`); without, all rows of this program.
    """
    # Rows of a thread that are on their way together; of more it takes long to compile.
    AHEAD: tl.constexpr = 4 if d <= 4 else 1
    BY_TABLE: tl.constexpr = 2 if d <= 4 else 1
    program, n_programs = tl.program_id(0), tl.num_programs(0)
    lane = tl.arange(0, LANES)
    total, steps = tl.sum(n_listed, 0), tl.max(n_listed, 0)
    if COPIES > 0:
        # Few rows go to memory, but not where some are BEGUN: there no limbs are skipped.
        if steps > FEW_STEPS * labelled:
            sum_listed(
                X, k, labels, listed_rows, listed_old, places, n_listed, steps, lattice,
                sums, table, bits, n_limbs, limb_size, d, HELD, PITCH, COPIES, BY_TABLE,
            )  # fmt: skip
            steps = 0
    elif labelled == 0:
        steps = tl.cdiv(tl.cdiv(n, LANES * EACH) - program, n_programs) * EACH
    if (labelled > 0) & (steps > 0):
        number(n_listed, places, steps)
        steps = tl.cdiv(total, LANES)
    for begin in range(0, steps, AHEAD):
        rows, old, mask = (), (), ()
        for e in tl.static_range(AHEAD):
            i = begin + e
            # Where none is listed.
            row, there = own_rows(i, n, EACH)
            left = tl.full((LANES,), -1, tl.int32)
            if labelled:
                there = lane + i * LANES < total
                at = tl.load(places + lane + i * LANES, mask=there, other=0)
                row = tl.load(listed_rows + at, mask=there, other=0)
                left = tl.load(listed_old + at, mask=there, other=-1)
            rows, old, mask = rows + (row,), old + (left,), mask + (there,)
        new, x = (), ()
        for e in tl.static_range(AHEAD):
            new = new + (tl.load(labels + rows[e], mask=mask[e], other=0),)
            x = x + (features(X, rows[e].to(tl.int64) * d, mask[e], d),)
        for e in tl.range(0, tl.minimum(steps - begin, AHEAD), loop_unroll_factor=1):
            here = ()
            for f in tl.static_range(d):
                here = here + (one_of(x, f, e),)
            move(
                here, one_of(rows, None, e), one_of(mask, None, e), one_of(old, None, e),
                one_of(new, None, e), weights, lattice, sums, bits, n_limbs, limb_size,
                d, WEIGHTED, RECOVER, 0,
            )  # fmt: skip
