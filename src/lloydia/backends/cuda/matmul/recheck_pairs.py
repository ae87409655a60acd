r"""Recheck ambiguous rows against their candidates, by D in float32 or else by canonical D.

With few centres and features the same kernel also rechecks the rows that have no candidates.

The float32 sum of squared differences has an error of at most ``g = (m + 3) 2**-24 (1 + 2**-10)``,
relative to the sum, where m is the largest number of additions that a square goes through;
canonical D has far less.  So if one sum exceeds another by a part of ``(m + 4) 2**-22``, its
canonical D is larger.  Near 0, float32 loses less than ``2**-100`` (up to 8192 features); a sum
that overflows exceeds nothing.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.device_functions.run_state import (
    N_AMBIGUOUS,
    N_NINE,
    N_RECHECKED,
    N_UNRESOLVED,
    STOPPED,
    first_row,
    item_state,
    programs_each,
    wait_for_previous_kernel,
)
from lloydia.backends.cuda.matmul.candidates import COUNT, NINE, RECORD, record_at
from lloydia.backends.cuda.matmul.fp16_centers import Fp16Centers
from lloydia.backends.cuda.matmul.recheck_exact import LAST, canonical_nearest
from lloydia.backends.cuda.matmul.row_lists import relabel
from lloydia.backends.cuda.protocols import LabelChanges, Rows
from lloydia.backends.cuda.rows.distances import levels, pair_distances
from lloydia.backends.cuda.runtime.launching import EXACT, launch, next_power, processors

__all__ = ["recheck_pairs"]

# Rows of a program, the most features of one load, and programs on a multiprocessor.
ROWS, FEATURES_PER_LOAD, RESIDENT = 16, 32, 8
# 2**RECHECK_LEVELS features at once for canonical D, of few rows: it must not cost others
# registers.
RECHECK_LEVELS = 3
# Rows that are compared to all centres, centres of a tile, and features that are loaded at once.
EXACT_ROWS, EXACT_COLUMNS, EXACT_FEATURES = tl.constexpr(2), tl.constexpr(256), tl.constexpr(8)
# Four roundings of float32, and the absolute error near 0.
ROUNDING, LOST = tl.constexpr(2.0**-22), tl.constexpr(2.0**-100)


@triton.jit
def quick_distances(X, rows, centers, j, there, d, BLOCK: tl.constexpr):
    """Return D of rows to centres j in float32, where `there` is set.

    `BLOCK` features are loaded at once.
    """
    f = tl.arange(0, BLOCK)[None, None, :]
    x_at = X + rows.to(tl.int64)[:, None, None] * d + f
    c_at = centers + j.to(tl.int64)[:, :, None] * d + f
    squares = tl.zeros((j.shape[0], j.shape[1], BLOCK), tl.float32)
    for first in range(0, d, BLOCK):
        inside = there[:, :, None] & (first + f < d)
        c = tl.load(c_at + first, mask=inside, other=0.0)
        x = tl.load(x_at + first, mask=first + f < d, other=0.0)
        gap = (x.to(c.dtype) - c).to(tl.float32)
        squares += gap * gap
    return tl.sum(squares, 2)


@triton.jit
def flat(table):
    """Return a table as a vector."""
    return tl.reshape(table, (table.shape[0] * table.shape[1],))


@triton.jit
def nearest_in_table(D, j, there):
    """Return D as a table like `j`, and the lowest j of each row that has the smallest D.

    Where `there` is not set D is infinite; a row without any gets LAST.
    """
    D = tl.where(there, tl.reshape(D, j.shape), float("inf"))
    least = tl.min(D, 1)
    return D, tl.min(tl.where(there & (D == least[:, None]), j, LAST), 1)


@triton.jit
def nearest_of(X, rows, centers, j, k, d, LEVELS: tl.constexpr, BLOCK: tl.constexpr):
    """Return the nearest of each row's candidates `j`, or LAST where there is none."""
    # Padding columns of the last tile are not centres.
    there = (j >= 0) & (j < k)
    x_at = tl.broadcast_to((X + rows.to(tl.int64) * d)[:, None], j.shape)
    c_at = centers + tl.where(there, j, 0).to(tl.int64) * d
    D = quick_distances(X, rows, centers, tl.where(there, j, 0), there, d, BLOCK)
    D, label = nearest_in_table(D, j, there)
    least = tl.min(D, 1)
    second_D = tl.min(tl.where(j == label[:, None], float("inf"), D), 1)
    roundings = (tl.cdiv(d, BLOCK) + BLOCK + 4).to(tl.float32)
    close = (label < LAST) & ~(second_D > least * (1.0 + roundings * ROUNDING) + LOST)
    if tl.sum(close.to(tl.int32), 0) > 0:
        there = there & close[:, None]
        exact = pair_distances(flat(x_at), flat(c_at), flat(there), d, LEVELS)
        exact, nearest = nearest_in_table(exact, j, there)
        label = tl.where(close, nearest, label)
    return label


