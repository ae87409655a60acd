"""Which of a row's few candidates is nearest, by canonical D: a thread for each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.candidates import COUNT, NINE, RECORD, record_at
from lloydia.backends.cuda.distances import levels, pair_distances
from lloydia.backends.cuda.flow import HALT, N_DOUBT, N_WIDE, first_row, own_flow, programs_each
from lloydia.backends.cuda.launching import EXACT, next_power, processors
from lloydia.backends.cuda.recording import launch
from lloydia.backends.cuda.row_lists import relabel

if TYPE_CHECKING:
    from lloydia.backends.cuda.batch_rows import BatchRows
    from lloydia.backends.cuda.listed import Picked
    from lloydia.backends.cuda.placed import Placed

__all__ = ["duel"]

# Rows of a program, and programs a multiprocessor.
ROWS, RESIDENT = 32, 4
LAST = tl.constexpr(2147483647)


@triton.jit
def nearest_of(X, rows, centers, j, k, d, LEVELS: tl.constexpr):
    """Return the nearest of each row's candidates `j`, or LAST where it has none."""
    PAIRS: tl.constexpr = j.shape[0] * j.shape[1]
    # Columns that fill the last tile are no centres.
    there = (j >= 0) & (j < k)
    x_at = tl.broadcast_to((X + rows.to(tl.int64) * d)[:, None], j.shape)
    c_at = centers + tl.where(there, j, 0).to(tl.int64) * d
    D = pair_distances(
        tl.reshape(x_at, (PAIRS,)), tl.reshape(c_at, (PAIRS,)), tl.reshape(there, (PAIRS,)),
        d, LEVELS,
    )  # fmt: skip
    D = tl.where(there, tl.reshape(D, j.shape), float("inf"))
    least = tl.min(D, 1)
    return tl.min(tl.where(there & (D == least[:, None]), j, LAST), 1)


@triton.jit(do_not_specialize=["n", "k"])
def duel_kernel(
    X, n, centers, k, d, doubts, candidates, labels, changed_rows, changed_old, flow,
    ROWS: tl.constexpr, WIDE: tl.constexpr, LEVELS: tl.constexpr,
):  # fmt: skip
    flow = own_flow(flow)
    if tl.load(flow + HALT) != 0:
        return
    centers += tl.program_id(2).to(tl.int64) * k * d
    doubts += first_row(n)
    candidates += first_row(n) * COUNT
    changed_rows += first_row(n)
    changed_old += first_row(n)
    n_listed = tl.load(flow + N_DOUBT)
    place = tl.arange(0, COUNT)
    for block in range(tl.program_id(0), tl.cdiv(n_listed, ROWS), tl.num_programs(0)):
        position = block * ROWS + tl.arange(0, ROWS)
        mask = position < n_listed
        rows = tl.load(doubts + position, mask=mask, other=0)
        at = candidates + position.to(tl.int64)[:, None] * COUNT + place[None, :]
        j = tl.load(at, mask=mask[:, None], other=-1)
        label = nearest_of(X, rows, centers, j, k, d, LEVELS)
        relabel(rows, label, mask & (label < LAST), labels, changed_rows, changed_old, flow)
    # Records, as many threads a row as hold nine candidates.
    FEW: tl.constexpr = ROWS * COUNT // WIDE
    n_wide = tl.minimum(tl.load(flow + N_WIDE), (n - n_listed) // RECORD)
    column = tl.arange(0, WIDE)
    for block in range(tl.program_id(0), tl.cdiv(n_wide, FEW), tl.num_programs(0)):
        number = block * FEW + tl.arange(0, FEW)
        mask = number < n_wide
        record = record_at(candidates, n, number)
        rows = tl.load(record, mask=mask, other=0)
        some = mask[:, None] & (column < NINE)[None, :]
        j = tl.load(record[:, None] + 1 + column[None, :], mask=some, other=-1)
        label = nearest_of(X, rows, centers, j, k, d, LEVELS)
        relabel(rows, label, mask & (label < LAST), labels, changed_rows, changed_old, flow)


def duel(
    rows: Placed | BatchRows | Picked,
    centers: torch.Tensor,
    doubts: torch.Tensor,
    candidates: torch.Tensor,
    labels: torch.Tensor,
    changed_rows: torch.Tensor,
    changed_old: torch.Tensor,
    flow: torch.Tensor,
) -> None:
    """Queue it for the rows in `doubts` and those that have records.

    Rows without candidates (-1) are passed over.
    """
    k, d = centers.shape[-2:]
    programs = programs_each(RESIDENT * processors(rows.device), rows.members)
    launch(
        duel_kernel, (programs, 1, rows.members),
        rows.X, rows.n_samples, centers, k, d, doubts, candidates,
        labels, changed_rows, changed_old, flow,
        ROWS=ROWS, WIDE=next_power(NINE.value), LEVELS=levels(rows.X), num_warps=4, **EXACT,
    )  # fmt: skip
