"""Rows of few features and few clusters: labelled, and added up in the program's own table.

Rows that change are listed with their features (:mod:`lists`), so none is looked for when it
moves from sum to sum (:mod:`sums`).  All threads move listed rows together: when a list might
not hold what follows, and at the end.  Rows that get their first labels are added where they are
labelled, except those in doubt; then only rows of which the table's limbs leave something are
listed.  This is for runs that have a table, and few clusters
(:func:`lloydia.backends.cuda.low_dim.sums.is_summed`).

Float64 rows are stored in float32 with their first labels instead, and are listed by their numbers
(:mod:`stored`).
"""

from __future__ import annotations

import triton
import triton.language as tl

from lloydia.backends.cuda.device_functions.barrier import THREADS
from lloydia.backends.cuda.device_functions.feature_loads import features
from lloydia.backends.cuda.device_functions.prefetch import prefetch
from lloydia.backends.cuda.low_dim.canonical import nearest
from lloydia.backends.cuda.low_dim.kept import approximate_few, keep
from lloydia.backends.cuda.low_dim.lists import WARP, places
from lloydia.backends.cuda.low_dim.moves import move
from lloydia.backends.cuda.low_dim.scores import approximate, framed, tabulate
from lloydia.backends.cuda.low_dim.stored import (
    LISTED,
    first_of,
    list_rows,
    listed_at,
    listed_row,
    prefetch_stored,
    rows_of,
    rows_to_score,
    store,
)
from lloydia.backends.cuda.low_dim.sums import beyond, flush, most_steps, scales_of, sum_rows

__all__ = ["label_and_sum"]

LANES = tl.constexpr(THREADS)
# Listed rows that a thread loads ahead.  Those that are looked up are scattered, and take longer to
# come.
AHEAD, AHEAD_SCATTERED = tl.constexpr(2), tl.constexpr(4)


@triton.jit
def labels_of(labels, block, n, EACH: tl.constexpr):
    """Return the labels of a block's rows, EACH a thread."""
    at = labels + first_of(block, n, EACH) + tl.arange(0, LANES)
    found = ()
    for e in tl.static_range(EACH):
        found = found + (tl.load(at + e * LANES),)
    return found