@triton.jit
def recheck_unresolved(
    X, columns, size, k, d, listed, n_listed, labels, changed_rows, changed_old, run_state
):  # fmt: skip
    """Give listed rows the nearest of all centres, EXACT_ROWS rows in a program at a time.

    The list is usually short, so it starts at the last programs, which had the least to do.
    """
    program = tl.num_programs(0) - 1 - tl.program_id(0)
    for block in range(program, tl.cdiv(n_listed, EXACT_ROWS), tl.num_programs(0)):
        position = block * EXACT_ROWS + tl.arange(0, EXACT_ROWS)
        mask = position < n_listed
        rows = tl.load(listed + position, mask=mask, other=0)
        _, label = canonical_nearest(
            X + rows.to(tl.int64) * d, tl.where(mask, d, 0), columns, k, d, 1, size, 0, 1,
            EXACT_COLUMNS, EXACT_FEATURES,
        )  # fmt: skip
        # A row that is not finite keeps its label; the host refuses it later.
        found = mask & (label < LAST)
        relabel(rows, label, found, labels, changed_rows, changed_old, run_state)
    if tl.program_id(0) == 0 and n_listed > 0:
        tl.atomic_add(run_state + N_RECHECKED, n_listed, sem="relaxed")


@triton.jit(do_not_specialize=["n", "k"])
def recheck_pairs_kernel(
    X, n, centers, k, d, ambiguous, candidates, labels, changed_rows, changed_old, run_state,
    columns, size, unresolved,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, LEVELS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Recheck listed rows by their candidates and, with `columns`, the unresolved rows exactly.

    Parameters
    ----------
    X : (batch_size, n, d), IN
    n, k, d, size : int, IN
    centers : float32 or float64 (batch_size, k, d), IN
    ambiguous : int32 (batch_size, n), IN
    candidates : int32 (batch_size, n, COUNT), IN
    labels : int32 (batch_size, n), IN and OUT
    changed_rows, changed_old : int32 (batch_size, n), OUT
    run_state : int32 (batch_size, SIZE), IN and OUT
    columns : as `centers`, (batch_size, d, size), IN, or None
    unresolved : int32 (batch_size, n), IN, or None
    """
    wait_for_previous_kernel()
    run_state = item_state(run_state)
    # These loads are in flight at once.
    stopped, n_listed = tl.load(run_state + STOPPED), tl.load(run_state + N_AMBIGUOUS)
    n_nine, n_left = tl.load(run_state + N_NINE), tl.load(run_state + N_UNRESOLVED)
    if stopped != 0:
        return
    centers += tl.program_id(2).to(tl.int64) * k * d
    ambiguous += first_row(n)
    candidates += first_row(n) * COUNT
    changed_rows += first_row(n)
    changed_old += first_row(n)
    place = tl.arange(0, COUNT)
    for block in range(tl.program_id(0), tl.cdiv(n_listed, ROWS), tl.num_programs(0)):
        position = block * ROWS + tl.arange(0, ROWS)
        mask = position < n_listed
        rows = tl.load(ambiguous + position, mask=mask, other=0)
        at = candidates + position.to(tl.int64)[:, None] * COUNT + place[None, :]
        j = tl.load(at, mask=mask[:, None], other=-1)
        label = nearest_of(X, rows, centers, j, k, d, LEVELS, BLOCK)
        relabel(rows, label, mask & (label < LAST), labels, changed_rows, changed_old, run_state)
    # Records: as many threads for each row as hold nine candidates.
    RECORDS: tl.constexpr = ROWS * COUNT // COLUMNS
    n_nine = tl.minimum(n_nine, (n - n_listed) // RECORD)
    column = tl.arange(0, COLUMNS)
    for block in range(tl.program_id(0), tl.cdiv(n_nine, RECORDS), tl.num_programs(0)):
        number = block * RECORDS + tl.arange(0, RECORDS)
        mask = number < n_nine
        record = record_at(candidates, n, number)
        rows = tl.load(record, mask=mask, other=0)
        some = mask[:, None] & (column < NINE)[None, :]
        j = tl.load(record[:, None] + 1 + column[None, :], mask=some, other=-1)
        label = nearest_of(X, rows, centers, j, k, d, LEVELS, BLOCK)
        relabel(rows, label, mask & (label < LAST), labels, changed_rows, changed_old, run_state)
    if columns is not None:
        batch_item = tl.program_id(2).to(tl.int64)
        recheck_unresolved(
            X, columns + batch_item * size * d, size, k, d, unresolved + first_row(n), n_left,
            labels, changed_rows, changed_old, run_state,
        )  # fmt: skip


def recheck_pairs(
    rows: Rows,
    centers: torch.Tensor,
    ambiguous: torch.Tensor,
    candidates: torch.Tensor,
    changes: LabelChanges,
    last: tuple[Fp16Centers, torch.Tensor] | None = None,
) -> None:
    """Queue the recheck of the rows in `ambiguous` and of those that have records.

    Rows without candidates (-1) are skipped.  `last` is a pair: the same centres as they were
    packed, and the list of unresolved rows, of length ``run_state[N_UNRESOLVED]``.
    """
    k, d = centers.shape[-2:]
    programs = programs_each(RESIDENT * processors(rows.device), rows.batch_size)
    packed, listed = last or (None, None)
    launch(
        recheck_pairs_kernel, (programs, 1, rows.batch_size),
        rows.X, rows.n_samples, centers, k, d, ambiguous, candidates, *changes,
        packed and packed.columns, packed.size if packed else 0, listed,
        ROWS=ROWS, COLUMNS=next_power(NINE.value), LEVELS=min(levels(rows.X), RECHECK_LEVELS),
        BLOCK=min(FEATURES_PER_LOAD, next_power(d)), num_warps=4, **EXACT,
    )  # fmt: skip
