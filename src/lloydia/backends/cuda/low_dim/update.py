"""Move the rows that changed from sum to sum; after the first assignment, add all rows.

The integers are those of :func:`lloydia.exact.sums.limbs`; they are added by atomic operations, in
any order, since the order changes nothing: to a table in shared memory (:mod:`table_sums`), or to
memory.
"""

from __future__ import annotations

import triton
import triton.language as tl

from lloydia.backends.cuda.device_functions.exact_numbers import power_of_two, product_error, rint
from lloydia.backends.cuda.device_functions.feature_loads import features
from lloydia.backends.cuda.device_functions.ptx.shared_table import own_table
from lloydia.backends.cuda.device_functions.run_state import (
    ITERATION,
    STOPPED,
    wait_for_previous_kernel,
)
from lloydia.backends.cuda.low_dim.table_sums import (
    RESERVE,
    TABLE_ROWS,
    add_rows,
    beyond,
    clear,
    flush,
    rows_before_flush,
    scales_of,
    table_limbs,
    words_of,
)

__all__ = ["LISTS_PER_PROGRAM", "update_kernel"]

# Rows that a program moves at a time, and of how many lists.
ROWS, LISTS_PER_PROGRAM = tl.constexpr(TABLE_ROWS), 16
OF_LIST = tl.constexpr(TABLE_ROWS // LISTS_PER_PROGRAM)
GROUP = tl.constexpr(LISTS_PER_PROGRAM)


@triton.jit
def add_limbs(first, to, off, mask, taken, p, quantum, inverse, bits, n_limbs, limb_size):
    """Add products to the sums at `to`, and take those in `taken` from the sums at `off`.

    From limb `first` on; `p` holds what the limbs before left, raised by ``2**bits`` each.
    """
    step = power_of_two(bits.to(tl.int64))
    for limb in tl.range(first, n_limbs, loop_unroll_factor=1):
        v = rint(p * inverse)
        integer = v.to(tl.int64)
        some = mask & (integer != 0)
        tl.atomic_add(to + limb * limb_size, integer, mask=some, sem="relaxed")
        tl.atomic_add(off + limb * limb_size, -integer, mask=some & taken, sem="relaxed")
        p = (p - v * quantum) * step


@triton.jit
def move_in_memory(
    X, rows, mask, old, new, weights, columns, sums, bits, n_limbs, limb_size,
    d: tl.constexpr, RECOVER: tl.constexpr, TABLE_LIMBS: tl.constexpr,
):  # fmt: skip
    """Move the products of rows in memory, but for TABLE_LIMBS limbs.

    `old` is -1 for no cluster.
    """
    m: tl.constexpr = d + 1
    to = sums + new.to(tl.int64) * m
    off = sums + old.to(tl.int64) * m
    taken = mask & (old >= 0)
    source = X + rows.to(tl.int64) * d
    step = power_of_two(bits.to(tl.int64))
    if weights is not None:
        w = tl.load(weights + rows, mask=mask, other=0.0)
    # A loop, since compiled for each column this takes long to compile.
    for f in tl.range(0, m, loop_unroll_factor=1):
        scale = tl.load(columns + f)
        quantum = tl.load(columns + m + f)
        inverse = tl.load(columns + 2 * m + f)
        x = tl.load(source + f, mask=mask & (f < d), other=0.0).to(tl.float64)
        # Column d is the weight.
        p = tl.where(mask, tl.where(f == d, 1.0, x) * scale, 0.0)
        if weights is not None:
            a = p
            p = a * w
        left = p
        for _ in tl.static_range(TABLE_LIMBS):
            left = (left - rint(left * inverse) * quantum) * step
        add_limbs(
            TABLE_LIMBS, to + f, off + f, mask, taken, left, quantum, inverse, bits, n_limbs,
            limb_size,
        )  # fmt: skip
        if RECOVER:
            # At most 2**-53 |p|, less than half a step of limb 0.
            error = product_error(a, w, p) * step
            add_limbs(
                1, to + f, off + f, mask, taken, error, quantum, inverse, bits, n_limbs, limb_size,
            )  # fmt: skip


@triton.jit
def rows_of_step(step, n, every, labels, changed_rows, changed_old, changed_new, count, first):
    """Return the rows of a step of this program, their old and new labels, and which exist.

    If `every` row is moved, they follow each other; else they are listed.
    """
    lane = tl.arange(0, ROWS)
    # 64 bits: steps past the last are beyond the largest number of a row.
    block = tl.full((), ROWS, tl.int64) * (tl.program_id(0) + step * tl.num_programs(0))
    left = tl.minimum(tl.where(every, n - block, 0), ROWS).to(tl.int32)
    at = step * OF_LIST + lane % OF_LIST
    # `count` is 0 if every row is moved, else `left` is.
    mask = (lane < left) | (at < count)
    rows = tl.load(changed_rows + first + at, mask=at < count, other=0)
    rows = tl.where(lane < left, block.to(tl.int32) + lane, rows)
    old = tl.load(changed_old + first + at, mask=at < count, other=-1)
    new = tl.load(changed_new + first + at, mask=at < count, other=0)
    label = tl.load(labels + block + lane, mask=lane < left, other=0)
    return rows, old, tl.where(lane < left, label, new), mask


@triton.jit(
    do_not_specialize=["n", "k", "n_limbs", "bits", "room", "n_lists", "n_replicas", "copies"],
    do_not_specialize_on_alignment=[
        "X", "weights", "numbers", "bounds", "labels", "sums", "run_state", "changed_rows",
        "changed_old", "changed_new", "n_changed", "interpreter_table",
    ],
)  # fmt: skip
def update_kernel(
    X, n, k, weights, numbers, bounds, labels, sums, n_limbs, bits, run_state, changed_rows,
    changed_old, changed_new, n_changed, room, n_lists, n_replicas, copies, interpreter_table,
    d: tl.constexpr, RECOVER: tl.constexpr, TABLE: tl.constexpr,
):  # fmt: skip
    """Move listed rows from sum to sum; in the first iteration add all rows.

    Parameters
    ----------
    X : IN, floating point (n, d)
    weights : IN, float64 (n,), or None
        Scaled as the fixed-point grid has it.
    numbers : IN, int64 (5 (d + 1),)
        Those of the fixed-point grid.
    bounds : IN, int64 (2 d + 1,)
        The last is the number of limbs, if `n_limbs` is 0.
    labels : IN, int32 (n,)
    sums : IN, OUT, int64 (n_replicas, n_limbs, k, d + 1)
    bits : int
        Of a limb.
    run_state : IN, int32
    changed_rows, changed_old, changed_new, n_changed : IN, int32
        The lists of rows that changed, as :mod:`assign` and :mod:`recheck` leave them.
    room, n_lists : int
        Entries that a list has room for, and the lists of all programs.
    copies : int
        Of the table.
    interpreter_table : int32 (WORDS,), or None
        The table where there is no shared memory.
    RECOVER : bool
        Whether products by weights are not exact, so that what they lose is added.
    TABLE : bool
        Whether rows are added in a table first; they have no weights then.
    """
    wait_for_previous_kernel()
    if tl.load(run_state + STOPPED) == 0:
        program, n_programs = tl.program_id(0), tl.num_programs(0)
        if n_limbs == 0:
            n_limbs = tl.load(bounds + 2 * d).to(tl.int32)
        columns = numbers.to(tl.pointer_type(tl.float64))
        limb_size = k.to(tl.int64) * (d + 1)
        sums += program % n_replicas * n_limbs * limb_size
        every = tl.load(run_state + ITERATION) == 0
        which = program * GROUP + tl.arange(0, ROWS) // OF_LIST
        count = tl.load(n_changed + which, mask=which < tl.where(every, 0, n_lists), other=0)
        first = which * room
        steps = tl.cdiv(tl.max(count, 0), OF_LIST)
        if every:
            steps = tl.cdiv(tl.cdiv(n, ROWS) - program, n_programs)
        double: tl.constexpr = X.dtype.element_ty == tl.float64
        TABLE_LIMBS: tl.constexpr = table_limbs(double) if TABLE else 0
        if TABLE:
            table = own_table(interpreter_table, RESERVE)
            scales = scales_of(X, columns, bits, d)
            most = rows_before_flush(bits, copies) // ROWS
            if steps > 0:
                clear(table, k * copies * words_of(d, double))
        # The next rows are loaded while these are added, and their numbers a step before that.
        lists = changed_rows, changed_old, changed_new
        listed = rows_of_step(0, n, every, labels, *lists, count, first)
        after = rows_of_step(1, n, every, labels, *lists, count, first)
        next_x = features(X, listed[0].to(tl.int64) * d, listed[3], d)
        for step in range(steps):
            rows, old, new, mask = listed
            x = next_x
            listed = after
            next_x = features(X, listed[0].to(tl.int64) * d, listed[3], d)
            after = rows_of_step(step + 2, n, every, labels, *lists, count, first)
            any_left = 1
            if TABLE:
                left = add_rows(x, mask, old, new, table, scales, bits, copies, d)
                mask = mask & beyond(left, n_limbs, TABLE_LIMBS)
                any_left = 0
                if n_limbs > TABLE_LIMBS:
                    any_left = tl.max(mask.to(tl.int32), 0)
            if any_left > 0:
                move_in_memory(
                    X, rows, mask, old, new, weights, columns, sums, bits, n_limbs, limb_size,
                    d, RECOVER, TABLE_LIMBS,
                )  # fmt: skip
            if TABLE:
                if (step + 1 == steps) | ((step + 1) % most == 0):
                    flush(table, columns, sums, k, bits, limb_size, copies, d, TABLE_LIMBS)
