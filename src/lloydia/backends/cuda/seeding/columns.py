"""Candidates of at most 8 features: each thread computes the D of one row to all of them.

The rows are read from a feature-major copy, so that neighbouring threads read neighbouring numbers.
"""

from __future__ import annotations

from typing import Protocol

import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.device_functions.exact_numbers import rint
from lloydia.backends.cuda.device_functions.run_state import wait_for_previous_kernel
from lloydia.backends.cuda.protocols import WholeRows
from lloydia.backends.cuda.rows.distances import squares
from lloydia.backends.cuda.rows.totals import load_weights
from lloydia.backends.cuda.runtime.launching import (
    EXACT,
    ceil_div,
    given,
    launch,
    next_power,
    processors,
)
from lloydia.backends.cuda.seeding.tiles import TILE, best_of, factors, raise_largest, sum_of

__all__ = ["Columns"]

BLOCK = tl.constexpr(128)  # rows of a program: one for each thread
# A kernel is compiled for numbers of candidates up to this one, and up to each greater power of 2.
MIN_CANDIDATES = 4


@triton.jit(
    do_not_specialize=["weighted", "n", "bits", "count"],
    do_not_specialize_on_alignment=["changes"],
)
def savings_kernel(
    columns, row_pitch, feature_pitch, table, nearest, weights, weighted, terms, improved, changes,
    step, n, d, bits, count, COUNT: tl.constexpr,
):  # fmt: skip
    """Subtract from the changes what each candidate saves of the sum of all terms.

    Parameters
    ----------
    columns : IN
        The rows, with a pitch from row to row and one from feature to feature.
    table : (16, d), IN
        The candidates, float32 or float64.
    nearest : float64 (n,), IN
    weights, weighted
        As for :func:`~lloydia.backends.cuda.rows.totals.load_weights`.
    terms : float64 (2,), IN and OUT
        The grid of the integers follows from the first; the second becomes 0.
    improved : int32 (n,), OUT
        Bit t is set where candidate t is nearer than the row's seed.
    changes : int64 (steps, count), IN and OUT
    step : int32 (1,), IN
    n, row_pitch, feature_pitch, d, bits, count : int, IN
    """
    wait_for_previous_kernel()
    candidate = tl.arange(0, COUNT)
    low, high = factors(terms, bits)
    if tl.program_id(0) == 0:
        tl.store(terms + 1, 0.0)
    sums = tl.zeros([COUNT, BLOCK], tl.int64)
    rows = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    for _ in range(tl.program_id(0), tl.cdiv(n, BLOCK), tl.num_programs(0)):
        inside = rows < n
        x_at = columns + rows * row_pitch
        D = squares(x_at, feature_pitch, inside, table + candidate * d, 1, d, COUNT)
        near = tl.load(nearest + rows, mask=inside, other=0.0)
        nearer = D < near[None, :]
        tl.store(improved + rows, tl.sum(nearer.to(tl.int32) << candidate[:, None], axis=0), inside)
        weight = load_weights(weights, weighted, rows, inside)
        near = weight * near
        D = weight[None, :] * D
        # Terms of different D may be equal, since the product with a weight is rounded.
        saved = rint(near * low * high)[None, :] - rint(D * low * high)
        sums += tl.where(nearer, saved, 0.0).to(tl.int64)
        rows += tl.num_programs(0) * BLOCK
    total = tl.sum(sums, axis=1)
    to = changes + tl.load(step) * count + candidate
    tl.atomic_add(to, -total, mask=(candidate < count) & (total != 0), sem="relaxed")


@triton.jit(
    do_not_specialize=["weighted", "n", "bits", "count"],
    do_not_specialize_on_alignment=["changes"],
)
def accept_kernel(
    columns, row_pitch, feature_pitch, table, nearest, weights, weighted, terms, improved, changes,
    step, totals, n, d, bits, count,
):  # fmt: skip
    """Make the candidate with the least change a seed; sum each tile's terms, on the same grid.

    Parameters
    ----------
    columns, row_pitch, feature_pitch, table, improved, changes, step, n, d, bits, count
        As for :func:`savings_kernel`, IN.
    weights, weighted
        As for :func:`~lloydia.backends.cuda.rows.totals.load_weights`.
    nearest : float64 (n,), IN and OUT
    terms : float64 (2,), IN and OUT
        The second is raised to the largest term.
    totals : int64 (n_tiles,), OUT
    """
    wait_for_previous_kernel()
    best = best_of(changes + tl.load(step) * count, count)
    low, high = factors(terms, bits)
    tile = tl.program_id(0).to(tl.int64)
    rows = tile * TILE + tl.arange(0, TILE)
    inside = rows < n
    near = tl.load(nearest + rows, mask=inside, other=0.0)
    nearer = (tl.load(improved + rows, mask=inside, other=0) >> best & 1) != 0
    if tl.max(nearer.to(tl.int32), axis=0) != 0:
        c_at = table + best * d + tl.arange(0, 1)
        D = squares(columns + rows * row_pitch, feature_pitch, nearer, c_at, 1, d, 1)
        near = tl.where(nearer, tl.minimum(near, tl.sum(D, axis=0)), near)
        tl.store(nearest + rows, near, mask=nearer)
    near = load_weights(weights, weighted, rows, inside) * near
    tl.store(totals + tile, sum_of(near, low, high))
    raise_largest(terms, near)


class Seeding(Protocol):
    """A seeding: see :class:`lloydia.backends.cuda.seeding.state.SeedingState`."""

    rows: WholeRows
    nearest: torch.Tensor
    terms: torch.Tensor
    totals: torch.Tensor
    table: torch.Tensor
    step: torch.Tensor
    bits: int

    @property
    def columns(self) -> torch.Tensor: ...


class Columns:
    """The candidates of a seeding, evaluated for all rows.

    Attributes
    ----------
    improved : tensor of shape (n,), int32
        Which of the candidates are nearer than a row's seed, one bit each.
    """

    def __init__(self, rows: WholeRows) -> None:
        self.improved = torch.empty(rows.n_samples, dtype=torch.int32, device=rows.device)

    def improve_all(self) -> None:
        """Mark candidate 0, which is not evaluated, as nearer for all rows."""
        self.improved.fill_(1)

    def evaluate(self, state: Seeding, changes: torch.Tensor, count: int) -> None:
        """Queue the changes by `count` candidates; `changes` is 0 before."""
        rows = state.rows
        programs = min(ceil_div(rows.n_samples, BLOCK.value), 8 * processors(rows.device))
        launch(
            savings_kernel, (programs,),
            *self._rows(state), *given(rows.weights, state.nearest),
            *self._found(state, changes), rows.n_samples, rows.n_features, state.bits, count,
            COUNT=next_power(count, MIN_CANDIDATES), num_warps=4, **EXACT,
        )  # fmt: skip

    def accept(self, state: Seeding, changes: torch.Tensor, count: int) -> None:
        """Queue the kernel that makes the candidate of least change a seed and sums the tiles."""
        rows = state.rows
        launch(
            accept_kernel, (len(state.totals),),
            *self._rows(state), *given(rows.weights, state.nearest),
            *self._found(state, changes), state.totals, rows.n_samples, rows.n_features, state.bits,
            count, num_warps=4, **EXACT,
        )  # fmt: skip

    def _rows(self, state: Seeding) -> tuple:
        columns = state.columns
        return columns, columns.stride(1), columns.stride(0), state.table, state.nearest

    def _found(self, state: Seeding, changes: torch.Tensor) -> tuple:
        return state.terms, self.improved, changes, state.step
