"""Label the rows that scores leave ambiguous by canonical D, and list those that changed.

D is that of :mod:`lloydia.exact.distance`: launches take no fused products (launching.EXACT).
"""

from __future__ import annotations

import triton
import triton.language as tl

from lloydia.backends.cuda.device_functions.feature_loads import features
from lloydia.backends.cuda.device_functions.ptx.warp_lists import LISTS
from lloydia.backends.cuda.device_functions.run_state import (
    ITERATION,
    N_CHANGED,
    N_RECHECKED,
    wait_for_previous_kernel,
)
from lloydia.backends.cuda.low_dim.stages import is_active

__all__ = ["recheck_kernel"]

# Rows of each list that are rechecked at a time, and threads that share the centres for one row.
WARPS, ROWS_PER_LIST, ACROSS = tl.constexpr(LISTS), tl.constexpr(4), tl.constexpr(8)
ROWS = tl.constexpr(LISTS * 4)
# Steps over centres whose loads are in flight at once.
UNROLL = tl.constexpr(4)


@triton.jit
def nearest(x, centers, k, d: tl.constexpr):
    """Return the labels of some rows by canonical D, of equally near centres the first."""
    least = tl.full((ROWS, ACROSS), float("inf"), tl.float64)
    label = tl.zeros((ROWS, ACROSS), tl.int32)
    for first in tl.range(0, k, ACROSS, loop_unroll_factor=UNROLL):
        j = first + tl.arange(0, ACROSS)
        c = features(centers, j * d, j < k, d)
        D = tl.zeros((ROWS, ACROSS), tl.float64)
        for f in tl.static_range(d):
            difference = x[f].to(tl.float64)[:, None] - c[f].to(tl.float64)[None, :]
            D += difference * difference
        nearer = (D < least) & (j < k)[None, :]
        label = tl.where(nearer, j[None, :], label)
        least = tl.where(nearer, D, least)
    best = tl.min(least, 1)[:, None]
    return tl.min(tl.where(least == best, label, k), 1)


@triton.jit(
    do_not_specialize=["k", "room", "states"],
    do_not_specialize_on_alignment=[
        "X", "labels", "current", "run_state", "cost", "changed_rows", "changed_old",
        "changed_new", "n_changed", "ambiguous_rows", "n_ambiguous",
    ],
)  # fmt: skip
def recheck_kernel(
    X, k, labels, current, run_state, cost, changed_rows, changed_old, changed_new, n_changed,
    ambiguous_rows, n_ambiguous, room, states, d: tl.constexpr,
):  # fmt: skip
    """Label the rows in this program's lists of ambiguous rows; append those that changed.

    Parameters
    ----------
    X : IN, floating point (n, d)
    labels : IN, OUT, int32 (n,)
    current : IN, float32 or float64 (k, d)
    run_state : IN, OUT, int32
        N_CHANGED and N_RECHECKED grow.
    changed_rows, changed_old, changed_new, n_changed : IN, OUT
    cost, ambiguous_rows, n_ambiguous, room, states : IN
        As of :func:`lloydia.backends.cuda.low_dim.assign.assign_kernel`, launched with as many
        programs.
    """
    wait_for_previous_kernel()
    if is_active(run_state, cost, states):
        labelled = tl.minimum(tl.load(run_state + ITERATION), 1)
        lane = tl.arange(0, ROWS)
        which = tl.program_id(0) * WARPS + lane // ROWS_PER_LIST
        first = which * room
        count = tl.load(n_ambiguous + which)
        n_listed = tl.load(n_changed + which)
        for step in range(tl.cdiv(tl.max(count, 0), ROWS_PER_LIST)):
            at = step * ROWS_PER_LIST + lane % ROWS_PER_LIST
            mask = at < count
            rows = tl.load(ambiguous_rows + first + at, mask=mask, other=0)
            old = tl.load(labels + rows, mask=at < count * labelled, other=-1)
            x = features(X, rows.to(tl.int64) * d, mask, d)
            label = nearest(x, current, k, d)
            changed = mask & (label != old)
            tl.store(labels + rows, label, mask=changed)
            listed = changed & (old >= 0)
            by_list = listed.to(tl.int32).reshape(WARPS, ROWS_PER_LIST)
            before = (tl.cumsum(by_list, 1) - by_list).reshape(ROWS)
            added = tl.sum(by_list, 1)[:, None] + tl.zeros((WARPS, ROWS_PER_LIST), tl.int32)
            place = first + n_listed + before
            tl.store(changed_rows + place, rows, mask=listed)
            tl.store(changed_old + place, old, mask=listed)
            tl.store(changed_new + place, label, mask=listed)
            n_listed += added.reshape(ROWS)
        n_rechecked = tl.sum(tl.where(lane % ROWS_PER_LIST == 0, count, 0), 0)
        if n_rechecked > 0:
            more = n_listed - tl.load(n_changed + which)
            # All threads have read what is overwritten.
            tl.debug_barrier()
            tl.store(n_changed + which, n_listed)
            n_more = tl.sum(tl.where(lane % ROWS_PER_LIST == 0, more, 0), 0)
            tl.atomic_add(run_state + N_CHANGED, n_more, mask=n_more > 0, sem="relaxed")
            tl.atomic_add(run_state + N_RECHECKED, n_rechecked, sem="relaxed")