@triton.jit
def label_blocks(
    X, n, k, labels, stored, begin, end, coming, n_listed, n_doubts, frame, line, lift, table,
    lists, doubts, scales, own_sums, bits, n_limbs,
    d: tl.constexpr, EACH: tl.constexpr, GROUP: tl.constexpr, KEPT: tl.constexpr,
    PITCH: tl.constexpr, HELD: tl.constexpr, ENTRIES: tl.constexpr, COPIES: tl.constexpr,
    BEGINS: tl.constexpr,
):  # fmt: skip
    """Label the rows of some of this program's blocks, but for those in doubt.

    Rows that change are listed; where sums BEGIN, rows are added to the table, and those of which
    something is left are listed.  `coming` are the rows of this program's next block, and their
    labels: both mean nothing where they are not there yet.  Returns how long the warps' lists are
    then; how many rows each thread labelled, where sums BEGIN; how many of its blocks have rows in
    doubt, each listed as its number and a bit a row; and what is coming then.
    """
    program, n_programs = tl.program_id(0), tl.num_programs(0)
    lane = tl.arange(0, LANES)
    n_labelled = tl.zeros((LANES,), tl.int32)
    if KEPT > 0:
        kept = keep(table, lift, d, PITCH, KEPT)
    READS: tl.constexpr = BEGINS or stored is None
    stored_coming, known = coming
    if BEGINS and stored is not None:
        # What is coming is to be stored here.
        coming = rows_of(X, program + begin * n_programs, n, d, EACH)
    else:
        coming = stored_coming
    for i in range(begin, end):
        block = program + i * n_programs
        first = first_of(block, n, EACH)
        # So many rows of the last block are of the block before it.
        passed = block * (LANES * EACH) - first
        after = first_of(block + 2 * n_programs, n, EACH).to(tl.int64)
        if BEGINS:
            before = (tl.full((LANES,), -1, tl.int32),) * EACH
        else:
            before = known
            known = labels_of(labels, block + n_programs, n, EACH)
            prefetch(labels, after, None, LANES * EACH)
        here = coming
        # The next rows are on their way while these are scored.
        # Those after them are but prefetched: to load them would take registers, too.
        if READS:
            coming = rows_of(X, block + n_programs, n, d, EACH)
            prefetch(X, after * d, None, LANES * EACH * d)
            y = ()
            for e in tl.static_range(EACH):
                y = y + (framed(here[e], frame, d),)
            if stored is not None:
                store(stored, block, y, d, EACH)
        else:
            coming = rows_to_score(X, stored, block + n_programs, n, d, EACH)
            prefetch_stored(stored, block + 2 * n_programs, n, d, EACH)
            y = here
        if KEPT > 0:
            found, sure = approximate_few(y, kept, None, k, line, d, GROUP, KEPT, EACH)
        else:
            found, sure = approximate(y, table, None, k, line, d, PITCH, GROUP, EACH)
        # Bits of a thread's rows that are this block's.
        own_bits = ((1 << EACH) - 1) << (passed - lane + (LANES - 1)) // LANES
        doubtful = tl.zeros((LANES,), tl.int32)
        here_labels, changed = labels + first + lane, ()
        for e in tl.static_range(EACH):
            mask = e * LANES + lane >= passed
            doubtful = doubtful | tl.where(sure[e], 0, 1 << e)
            listed = mask & sure[e] & (found[e] != before[e])
            tl.store(here_labels + e * LANES, found[e], mask=listed)
            if BEGINS:
                n_labelled += listed.to(tl.int32)
                # No mask: rows of another block, or in doubt, add zeros to cluster 0.
                own = ()
                for f in tl.static_range(d):
                    own = own + (tl.where(listed, here[e][f], 0.0),)
                left = sum_rows(
                    own, listed, before[e], tl.where(listed, found[e], 0), own_sums, scales,
                    bits, d, HELD, ENTRIES, COPIES, False,
                )  # fmt: skip
                listed = listed & beyond(left, n_limbs, HELD)
            changed = changed + (listed,)
        at, n_listed = places(changed, n_listed)
        for e in tl.static_range(EACH):
            rows = first + lane + e * LANES
            list_rows(lists, at[e], here[e], rows, stored, before[e], found[e], changed[e], d)
        doubtful = doubtful & own_bits
        to = doubts + lane + (n_doubts * LANES).to(tl.int64)
        tl.store(to, i << EACH | doubtful, mask=doubtful > 0)
        n_doubts += (doubtful > 0).to(tl.int32)
    if BEGINS and stored is not None:
        coming = stored_coming
    return n_listed, n_labelled, n_doubts, (coming, known)


@triton.jit
def move_left(
    X, lists, stored, n_left, fixed_point_grid, sums, bits, n_limbs, limb_size,
    d: tl.constexpr, HELD: tl.constexpr,
):  # fmt: skip
    """Move what listed rows have left beyond the table's limbs."""
    lane = tl.arange(0, LANES)
    for i in range(tl.cdiv(tl.max(n_left, 0), WARP)):
        found = listed_at(lists, i, n_left, stored, d)
        x, _, old, new, there = listed_row(X, found, stored, d)
        move(
            x, lane, there, old, new, None, fixed_point_grid, sums, bits, n_limbs, limb_size,
            d, False, False, HELD,
        )  # fmt: skip


