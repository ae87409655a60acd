"""Label rows by their scores, and list those that changed and those that are ambiguous."""

from __future__ import annotations

import triton
import triton.language as tl

from lloydia.backends.cuda.device_functions.feature_loads import features
from lloydia.backends.cuda.device_functions.ptx.warp_lists import (
    BLOCK,
    append,
    own_list,
    write_counts,
)
from lloydia.backends.cuda.device_functions.run_state import (
    ITERATION,
    N_CHANGED,
    wait_for_previous_kernel,
)
from lloydia.backends.cuda.low_dim.center_table import frame_at
from lloydia.backends.cuda.low_dim.scores import certify, framed, line_of
from lloydia.backends.cuda.low_dim.stages import is_active

__all__ = ["assign_kernel"]

ROWS = tl.constexpr(BLOCK)


@triton.jit
def load_block(X, labels, n, labelled, block, d: tl.constexpr):
    """Return the features of a block of rows, their labels, and which of them exist.

    Labels are -1 where rows are not `labelled`, which is 1 or 0.
    """
    lane = tl.arange(0, ROWS)
    first = tl.full((), ROWS, tl.int64) * block
    left = tl.minimum(n - first, ROWS).to(tl.int32)
    x = features(X + first * d, lane * d, lane < left, d)
    label = tl.load(labels + first + lane, mask=lane < left * labelled, other=-1)
    return x, label, lane < left


@triton.jit(
    do_not_specialize=["n", "k", "room", "states"],
    do_not_specialize_on_alignment=[
        "X", "labels", "numbers", "table", "run_state", "cost", "changed_rows", "changed_old",
        "changed_new", "n_changed", "ambiguous_rows", "n_ambiguous",
    ],
)  # fmt: skip
def assign_kernel(
    X, n, k, labels, numbers, table, run_state, cost, changed_rows, changed_old, changed_new,
    n_changed, ambiguous_rows, n_ambiguous, room, states, d: tl.constexpr, ONE_GROUP: tl.constexpr,
):  # fmt: skip
    """Label all rows whose nearest centre is certain, and list the others.

    Before the first assignment no row has a label: all change, and none is listed for that.

    Parameters
    ----------
    X : IN, floating point (n, d)
    labels : IN, OUT, int32 (n,)
        Not read in the first assignment; rows that are ambiguous keep theirs.
    numbers : IN, int64 (5 (d + 1),)
        Those of the fixed-point grid, with the frame.
    table : IN, float32 (table_size(k, d),)
        Of the centres; see :mod:`center_table`.
    run_state : IN, OUT, int32
        N_CHANGED grows.
    cost : IN, int64
        See :mod:`stages`.
    changed_rows, changed_old, changed_new : OUT, int32 (n_lists room,)
        The rows that changed, their old and their new labels, in the lists of
        :mod:`device_functions.ptx.warp_lists`.
    n_changed : OUT, int32 (n_lists,)
        How many are in each list.
    ambiguous_rows, n_ambiguous : OUT
        The rows whose nearest centre is not certain, likewise.
    room : int
        Entries that a list has room for.
    states : int
        When this runs; see :mod:`stages`.
    ONE_GROUP : bool
        Whether k is at most CENTERS_PER_STEP of :mod:`scores`.
    """
    wait_for_previous_kernel()
    if is_active(run_state, cost, states):
        program, n_programs = tl.program_id(0), tl.num_programs(0)
        labelled = tl.minimum(tl.load(run_state + ITERATION), 1)
        kind: tl.constexpr = tl.float64 if X.dtype.element_ty == tl.float64 else tl.float32
        frame, line = frame_at(numbers, kind, d), line_of(table)
        which = own_list()
        changed_ends = which * room
        ambiguous_ends = changed_ends
        next_x, next_old, next_there = load_block(X, labels, n, labelled, program, d)
        for block in range(program, tl.cdiv(n, ROWS), n_programs):
            x, old, there = next_x, next_old, next_there
            # The next rows are loaded while these are scored.
            next_x, next_old, next_there = load_block(
                X, labels, n, labelled, block + n_programs, d
            )  # fmt: skip
            label, certain = certify(framed(x, frame, d), table, line, k, d, ONE_GROUP)
            rows = block * ROWS + tl.arange(0, ROWS)
            changed = there & certain & (label != old)
            tl.store(labels + rows, label, mask=changed)
            changed_ends = append(
                changed_ends, changed & (old >= 0), (rows, old, label),
                (changed_rows, changed_old, changed_new),
            )  # fmt: skip
            ambiguous_ends = append(
                ambiguous_ends, there & (certain == 0), (rows,), (ambiguous_rows,)
            )  # fmt: skip
        count = write_counts(n_changed, which, changed_ends, room)
        write_counts(n_ambiguous, which, ambiguous_ends, room)
        if (labelled == 0) & (program == 0):
            count = n
        tl.atomic_add(run_state + N_CHANGED, count, mask=count > 0, sem="relaxed")
