"""Recheck rows that have no candidates: canonical D in float64 to each of many centres.

One program takes a block of rows.  With fewer blocks than programs, several programs share a block,
each with some of the centres, and the last of them merges the results.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.device_functions.run_state import (
    N_RECHECKED,
    STOPPED,
    first_row,
    item_state,
    programs_each,
    wait_for_previous_kernel,
)
from lloydia.backends.cuda.matmul.row_lists import relabel
from lloydia.backends.cuda.protocols import LabelChanges
from lloydia.backends.cuda.runtime.launching import EXACT, launch, processors

__all__ = ["LAST", "RecheckExact", "canonical_nearest"]

# The columns and rows of a tile of D: few rows, because few are listed and a program waits for one
# column of centres at a time.  They are the same for any k, so that one kernel is compiled.
COLUMNS, ROWS_PER_PROGRAM = 256, 2
# Features that are loaded at once.
FEATURES_IN_FLIGHT = tl.constexpr(16)
# LAST stands for no label.
LAST = tl.constexpr(2147483647)


@triton.jit
def canonical_nearest(
    x_at, row_end, centers, k, d, center_stride, feature_stride, first, step,
    COLUMNS: tl.constexpr, FEATURES: tl.constexpr,
):  # fmt: skip
    """Return the smallest canonical D of each row, and the lowest-numbered centre that has it.

    Where no D is finite, these are infinity and LAST.

    Parameters
    ----------
    x_at : pointers of shape (ROWS,), IN
        To the first features of rows.
    row_end : int32 (ROWS,), IN
        d, or 0 for a row that is not to be loaded.
    centers : pointer, float32 or float64, IN
    k, d, center_stride, feature_stride : int, IN
    first, step : int, IN
        Every `step`-th tile of COLUMNS centres is compared, from tile `first` on.
    COLUMNS, FEATURES : constexpr
        Centres of a tile; features that are loaded at once.
    """
    ROWS: tl.constexpr = x_at.shape[0]
    column = tl.arange(0, COLUMNS)
    least = tl.full((ROWS,), float("inf"), tl.float64)
    label = tl.full((ROWS,), LAST, tl.int32)
    for t in range(first, tl.cdiv(k, COLUMNS), step):
        j = t * COLUMNS + column
        inside = j < k
        end = tl.where(inside, d, 0)
        c_at = centers + j.to(tl.int64) * center_stride
        D = tl.zeros((ROWS, COLUMNS), tl.float64)
        for begin in range(0, d, FEATURES):
            x, c = (), ()
            for s in tl.static_range(FEATURES):
                # A missing feature adds 0.
                f = begin + s
                x = x + (tl.load(x_at + f, mask=f < row_end, other=0.0),)
                c = c + (tl.load(c_at, mask=f < end, other=0.0),)
                c_at += feature_stride
            for s in tl.static_range(FEATURES):
                difference = x[s].to(tl.float64)[:, None] - c[s].to(tl.float64)[None, :]
                D += difference * difference
        D = tl.where(inside[None, :], D, float("inf"))
        nearest = tl.min(D, 1)
        lowest = tl.min(tl.where(D == nearest[:, None], j[None, :], LAST), 1)
        # Only a strictly smaller D replaces the label of an earlier tile: ties go to the lowest.
        label = tl.where(nearest < least, lowest, label)
        least = tl.minimum(nearest, least)
    return least, label


@triton.jit
def shares_of(n_blocks, n_tiles):
    """Return how many programs share a block; if more than one, each has one share."""
    return tl.minimum(tl.maximum(tl.num_programs(0) // tl.maximum(n_blocks, 1), 1), n_tiles)


@triton.jit(do_not_specialize=["n", "k", "d", "item_stride", "center_stride", "feature_stride"])
def recheck_exact_kernel(
    X, n, centers, k, d, item_stride, center_stride, feature_stride, listed, count,
    best_ptr, label_ptr, tickets,
    labels, changed_rows, changed_old, run_state, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Write the labels of listed rows, of which a block is shared by several programs if few are.

    Parameters
    ----------
    X : (batch_size, n, d), IN
    n, k, d : int, IN
    centers : float32 or float64 (batch_size, k, d), IN
    item_stride, center_stride, feature_stride : int, IN
        The strides of `centers`.
    listed : int32 (batch_size, n), IN
    count : int32, IN
        In each run state: how many rows are listed.
    best_ptr : float64 (batch_size, programs, ROWS), scratch
    label_ptr : int32 (batch_size, programs, ROWS), scratch
    tickets : int32 (batch_size, programs), scratch
        0 before and after.
    labels : int32 (batch_size, n), IN and OUT
    changed_rows, changed_old : int32 (batch_size, n), OUT
    run_state : int32 (batch_size, SIZE), IN and OUT
    """
    wait_for_previous_kernel()
    run_state = item_state(run_state)
    # Both loads are in flight at once.
    stopped, n_listed = tl.load(run_state + STOPPED), tl.load(item_state(count))
    if stopped != 0:
        return
    batch_item = tl.program_id(2).to(tl.int64)
    centers += batch_item * item_stride
    listed += first_row(n)
    changed_rows += first_row(n)
    changed_old += first_row(n)
    tickets += batch_item * tl.num_programs(0)
    best_ptr += batch_item * tl.num_programs(0) * ROWS
    label_ptr += batch_item * tl.num_programs(0) * ROWS
    n_blocks, n_tiles = tl.cdiv(n_listed, ROWS), tl.cdiv(k, COLUMNS)
    shares = shares_of(n_blocks, n_tiles)
    row = tl.arange(0, ROWS)
    for item in range(tl.program_id(0), n_blocks * shares, tl.num_programs(0)):
        position = item // shares * ROWS + row
        mask = position < n_listed
        row_end = tl.where(mask, d, 0)
        rows = tl.load(listed + position, mask=mask, other=0)
        x_at = X + rows.to(tl.int64) * d
        least, label = canonical_nearest(
            x_at, row_end, centers, k, d, center_stride, feature_stride, item % shares, shares,
            COLUMNS, FEATURES_IN_FLIGHT,
        )  # fmt: skip
        last = True
        if shares > 1:
            tl.store(best_ptr + item * ROWS + row, least)
            tl.store(label_ptr + item * ROWS + row, label)
            tl.debug_barrier()
            last = tl.atomic_add(tickets + item // shares, 1) == shares - 1
        if last:
            if shares > 1:
                for share in range(shares):
                    at = (item // shares * shares + share) * ROWS + row
                    D = tl.load(best_ptr + at, volatile=True)
                    j = tl.load(label_ptr + at, volatile=True)
                    nearer = (D < least) | ((D == least) & (j < label))
                    least = tl.where(nearer, D, least)
                    label = tl.where(nearer, j, label)
                tl.store(tickets + item // shares, 0)
            # A row that is not finite has no smallest D: it keeps its label and is refused later.
            found = mask & (label < LAST)
            relabel(rows, label, found, labels, changed_rows, changed_old, run_state)
    if tl.program_id(0) == 0:
        tl.atomic_add(run_state + N_RECHECKED, n_listed, sem="relaxed")


class RecheckExact:
    """Rechecks listed rows; an instance serves one queue at a time."""

    def __init__(self, device: torch.device, batch_size: int = 1) -> None:
        self.batch_size = batch_size
        self.n_programs = programs_each(4 * processors(device), batch_size)
        size = batch_size * self.n_programs * ROWS_PER_PROGRAM
        self.least = torch.empty(size, device=device, dtype=torch.float64)
        self.label = torch.empty(size, device=device, dtype=torch.int32)
        self.tickets = torch.zeros(batch_size * self.n_programs, device=device, dtype=torch.int32)

    def __call__(
        self,
        X: torch.Tensor,
        centers: torch.Tensor,
        listed: torch.Tensor,
        count: torch.Tensor,
        changes: LabelChanges,
    ) -> None:
        """Queue the recheck of the rows ``listed[:count]``; `count` is a view of the run state.

        `centers`, of shape (batch_size, k, d), may have any strides; the access pattern favours
        those that store the centres feature by feature.
        """
        _, k, d = centers.shape
        launch(
            recheck_exact_kernel, (self.n_programs, 1, self.batch_size),
            X, X.shape[-2], centers, k, d, *centers.stride(), listed, count,
            self.least, self.label, self.tickets, *changes,
            ROWS=ROWS_PER_PROGRAM, COLUMNS=COLUMNS, num_warps=4, **EXACT,
        )  # fmt: skip