@triton.jit
def sum_listed(
    X, lists, stored, n_listed, steps, scales, own_sums, bits, n_limbs,
    d: tl.constexpr, HELD: tl.constexpr, ENTRIES: tl.constexpr, COPIES: tl.constexpr,
):  # fmt: skip
    """Move the listed rows in this program's table, so many of each thread.

    Those of which something is left are listed anew; returns how long the warps' lists are then.
    """
    ahead: tl.constexpr = AHEAD if stored is None else AHEAD_SCATTERED
    n_left = tl.zeros((LANES,), tl.int32)
    coming, following = (), ()
    for e in tl.static_range(ahead):
        found = listed_at(lists, e, n_listed, stored, d)
        coming = coming + (listed_row(X, found, stored, d),)
        if stored is not None:
            following = following + (listed_at(lists, ahead + e, n_listed, stored, d),)
    for i in tl.range(0, steps, ahead, num_stages=1):
        # The next rows are on their way while these are added; and the numbers of those after them.
        here, coming = coming, ()
        for e in tl.static_range(ahead):
            if stored is None:
                found = listed_at(lists, i + ahead + e, n_listed, stored, d)
            else:
                found = following[e]
            coming = coming + (listed_row(X, found, stored, d),)
        if stored is not None:
            following = ()
            for e in tl.static_range(ahead):
                found = listed_at(lists, i + 2 * ahead + e, n_listed, stored, d)
                following = following + (found,)
        for e in tl.static_range(ahead):
            x, rows, old, new, there = here[e]
            left = sum_rows(
                x, there, old, new, own_sums, scales, bits,
                d, HELD, ENTRIES, COPIES, True,
            )  # fmt: skip
            left = there & beyond(left, n_limbs, HELD)
            # Over entries that the same warp has read before.
            at, n_left = places((left,), n_left)
            list_rows(lists, at[0], x, rows, stored, old, new, left, d)
    return n_left


@triton.jit
def settle(
    X, n, k, labels, stored, labelled, begin, end, n_listed, n_doubts, current, lists, doubts,
    rows_in_doubt, d: tl.constexpr, EACH: tl.constexpr,
):  # fmt: skip
    """Label the rows in doubt of some of the blocks that every thread has listed.

    Returns how long the warps' lists are then, and how many rows were in doubt.
    """
    lane = tl.arange(0, LANES)
    count = tl.zeros((), tl.int32)
    for i in range(begin, end):
        doubtful = tl.load(doubts + i * LANES + lane, mask=i < n_doubts, other=0)
        each = tl.zeros((LANES,), tl.int32)
        for e in tl.static_range(EACH):
            each += doubtful >> e & 1
        at = count + tl.cumsum(each, 0) - each
        block = tl.program_id(0) + (doubtful >> EACH) * tl.num_programs(0)
        first = first_of(block, n, EACH) + lane
        for e in tl.static_range(EACH):
            some = doubtful >> e & 1
            tl.store(rows_in_doubt + at, first + e * LANES, mask=some > 0)
            at += some
        count += tl.sum(each, 0)
    tl.debug_barrier()
    for first in range(0, count, LANES):
        listed = rows_in_doubt + first
        mask = lane < count - first
        rows = tl.load(listed + lane, mask=mask, other=0)
        old = tl.load(labels + rows, mask=lane < (count - first) * labelled, other=-1)
        x = features(X, rows.to(tl.int64) * d, mask, d)
        new = nearest(X, rows, mask, listed, current, k, d)
        changed = mask & (new != old)
        tl.store(labels + rows, new, mask=changed)
        at, n_listed = places((changed,), n_listed)
        list_rows(lists, at[0], x, rows, stored, old, new, changed, d)
    return n_listed, count


@triton.jit
def label_and_sum(
    X, n, k, labels, stored, labelled, current, frame, table, lists, doubts, scratch,
    sums, own_sums, fixed_point_grid, bits, n_limbs, limb_size, moves,
    d: tl.constexpr, EACH: tl.constexpr, CENTERS: tl.constexpr, GROUP: tl.constexpr,
    KEPT: tl.constexpr, PITCH: tl.constexpr,
    HELD: tl.constexpr, ENTRIES: tl.constexpr, COPIES: tl.constexpr,
):  # fmt: skip
    """Assign this program's rows to `current`, and move those that change.

    Return how many changed and how many were in doubt.  If rows are not `labelled`, which is 1 or
    0, all change.  Where not `moves`, sums stay, and how many changed means nothing then, nor what
    the table holds.

    `lists` are the program's memory for them, and the room of each warp's in entries a thread;
    `doubts` and `scratch` those of rows in doubt, by block and by number.  The table of own sums
    has ENTRIES a cluster, COPIES times.  n is a block's rows, or more.
    """
    n_blocks = tl.cdiv(tl.cdiv(n, LANES * EACH) - tl.program_id(0), tl.num_programs(0))
    scales = scales_of(X, fixed_point_grid, bits, d)
    # Rows of a thread: those that the table takes, that a list holds, and that are labelled until
    # the next look at both, a multiple of EACH as the others are.
    most = most_steps(bits, COPIES)
    room = tl.minimum(lists[1], most)
    steps = tl.minimum(room, LISTED * 3 // 4)
    line, lift = tabulate(current, frame, table, k, d, PITCH, GROUP, KEPT, CENTERS)
    n_listed = tl.zeros((LANES,), tl.int32)
    n_doubts = tl.zeros((LANES,), tl.int32)
    # Labels may be anything before the first ones.
    first = tl.program_id(0)
    coming = rows_to_score(X, stored, first, n, d, EACH), labels_of(labels, first, n, EACH)
    # Rows are stored with their first labels, and added up then, even if that is for nothing.
    begins = labelled == 0
    if stored is None:
        begins = moves & begins
    n_changed, n_settled = tl.zeros((), tl.int32), tl.zeros((), tl.int32)
    block, settled, added, more = 0, 0, 0, True
    while more:
        begun = begins & (block < n_blocks)
        if begun:
            n_listed, n_labelled, n_doubts, coming = label_blocks(
                X, n, k, labels, stored, block, tl.minimum(block + steps // EACH, n_blocks), coming,
                n_listed, n_doubts, frame, line, lift, table, lists, doubts, scales, own_sums, bits,
                n_limbs,
                d, EACH, GROUP, KEPT, PITCH, HELD, ENTRIES, COPIES, True,
            )  # fmt: skip
            n_changed += tl.sum(n_labelled, 0)
            added += steps
        elif block < n_blocks:
            n_listed, _, n_doubts, coming = label_blocks(
                X, n, k, labels, stored, block, tl.minimum(block + steps // EACH, n_blocks), coming,
                n_listed, n_doubts, frame, line, lift, table, lists, doubts, scales, own_sums, bits,
                n_limbs,
                d, EACH, GROUP, KEPT, PITCH, HELD, ENTRIES, COPIES, False,
            )  # fmt: skip
        else:
            end = tl.minimum(settled + steps // EACH, tl.max(n_doubts, 0))
            n_listed, count = settle(
                X, n, k, labels, stored, labelled, settled, end, n_listed, n_doubts, current, lists,
                doubts, scratch, d, EACH,
            )  # fmt: skip
            n_settled += count
            settled = end
        tl.debug_barrier()
        block += steps // EACH
        more = block < n_blocks
        if more == 0:
            more = settled < tl.max(n_doubts, 0)
        longest = tl.max(n_listed, 0)
        if (longest > 0) & (begun | (more == 0) | (longest + steps * WARP > room * WARP)):
            if begun == 0:
                n_changed += tl.sum(n_listed, 0) // WARP
            if moves:
                if begun == 0:
                    longest = tl.cdiv(longest, WARP)
                    added += longest
                    n_listed = sum_listed(
                        X, lists, stored, n_listed, longest, scales, own_sums, bits, n_limbs,
                        d, HELD, ENTRIES, COPIES,
                    )  # fmt: skip
                    tl.debug_barrier()
                move_left(
                    X, lists, stored, n_listed, fixed_point_grid, sums, bits, n_limbs, limb_size, d,
                    HELD
                )  # fmt: skip
                tl.debug_barrier()
            n_listed = tl.zeros((LANES,), tl.int32)
        if moves & (added > 0) & ((more == 0) | (added + room > most)):
            flush(own_sums, fixed_point_grid, sums, k, bits, limb_size, d, HELD, ENTRIES, COPIES)
            added = 0
    return n_changed, n_settled
